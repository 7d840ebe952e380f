#include "nfs/client/session/mount.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "nfs/ulb/nfs3.h"

namespace stag::nfs::client {
namespace {

using mount3::MOUNTPROC3_EXPORT;
using mount3::MOUNTPROC3_MNT;
using mount3::MOUNTPROC3_UMNT;

// Exports that an error names, at most.
constexpr std::size_t kNamedExports = 8;

rpc::Client client_of(rpc::Channel& channel, rpc::Credentials credentials) {
  return rpc::Client(channel, ulb::mount3(), std::move(credentials));
}

// "/a//b/" is "/a/b".
std::string tidy(std::string_view path) {
  std::string out;
  for (const char c : path)
    if (c != '/' || !out.ends_with('/')) out.push_back(c);
  while (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out.empty() ? "/" : out;
}

std::string parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(slash == 0 || slash == std::string_view::npos ? "/" : path.substr(0, slash));
}

bool lies_in(std::string_view directory, std::string_view path) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

std::string rest_of(std::string_view directory, std::string_view path) {
  const std::size_t begin = path.find_first_not_of('/', directory == "/" ? 0 : directory.size());
  return std::string(begin == std::string_view::npos ? "" : path.substr(begin));
}

// The longest export first, then the path and its parents.
std::vector<std::string> candidates(const std::string& path, const mount3::exports& exports) {
  std::vector<std::string> out;
  for (const mount3::exportnode& node : exports) {
    const std::string directory = tidy(node.ex_dir);
    if (!lies_in(directory, path)) continue;
    if (out.empty())
      out.push_back(directory);
    else if (directory.size() > out.front().size())
      out.front() = directory;
  }
  for (std::string at = path;; at = parent_of(at)) {
    const bool tried = !out.empty() && at == out.front();
    if (!tried && at.size() <= mount3::MNTPATHLEN) out.push_back(at);
    if (at == "/") return out;
  }
}

Error refused(const std::string& path, mount3::mountstat3 status, const mount3::exports& exports) {
  Error error = Error::of_mount(path, status);
  if (status != mount3::MNT3ERR_NOENT || exports.empty()) return error;
  error.sentence += "; it exports";
  for (std::size_t i = 0; i < std::min(exports.size(), kNamedExports); ++i)
    error.sentence += (i == 0 ? " " : ", ") + exports[i].ex_dir;
  if (exports.size() > kNamedExports) error.sentence += " and more";
  return error;
}

// The export list, or an empty one when the server does not tell.
Task<Outcome<mount3::exports>> exports_if_told(rpc::Client client, rpc::CallOptions options,
                                               std::uint32_t nfs_version) {
  rpc::CallResult<mount3::exports> list = mount3::exports{};
  if (nfs_version == 2)
    list = co_await client.call<mount3::MOUNTPROC1_EXPORT>({}, options);
  else
    list = co_await client.call<MOUNTPROC3_EXPORT>({}, options);
  if (list) co_return std::move(*list);
  if (list.error().kind != rpc::CallError::Kind::Transport) co_return mount3::exports{};
  co_return Failure{Error::of_call({"ask for the exports", {}}, list.error())};
}

mount3::mountres3 in_words_of_version_3(const mount3::fhstatus& res) {
  constexpr std::uint32_t kLinuxNameTooLong = 36;
  mount3::mountres3 out;
  // RFC 1094 A.4.2: a UNIX error number, as version 3's are.
  out.fhs_status = static_cast<mount3::mountstat3>(res.status);
  if (res.status == kLinuxNameTooLong) out.fhs_status = mount3::MNT3ERR_NAMETOOLONG;
  if (res.status == 0) STAG_CHECK(out.mountinfo().fhandle.assign(res.directory()));
  return out;
}

// MNT of the MOUNT version that goes with the NFS version.
Task<rpc::CallResult<mount3::mountres3>> mount_one(rpc::Client client, std::string directory,
                                                   rpc::CallOptions options,
                                                   std::uint32_t nfs_version) {
  if (nfs_version != 2) co_return co_await client.call<MOUNTPROC3_MNT>(directory, options);
  const rpc::CallResult<mount3::fhstatus> res =
      co_await client.call<mount3::MOUNTPROC1_MNT>(directory, options);
  if (!res) co_return Failure{res.error()};
  co_return in_words_of_version_3(*res);
}

}  // namespace

Task<Outcome<MountPoint>> mount(rpc::Channel& channel, std::string path,
                                rpc::Credentials credentials, rpc::CallOptions options,
                                std::uint32_t nfs_version) {
  rpc::Client client = client_of(channel, std::move(credentials));
  const Outcome<mount3::exports> exports = co_await exports_if_told(client, options, nfs_version);
  if (!exports) co_return Failure{exports.error()};
  path = tidy(path);
  std::optional<Error> first;
  for (const std::string& directory : candidates(path, *exports)) {
    const rpc::CallResult<mount3::mountres3> res =
        co_await mount_one(client, directory, options, nfs_version);
    if (!res) co_return Failure{Error::of_call({"mount", directory}, res.error())};
    if (res->fhs_status != mount3::MNT3_OK) {
      if (!first) first = refused(directory, res->fhs_status, *exports);
      continue;
    }
    MountPoint point;
    if (res->mountinfo().fhandle.empty() ||
        !point.root.data.assign(res->mountinfo().fhandle.bytes()))
      co_return Failure{Error::of_protocol({"mount", directory}, "sent no usable file handle")};
    point.root_path = directory;
    point.rest = rest_of(directory, path);
    co_return point;
  }
  STAG_CHECK(first.has_value());
  co_return Failure{*first};
}

Task<Outcome<Ok>> unmount(rpc::Channel& channel, std::string root_path,
                          rpc::Credentials credentials, rpc::CallOptions options,
                          std::uint32_t nfs_version) {
  rpc::Client client = client_of(channel, std::move(credentials));
  rpc::CallResult<xdr::Void> done = xdr::Void{};
  if (nfs_version == 2)
    done = co_await client.call<mount3::MOUNTPROC1_UMNT>(root_path, options);
  else
    done = co_await client.call<MOUNTPROC3_UMNT>(root_path, options);
  if (!done) co_return Failure{Error::of_call({"unmount", root_path}, done.error())};
  co_return Ok{};
}

Task<Outcome<mount3::exports>> list_exports(rpc::Channel& channel, rpc::Credentials credentials,
                                            rpc::CallOptions options) {
  rpc::Client client = client_of(channel, std::move(credentials));
  rpc::CallResult<mount3::exports> list = co_await client.call<MOUNTPROC3_EXPORT>({}, options);
  if (!list) co_return Failure{Error::of_call({"ask for the exports", {}}, list.error())};
  co_return std::move(*list);
}

}  // namespace stag::nfs::client
