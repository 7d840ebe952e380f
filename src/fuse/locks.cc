// Locks of programs, which the server keeps: fcntl(2) by process, flock(2) by open file.
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>

#include "base/pause.h"
#include "fuse/operations.h"
#include "fuse/values.h"

namespace stag::fuse {
namespace {

using nfs::client::File;
using nfs::client::FileLock;
using nfs::client::LockOwner;
using nfs::client::LockPiece;
using nfs::client::Outcome;
using nfs::client::Status;

// A program that waits for a lock has the mount ask again and again.
constexpr Duration kFirstPause = std::chrono::milliseconds(20);
constexpr Duration kLongestPause = std::chrono::seconds(1);
constexpr FileLock kWholeFile{};

FileLock lock_of(const struct flock& lock) {
  return {static_cast<std::uint64_t>(lock.l_start), static_cast<std::uint64_t>(lock.l_len),
          lock.l_type == F_WRLCK};
}

bool is_whole(const FileLock& range) {
  return range.offset == kWholeFile.offset && range.length == kWholeFile.length;
}

// EBADF: without the mode of open(2) that a lock needs. ENOLCK: of a file that version 4.0 uses
// without an open, as its name is not known, or of a server that has no locks. Nothing would keep
// the lock, so it is not granted.
int errno_of_lock(const nfs::client::Error& error) {
  if (error.is(Status::NotSupported)) return ENOLCK;
  return error.is(Status::Access) ? EBADF : errno_of(error);
}

}  // namespace

LockOwner Operations::owner_of(LockKind kind, std::uint64_t number) {
  return {static_cast<std::uint64_t>(kind), number};
}

Task<Turns::Turn> Operations::turn_of_locks(std::uint64_t number, LockOwner owner) {
  return lock_turns_.alone({number, owner.space, owner.number});
}

Task<void> Operations::getlk(fuse_req_t from, std::uint64_t number, fuse_file_info info,
                             struct flock lock) {
  Request request(context_, from);
  const File file = file_of(request, number, info.fh);
  if (file.handle.empty()) co_return;
  co_await unlocks_.ended(number);
  const Outcome<std::optional<FileLock>> other =
      co_await files_.test_lock(file, owner_of(LockKind::Posix, info.lock_owner), lock_of(lock));
  if (!other) co_return request.fail(errno_of_lock(other.error()));
  lock.l_whence = SEEK_SET;
  lock.l_pid = 0;  // it belongs to no process of this machine that is known
  lock.l_type = F_UNLCK;
  if (*other) {
    lock.l_type = (*other)->exclusive ? F_WRLCK : F_RDLCK;
    lock.l_start = static_cast<off_t>((*other)->offset);
    lock.l_len = static_cast<off_t>((*other)->length);
  }
  if (const fuse_req_t waiting = request.take()) fuse_reply_lock(waiting, &lock);
}

Task<void> Operations::setlk(fuse_req_t from, std::uint64_t number, fuse_file_info info,
                             struct flock lock, bool waits) {
  const bool unlocks = lock.l_type == F_UNLCK;
  Request request(context_, from, waits && !unlocks ? Wait::Lock : Wait::Other);
  const LockOwner owner = owner_of(LockKind::Posix, info.lock_owner);
  if (unlocks)
    co_await commit_and_unlock(request, number, info.fh, owner, lock_of(lock));
  else
    co_await lock_file(request, number, info.fh, owner, lock_of(lock), waits);
}

Task<void> Operations::flock(fuse_req_t from, std::uint64_t number, fuse_file_info info, int how) {
  const bool unlocks = (how & LOCK_UN) != 0, waits = !unlocks && (how & LOCK_NB) == 0;
  Request request(context_, from, waits ? Wait::Lock : Wait::Other);
  const LockOwner owner = owner_of(LockKind::Flock, info.lock_owner);
  const FileLock wanted{0, 0, (how & LOCK_EX) != 0};
  if (unlocks)
    co_await commit_and_unlock(request, number, info.fh, owner, kWholeFile);
  else
    co_await lock_file(request, number, info.fh, owner, wanted, waits);
}

// close(2): the server keeps what was written, and a process that closes a file, however often it
// has it open, has no more locks of it.
Task<void> Operations::flush(fuse_req_t from, std::uint64_t number, fuse_file_info info) {
  Request request(context_, from, Wait::Close);
  Outcome<Ok> committed = co_await unstable_writes_.commit(number);
  // A process that was forked from the one that writes closes the file, too.
  const Outcome<Ok> done = told(number, info.fh, std::move(committed), Tell::Again);
  if (!done) request.fail(done.error());
  const Outcome<Ok> settled = co_await settling_.settle(number);
  if (!settled) request.fail(settled.error());
  new_files_.end(number);
  if (!files_.has_locks()) co_return request.done();
  const LockOwner owner = owner_of(LockKind::Posix, info.lock_owner);
  const Turns::Turn turn = co_await turn_of_locks(number, owner);
  co_await unlock(request, number, owner, kWholeFile);
}

Task<void> Operations::lock_file(Request& request, std::uint64_t number, std::uint64_t opened,
                                 LockOwner owner, FileLock wanted, bool waits) {
  Duration length = kFirstPause;
  Outcome<Ok> locked = co_await try_lock(request, number, opened, owner, wanted);
  while (!locked && locked.error().is(Status::Locked) && waits && request.waits() &&
         !stop_.cancelled()) {
    co_await pause(context_.loop, length, CancelToken(stop_));
    length = std::min(length * 2, kLongestPause);
    locked = co_await try_lock(request, number, opened, owner, wanted);
  }
  if (!locked) request.fail(errno_of_lock(locked.error()));
}

// A program that was interrupted calls again, while the server may yet grant what nobody waits for:
// that is taken back before the server is asked again. The kernel does not wait for the LOCKU of a
// close(2), which a LOCK by another connection could overtake; that LOCKU may wait for a turn, so
// that none is taken before.
Task<Outcome<Ok>> Operations::try_lock(Request& request, std::uint64_t number, std::uint64_t opened,
                                       LockOwner owner, FileLock wanted) {
  co_await unlocks_.ended(number);
  const Turns::Turn turn = co_await turn_of_locks(number, owner);
  if (!request.waits()) co_return Ok{};
  const File file = file_of(request, number, opened);
  if (file.handle.empty()) co_return Ok{};
  open_files_.on_lock(number, opened, owner);
  std::vector<LockPiece> before = files_.locks_within(open_files_.of(number), owner, wanted);
  const Outcome<Ok> locked = co_await files_.lock(file, owner, wanted);
  if (!locked) co_return locked;
  outdate(request, number);
  const fuse_req_t waiting = request.take();
  if (waiting != nullptr && fuse_reply_err(waiting, 0) == 0) co_return Ok{};
  co_await take_back(file, owner, wanted, std::move(before));
  co_return Ok{};
}

// A program that has locked a file sees what others did under their locks (RFC 8881 10.3.2): the
// next read(2) asks for the attributes, and the kernel drops its pages where size or time of
// modification moved. What it knows is not good for long where the program was given up, whose lock
// is taken back.
void Operations::outdate(const Request& request, std::uint64_t number) {
  new_files_.outdate(number);
  inodes_.on_told(number);
  if (request.waits()) invalidations_.attributes(number);
}

// No program waits for it any more. POSIX: a program that is interrupted has the locks that it had
// before; no other gets them in between.
Task<void> Operations::take_back(File file, LockOwner owner, FileLock locked,
                                 std::vector<LockPiece> before) {
  for (const LockPiece& piece : before) {
    if (!piece.held)
      static_cast<void>(co_await files_.unlock(file, owner, piece.lock));
    else if (piece.lock.exclusive != locked.exclusive)
      static_cast<void>(co_await files_.lock(file, owner, piece.lock));
  }
}

// What was written under a lock is on stable storage before another one gets it (RFC 8881 10.3.2):
// what is written again later, after a restart of the server, would go over what that one wrote.
// All of it in one turn, so that the LOCKU of a program that was interrupted, and locks again,
// comes before its LOCK.
Task<void> Operations::commit_and_unlock(Request& request, std::uint64_t number,
                                         std::uint64_t opened, LockOwner owner, FileLock range) {
  const Turns::Turn turn = co_await turn_of_locks(number, owner);
  Outcome<Ok> committed = co_await unstable_writes_.commit(number);
  const Outcome<Ok> done = told(number, opened, std::move(committed), Tell::Again);
  if (!done) request.fail(done.error());
  co_await unlock(request, number, owner, range);
}

// An owner may have locked by each of several opens; nothing is locked without one, which files of
// version 4.0 may be used by.
Task<void> Operations::unlock(Request& request, std::uint64_t number, LockOwner owner,
                              FileLock range) {
  int failed = 0;
  for (const File& file : open_files_.of(number)) {
    if (file.open == 0) continue;
    const Outcome<Ok> unlocked = co_await files_.unlock(file, owner, range);
    if (!unlocked) failed = errno_of_lock(unlocked.error());
  }
  if (failed == 0 && is_whole(range)) open_files_.on_unlock(number, owner);
  request.fail(failed);
}

}  // namespace stag::fuse
