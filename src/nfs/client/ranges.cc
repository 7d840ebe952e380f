// Parts of files, and extended attributes.
#include <algorithm>

#include "nfs/client/file_system.h"
#include "nfs/client/protocol/protocol.h"

namespace stag::nfs::client {
namespace {

constexpr OperationContext kCopyingWithin{"copy within the server", {}};
constexpr OperationContext kCopyingBetween{"copy from another server", {}};
// Times that a copy begins again because the server has restarted in between.
constexpr int kCopiesMost = 3;

Error cancelled(OperationContext context, const rpc::Channel& channel) {
  return Error::of_call(context, rpc::CallError::transport(Reason::Cancelled, channel.where()));
}

}  // namespace

Task<Outcome<std::optional<std::uint64_t>>> FileSystem::seek(Handle file, std::uint64_t offset,
                                                             Content what) {
  return protocol_->seek({"look for data", {}}, file, offset, what);
}

Task<Outcome<SparsePart>> FileSystem::read_plus(Handle file, std::uint64_t offset,
                                                MutableBytes to) {
  return protocol_->read_plus({"read", {}}, file, offset,
                              to.first(std::min<std::size_t>(to.size(), sizes_.read)));
}

Task<Outcome<Ok>> FileSystem::allocate(File file, FileRange range) {
  return protocol_->allocate({"reserve space", {}}, file, range);
}

Task<Outcome<Ok>> FileSystem::deallocate(File file, FileRange range) {
  return protocol_->deallocate({"make a hole", {}}, file, range);
}

Task<Outcome<Ok>> FileSystem::clone_range(Handle from, FileRange range, File to,
                                          std::uint64_t to_offset) {
  return protocol_->clone({"clone within the server", {}}, from, range, to, to_offset);
}

Task<Outcome<CopySource>> FileSystem::notify_copy(File file, Address reader) {
  return protocol_->notify_copy(kCopyingBetween, file, std::move(reader));
}

Task<Outcome<ReadPart>> FileSystem::read_notified(CopySource from, std::uint64_t offset,
                                                  MutableBytes to) {
  return protocol_->read_notified(kCopyingBetween, std::move(from), offset,
                                  to.first(std::min<std::size_t>(to.size(), sizes_.read)));
}

Task<Outcome<std::uint64_t>> FileSystem::copy_range(CopySource from, FileRange range, File to,
                                                    std::uint64_t to_offset) {
  return copy_range(std::move(from), range, to, to_offset, CopyWatch());
}

Task<Outcome<std::uint64_t>> FileSystem::copy_range(CopySource from, FileRange range, File to,
                                                    std::uint64_t to_offset, CopyWatch watch) {
  const OperationContext context = from.notice ? kCopyingBetween : kCopyingWithin;
  for (int attempt = 0; attempt < kCopiesMost; ++attempt) {
    std::uint64_t done = 0;
    const auto tell = [&watch, &done](std::uint64_t more) {
      if (watch.progress) watch.progress(done + more);
    };
    const CopyWatch of_part{tell, watch.cancel};
    std::optional<Verifier> unstable;  // of data that may be lost
    bool lost = false;
    while (done < range.length && !lost) {
      if (watch.cancel.cancelled()) co_return Failure{cancelled(context, channel())};
      const FileRange rest{range.offset + done, range.length - done};
      const Outcome<CopyPart> part =
          co_await protocol_->copy(context, from, rest, to, to_offset + done, of_part);
      if (!part) co_return Failure{part.error()};
      if (part->count == 0) break;
      done += part->count;
      tell(0);
      if (part->committed != Stability::Unstable) continue;
      lost = unstable && *unstable != part->verifier;
      unstable = part->verifier;
    }
    if (!unstable && !lost) co_return done;
    const Outcome<Verifier> committed = co_await protocol_->commit(context, to.handle, 0, 0);
    if (!committed) co_return Failure{committed.error()};
    if (!lost && *committed == *unstable) co_return done;
  }
  co_return Failure{Error::of_protocol(context, "restarts again and again")};
}

// The views that the Protocol is given live in this frame.
Task<Outcome<std::string>> FileSystem::xattr(Handle object, std::string name) {
  co_return co_await protocol_->xattr({"read the extended attribute", name}, object, name);
}

Task<Outcome<Ok>> FileSystem::set_xattr(Handle object, std::string name, std::string value,
                                        XattrMode mode) {
  co_return co_await protocol_->set_xattr({"set the extended attribute", name}, object, name,
                                          bytes_of(value), mode);
}

Task<Outcome<std::vector<std::string>>> FileSystem::list_xattrs(Handle object) {
  return protocol_->list_xattrs({"list the extended attributes", {}}, object);
}

Task<Outcome<Ok>> FileSystem::remove_xattr(Handle object, std::string name) {
  co_return co_await protocol_->remove_xattr({"remove the extended attribute", name}, object, name);
}

}  // namespace stag::nfs::client
