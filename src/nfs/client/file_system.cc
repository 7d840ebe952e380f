#include "nfs/client/file_system.h"

#include <algorithm>
#include <utility>

#include "nfs/client/protocol/protocol.h"
#include "nfs/client/v2/nfs2.h"
#include "nfs/client/v3/nfs3.h"

namespace stag::nfs::client {
namespace {

// Bytes of a transfer when the server states no limit.
constexpr std::uint32_t kModestSize = 32u << 10;
// A listing reply must hold one entry at least, whatever the server prefers.
constexpr std::uint32_t kSmallestList = 4096;

std::uint32_t cut(std::uint32_t wish, std::uint32_t most) {
  return std::min(wish, most == 0 ? kModestSize : most);
}

std::shared_ptr<Protocol> protocol_of(rpc::Channel& channel, const ProtocolOptions& calls) {
  if (calls.version == 2) return std::make_shared<nfs2::Nfs2>(channel, calls);
  return std::make_shared<nfs3::Nfs3>(channel, calls);
}

}  // namespace

FileSystem::FileSystem(rpc::Channel& channel, const Handle& root, std::string root_path,
                       const FileSystemOptions& options)
    : FileSystem(protocol_of(channel, options.calls), root, std::move(root_path), options) {}

FileSystem::FileSystem(std::shared_ptr<Protocol> protocol, const Handle& root,
                       std::string root_path, const FileSystemOptions& options)
    : protocol_(std::move(protocol)),
      root_(root),
      root_path_(std::move(root_path)),
      options_(options),
      sizes_(options.sizes) {
  STAG_CHECK(options_.window > 0 && sizes_.read > 0 && sizes_.write > 0);
}

FileSystem FileSystem::with(const FileSystemOptions& options) const {
  FileSystem same(protocol_->with(options.calls), root_, root_path_, options);
  same.sizes_ = sizes_;
  return same;
}

rpc::Channel& FileSystem::channel() const {
  return protocol_->channel();
}

void FileSystem::set_flush(std::function<Task<bool>(Handle file)> flush) {
  protocol_->set_flush(std::move(flush));
}

Duration FileSystem::lease() const {
  return protocol_->lease();
}

Task<Outcome<Ok>> FileSystem::adopt_sizes() {
  const Outcome<FileSystemInfo> known = co_await info();
  if (!known) co_return Failure{known.error()};
  sizes_.read = cut(sizes_.read, known->read_max);
  sizes_.write = cut(sizes_.write, known->write_max);
  // RFC 1813 3.3.19: dtpref is a preference, not a limit; a larger reply is only cut short.
  sizes_.list = std::max({sizes_.list, known->list_preferred, kSmallestList});
  sizes_.list = std::min(sizes_.list, TransferSizes{}.read);
  co_return Ok{};
}

Task<Outcome<Attributes>> FileSystem::getattr(Handle object) {
  return protocol_->getattr({"read the attributes", {}}, object);
}

Task<Outcome<Ok>> FileSystem::setattr(File object, SetAttributes attributes,
                                      std::optional<Time> guard) {
  const auto set =
      co_await protocol_->setattr({"change the attributes", {}}, object, attributes, guard);
  if (!set) co_return Failure{set.error()};
  co_return Ok{};
}

Task<Outcome<Attributes>> FileSystem::change(File object, SetAttributes attributes) {
  const std::optional<Time> unguarded;
  const auto set =
      co_await protocol_->setattr({"change the attributes", {}}, object, attributes, unguarded);
  if (!set) co_return Failure{set.error()};
  if (*set) co_return **set;
  co_return co_await getattr(object.handle);
}

Task<Outcome<std::uint32_t>> FileSystem::access(Handle object, std::uint32_t asked) {
  return protocol_->access({"check the permissions", {}}, object, asked);
}

Task<Outcome<Opened>> FileSystem::open(Handle file, std::uint32_t asked) {
  return protocol_->open({"open", {}}, file, asked);
}

Task<Outcome<Ok>> FileSystem::close(File file) {
  return protocol_->close({"close", {}}, file);
}

bool FileSystem::has_locks() const {
  return protocol_->has_locks();
}

Task<Outcome<Ok>> FileSystem::lock(File file, LockOwner owner, FileLock wanted) {
  return protocol_->lock({"lock", {}}, file, owner, wanted);
}

Task<Outcome<Ok>> FileSystem::unlock(File file, LockOwner owner, FileLock range) {
  return protocol_->unlock({"unlock", {}}, file, owner, range);
}

std::vector<LockPiece> FileSystem::locks_within(const std::vector<File>& opens, LockOwner owner,
                                                FileLock range) const {
  return protocol_->locks_within(opens, owner, range);
}

Task<Outcome<std::optional<FileLock>>> FileSystem::test_lock(File file, LockOwner owner,
                                                             FileLock wanted) {
  return protocol_->test_lock({"look for locks", {}}, file, owner, wanted);
}

Task<Outcome<std::string>> FileSystem::readlink(Handle symlink, std::optional<std::uint64_t> size) {
  return protocol_->readlink({"read the symbolic link", {}}, symlink, size);
}

Listing FileSystem::list(const Handle& directory, Listing::Detail detail,
                         std::uint64_t most) const {
  return Listing(protocol_, directory, detail, sizes_.list, most);
}

Task<Outcome<FileSystemUsage>> FileSystem::usage(std::optional<Handle> object) {
  return protocol_->usage({"ask for the free space", {}}, object.value_or(root_));
}

Task<Outcome<FileSystemInfo>> FileSystem::info(std::optional<Handle> object) {
  return protocol_->info({"ask for the server's limits", {}}, object.value_or(root_));
}

Task<Outcome<NameLimits>> FileSystem::name_limits(std::optional<Handle> object) {
  return protocol_->name_limits({"ask for the name limits", {}}, object.value_or(root_));
}

Task<Outcome<Acls>> FileSystem::acls(Handle object, std::uint32_t reply_max) {
  return protocol_->acls({"read the access control list", {}}, object, reply_max);
}

Task<Outcome<Ok>> FileSystem::set_acls(Handle object, Acls acls, bool with_defaults) {
  return protocol_->set_acls({"change the access control list", {}}, object, std::move(acls),
                             with_defaults);
}

Task<Outcome<Nfs4Acl>> FileSystem::nfs4_acl(Handle object, std::uint32_t reply_max) {
  return protocol_->nfs4_acl({"read the access control list", {}}, object, reply_max);
}

Task<Outcome<Ok>> FileSystem::set_nfs4_acl(Handle object, Nfs4Acl acl) {
  return protocol_->set_nfs4_acl({"change the access control list", {}}, object, std::move(acl));
}

Task<Outcome<Ok>> FileSystem::ping() {
  return protocol_->ping({"ping the server", {}});
}

}  // namespace stag::nfs::client
