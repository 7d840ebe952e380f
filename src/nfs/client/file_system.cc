#include "nfs/client/file_system.h"

#include <algorithm>
#include <utility>

#include "nfs/ulb/nfs3.h"

namespace stag::nfs::client {
namespace {

// What a server that states no limit is asked for.
constexpr std::uint32_t kModestSize = 32u << 10;
// A listing reply must hold one entry at least, whatever FSINFO says.
constexpr std::uint32_t kSmallestList = 4096;
// A READLINK reply without the text: status, attributes, length.
constexpr std::uint32_t kLinkFrame = 4 + 88 + 4;

std::uint32_t cut(std::uint32_t wish, std::uint32_t most) {
  return std::min(wish, most == 0 ? kModestSize : most);
}

}  // namespace

FileSystem::FileSystem(rpc::Channel& channel, const Handle& root, std::string root_path,
                       const FileSystemOptions& options)
    : caller_(channel, options.calls),
      root_(root),
      root_path_(std::move(root_path)),
      options_(options),
      sizes_(options.sizes) {
  STAG_CHECK(options_.window > 0 && sizes_.read > 0 && sizes_.write > 0);
}

Task<Outcome<Ok>> FileSystem::adopt_sizes() {
  const Outcome<v3::FSINFO3resok> info = co_await fsinfo();
  if (!info) co_return Failure{info.error()};
  sizes_.read = cut(sizes_.read, info->rtmax);
  sizes_.write = cut(sizes_.write, info->wtmax);
  // RFC 1813 3.3.19: dtpref is a preference, not a limit; a larger reply is only cut short.
  sizes_.list = std::max({sizes_.list, info->dtpref, kSmallestList});
  sizes_.list = std::min(sizes_.list, TransferSizes{}.read);
  co_return Ok{};
}

Task<Outcome<Attributes>> FileSystem::getattr(Handle object) {
  v3::GETATTR3args args;
  args.object = object;
  const auto resok = co_await caller_.call<v3::NFSPROC3_GETATTR>(args, {"read the attributes", {}});
  if (!resok) co_return Failure{resok.error()};
  co_return resok->obj_attributes;
}

Task<Outcome<Ok>> FileSystem::setattr(Handle object, SetAttributes attributes,
                                      std::optional<Time> guard) {
  v3::SETATTR3args args;
  args.object = object;
  args.new_attributes = to_sattr3(attributes);
  args.guard.check = guard.has_value();
  if (guard) args.guard.obj_ctime() = *guard;
  const auto resok =
      co_await caller_.call<v3::NFSPROC3_SETATTR>(args, {"change the attributes", {}});
  if (!resok) co_return Failure{resok.error()};
  co_return Ok{};
}

Task<Outcome<std::uint32_t>> FileSystem::access(Handle object, std::uint32_t asked) {
  v3::ACCESS3args args;
  args.object = object;
  args.access = asked;
  const auto resok =
      co_await caller_.call<v3::NFSPROC3_ACCESS>(args, {"check the permissions", {}});
  if (!resok) co_return Failure{resok.error()};
  co_return resok->access& asked;
}

Task<Outcome<std::string>> FileSystem::readlink(Handle symlink, std::optional<std::uint64_t> size) {
  v3::READLINK3args args;
  args.symlink = symlink;
  const Doing doing{"read the symbolic link", {}};
  // Some file systems give a size of 0 to links whose text they make up.
  std::optional<std::uint32_t> room;
  if (size.value_or(0) != 0 && *size <= ulb::kMaxLinkText)
    room = kLinkFrame + static_cast<std::uint32_t>(*size);
  auto resok = co_await caller_.call<v3::NFSPROC3_READLINK>(args, doing, {}, room);
  const bool too_long = !resok && resok.error().kind == Error::Kind::Call &&
                        resok.error().call.reason == Reason::RdmaPeerRefusedChunks;
  if (room && too_long) resok = co_await caller_.call<v3::NFSPROC3_READLINK>(args, doing);
  if (!resok) co_return Failure{resok.error()};
  co_return std::move(resok->data);
}

Listing FileSystem::list(const Handle& directory, Listing::Detail detail,
                         std::uint64_t most) const {
  return Listing(caller_, directory, detail, sizes_.list, most);
}

Task<Outcome<v3::FSSTAT3resok>> FileSystem::fsstat(std::optional<Handle> object) {
  v3::FSSTAT3args args;
  args.fsroot = object.value_or(root_);
  co_return co_await caller_.call<v3::NFSPROC3_FSSTAT>(args, {"ask for the free space", {}});
}

Task<Outcome<v3::FSINFO3resok>> FileSystem::fsinfo(std::optional<Handle> object) {
  v3::FSINFO3args args;
  args.fsroot = object.value_or(root_);
  co_return co_await caller_.call<v3::NFSPROC3_FSINFO>(args, {"ask for the server's limits", {}});
}

Task<Outcome<v3::PATHCONF3resok>> FileSystem::pathconf(std::optional<Handle> object) {
  v3::PATHCONF3args args;
  args.object = object.value_or(root_);
  co_return co_await caller_.call<v3::NFSPROC3_PATHCONF>(args, {"ask for the name limits", {}});
}

Task<Outcome<Ok>> FileSystem::ping() {
  return caller_.ping({"ping the server", {}});
}

}  // namespace stag::nfs::client
