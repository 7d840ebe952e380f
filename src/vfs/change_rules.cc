#include "vfs/change_rules.h"

namespace stag::vfs {
namespace {

bool needs_owner(const SetAttributes& changes) {
  return changes.mode || changes.uid || changes.gid || changes.accessed.how == SetTime::How::To ||
         changes.modified.how == SetTime::How::To;
}

constexpr std::uint32_t kSecond = 1'000'000'000;

bool is_time(const SetTime& change) {
  return change.how != SetTime::How::To || change.time.nanoseconds < kSecond;
}

}  // namespace

std::optional<Status> fault_of_values(const SetAttributes& changes) {
  const bool valid = changes.uid != kNoId && changes.gid != kNoId && is_time(changes.accessed) &&
                     is_time(changes.modified);
  return valid ? std::nullopt : std::optional(Status::Invalid);
}

std::optional<Status> fault_of_change(const Attributes& object, const Credentials& who,
                                      const SetAttributes& changes) {
  if (who.uid != 0) {
    if (needs_owner(changes) && who.uid != object.uid) return Status::Perm;
    if (changes.uid && *changes.uid != object.uid) return Status::Perm;
    if (changes.gid && *changes.gid != object.gid && !who.in_group(*changes.gid))
      return Status::Perm;
  }
  // No file system keeps a mode of symbolic links, and some change it and fail nevertheless.
  if (changes.mode && object.type == FileType::Symlink) return Status::NotSupported;
  if (!changes.size) return std::nullopt;
  if (object.type == FileType::Directory) return Status::IsDirectory;
  if (object.type != FileType::Regular) return Status::Invalid;
  if (*changes.size > kLargestFile) return Status::FileTooBig;
  return std::nullopt;
}

}  // namespace stag::vfs
