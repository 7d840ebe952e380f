#include "nfs/client/session/mount.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "nfs/client/session/url.h"
#include "nfs/proto/mount3.h"
#include "nfs/ulb/nfs3.h"

namespace stag::nfs::client {
namespace {

using ExportList = std::vector<ListedExport>;
using mount3::MOUNTPROC3_EXPORT;
using mount3::MOUNTPROC3_MNT;
using mount3::MOUNTPROC3_UMNT;

// Exports that an error names, at most.
constexpr std::size_t kNamedExports = 8;

rpc::Client client_of(rpc::Channel& channel, rpc::Credentials credentials) {
  return rpc::Client(channel, ulb::mount3(), std::move(credentials));
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

// The longest listed export that the path lies in, and nothing else: in versions 2 and 3 whoever is
// refused that one and mounts a parent would walk into the directory that it covers, and take its
// files for those of the path. The path and its parents where no listed export has it.
std::vector<std::string> candidates(const std::string& path, const ExportList& exports) {
  std::string longest;
  for (const ListedExport& listed : exports) {
    std::string directory = tidy_path(listed.path);
    if (lies_in(directory, path) && directory.size() > longest.size())
      longest = std::move(directory);
  }
  if (!longest.empty()) return {longest};
  std::vector<std::string> out;
  for (std::string at = path;; at = parent_of(at)) {
    if (at.size() <= mount3::MNTPATHLEN) out.push_back(at);
    if (at == "/") return out;
  }
}

Error refused(const std::string& path, Status status, const ExportList& exports) {
  Error error = Error::of_mount(path, status);
  if (status != Status::NoEntry || exports.empty()) return error;
  error.sentence += "; it exports";
  for (std::size_t i = 0; i < std::min(exports.size(), kNamedExports); ++i)
    error.sentence += (i == 0 ? " " : ", ") + exports[i].path;
  if (exports.size() > kNamedExports) error.sentence += " and more";
  return error;
}

ExportList to_export_list(const mount3::exports& exports) {
  ExportList list;
  for (const mount3::exportnode& node : exports) {
    ListedExport& listed = list.emplace_back();
    listed.path = node.ex_dir;
    for (const mount3::groupnode& group : node.ex_groups) listed.clients.push_back(group.gr_name);
  }
  return list;
}

// The export list; empty when the server does not return one.
Task<Outcome<ExportList>> exports_if_told(rpc::Client client, rpc::CallOptions options,
                                          std::uint32_t nfs_version) {
  rpc::CallResult<mount3::exports> list = mount3::exports{};
  if (nfs_version == 2)
    list = co_await client.call<mount3::MOUNTPROC1_EXPORT>({}, options);
  else
    list = co_await client.call<MOUNTPROC3_EXPORT>({}, options);
  if (list) co_return to_export_list(*list);
  if (list.error().kind != rpc::CallError::Kind::Transport) co_return ExportList{};
  co_return Failure{Error::of_call({"ask for the exports", {}}, list.error())};
}

// RFC 1813 5.1.5; RFC 1094 A.4.2 has UNIX error numbers, which those are, but for Linux's own
// number of a name that is too long.
Status to_status(std::uint32_t status) {
  constexpr std::uint32_t kLinuxNameTooLong = 36;
  switch (status) {
    case mount3::MNT3_OK:
      return Status::Ok;
    case mount3::MNT3ERR_PERM:
      return Status::NotOwner;
    case mount3::MNT3ERR_NOENT:
      return Status::NoEntry;
    case mount3::MNT3ERR_IO:
      return Status::Io;
    case mount3::MNT3ERR_ACCES:
      return Status::Access;
    case mount3::MNT3ERR_NOTDIR:
      return Status::NotDirectory;
    case mount3::MNT3ERR_INVAL:
      return Status::Invalid;
    case kLinuxNameTooLong:
    case mount3::MNT3ERR_NAMETOOLONG:
      return Status::NameTooLong;
    case mount3::MNT3ERR_NOTSUPP:
      return Status::NotSupported;
    case mount3::MNT3ERR_SERVERFAULT:
      return Status::ServerFault;
    default:
      return Status::Unknown;
  }
}

// The results of MNT of either version.
struct MountAnswer {
  Status status = Status::Ok;
  std::optional<Handle> root;
  std::vector<std::int32_t> flavors{};
};

// MNT of the MOUNT version that goes with the NFS version.
Task<rpc::CallResult<MountAnswer>> mount_one(rpc::Client client, std::string directory,
                                             rpc::CallOptions options, std::uint32_t nfs_version) {
  MountAnswer answer;
  if (nfs_version == 2) {
    const auto res = co_await client.call<mount3::MOUNTPROC1_MNT>(directory, options);
    if (!res) co_return Failure{res.error()};
    answer.status = to_status(res->status);
    if (res->status == 0) answer.root = Handle::from(res->directory());
    co_return answer;
  }
  const auto res = co_await client.call<MOUNTPROC3_MNT>(directory, options);
  if (!res) co_return Failure{res.error()};
  answer.status = to_status(static_cast<std::uint32_t>(res->fhs_status));
  if (res->fhs_status == mount3::MNT3_OK) {
    answer.root = Handle::from(res->mountinfo().fhandle.bytes());
    const auto& flavors = res->mountinfo().auth_flavors;
    answer.flavors.assign(flavors.begin(), flavors.end());
  }
  co_return answer;
}

}  // namespace

Task<Outcome<MountPoint>> mount(rpc::Channel& channel, std::string path,
                                rpc::Credentials credentials, rpc::CallOptions options,
                                std::uint32_t nfs_version) {
  rpc::Client client = client_of(channel, std::move(credentials));
  const Outcome<ExportList> exports = co_await exports_if_told(client, options, nfs_version);
  if (!exports) co_return Failure{exports.error()};
  path = tidy_path(path);
  std::optional<Error> first;
  for (const std::string& directory : candidates(path, *exports)) {
    const rpc::CallResult<MountAnswer> answer =
        co_await mount_one(client, directory, options, nfs_version);
    if (!answer) co_return Failure{Error::of_call({"mount", directory}, answer.error())};
    if (answer->status != Status::Ok) {
      if (!first) first = refused(directory, answer->status, *exports);
      continue;
    }
    if (!answer->root || answer->root->empty())
      co_return Failure{Error::of_protocol({"mount", directory}, "sent no usable file handle")};
    MountPoint point;
    point.root = *answer->root;
    point.root_path = directory;
    point.rest = rest_of(directory, path);
    point.flavors = answer->flavors;
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

Task<Outcome<std::vector<std::uint32_t>>> flavors_of(rpc::Channel& channel, std::string path,
                                                     rpc::Credentials credentials,
                                                     rpc::CallOptions options) {
  rpc::Client client = client_of(channel, std::move(credentials));
  const auto res = co_await client.call<MOUNTPROC3_MNT>(path, options);
  if (!res) co_return Failure{Error::of_call({"mount", path}, res.error())};
  if (res->fhs_status != mount3::MNT3_OK)
    co_return Failure{
        Error::of_mount(path, to_status(static_cast<std::uint32_t>(res->fhs_status)))};
  static_cast<void>(co_await client.call<MOUNTPROC3_UMNT>(path, options));
  const auto& flavors = res->mountinfo().auth_flavors;
  co_return std::vector<std::uint32_t>(flavors.begin(), flavors.end());
}

Task<Outcome<std::vector<ListedExport>>> list_exports(rpc::Channel& channel,
                                                      rpc::Credentials credentials,
                                                      rpc::CallOptions options) {
  rpc::Client client = client_of(channel, std::move(credentials));
  rpc::CallResult<mount3::exports> list = co_await client.call<MOUNTPROC3_EXPORT>({}, options);
  if (!list) co_return Failure{Error::of_call({"ask for the exports", {}}, list.error())};
  co_return to_export_list(*list);
}

}  // namespace stag::nfs::client
