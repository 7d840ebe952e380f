// LOCK, LOCKT and LOCKU (RFC 8881 9, 18.10-12).
#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

// By another owner.
Step second_lock(nfs_lock_type4 type, std::uint64_t offset, std::uint64_t length) {
  return lock({.open = "f",
               .held = "m",
               .type = type,
               .offset = offset,
               .length = length,
               .owner = "second"});
}
Step of_range(std::uint64_t offset, std::uint64_t length) {
  return lock({.open = "f", .held = "l", .offset = offset, .length = length});
}

std::string names_the_range(Scene&, const COMPOUND4res& results) {
  const OpResult& last = results.resarray.back();
  const LOCK4denied& denied =
      last.resop == OP_LOCK ? last.oplock().denied() : last.oplockt().denied();
  return denied.offset == 10 && denied.length == 10 ? "" : "the range is not that of the lock";
}

// Each wants what the other one has.
Task<Verdict> wait_for_each_other(Scene& scene) {
  std::string trouble = co_await prepare(scene, a_file());
  if (trouble.empty()) trouble = co_await prepare(scene, a_lock());
  Steps second;
  second.push_back(at("f"));
  second.push_back(second_lock(WRITE_LT, 30, 10));
  if (trouble.empty()) trouble = co_await prepare(scene, std::move(second));
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  Steps waiting;
  waiting.push_back(at("f"));
  waiting.push_back(lock({.held = "m", .type = WRITEW_LT, .offset = 10, .owner = "second"}));
  const Reply denied = co_await send(scene, waiting);
  const Verdict first = expect(denied, {NFS4ERR_DENIED}, "the first one that waits");
  if (first.outcome != Outcome::Pass) co_return first;
  waiting.back() = lock({.held = "l", .type = WRITEW_LT, .offset = 30});
  const Reply reply = co_await send(scene, waiting);
  co_return expect(reply, {NFS4ERR_DEADLOCK, NFS4ERR_DENIED}, "the second one that waits");
}

Scripts locking() {
  return {
      {.note = "a range for writing", .before = {a_file()}, .steps = a_lock()},
      {.note = "a range for reading", .before = {a_file()}, .steps = a_lock(READ_LT)},
      {.note = "a range for writing, ready to wait",
       .before = {a_file()},
       .steps = a_lock(WRITEW_LT)},
      {.note = "to the end of the file", .before = {a_file()}, .steps = a_lock(WRITE_LT, 5, kLast)},
      {.note = "a second range of the same owner",
       .before = {a_file(), a_lock()},
       .steps = {at("f"), lock({.held = "l", .offset = 30})}},
      {.note = "a range that another owner has",
       .before = {a_file(), a_lock()},
       .steps = {at("f"), second_lock(READ_LT, 15, 1)},
       .expect = {NFS4ERR_DENIED},
       .check = names_the_range},
      {.note = "a range that another owner reads",
       .before = {a_file(), a_lock(READ_LT)},
       .steps = {at("f"), second_lock(READ_LT, 15, 1)}},
      {.note = "beside a range of another owner",
       .before = {a_file(), a_lock()},
       .steps = {at("f"), second_lock(WRITE_LT, 20, 10)}},
      {.note = "by another user than the one who opened the file",
       .before = {a_file()},
       .steps = a_lock(),
       .expect = {NFS4_OK, NFS4ERR_ACCESS, NFS4ERR_WRONG_CRED},
       .stranger = true},
      {.note = "of no bytes",
       .before = {a_file()},
       .steps = {at("f"), of_range(0, 0)},
       .expect = {NFS4ERR_INVAL}},
      {.note = "beyond the last offset",
       .before = {a_file()},
       .steps = {at("f"), of_range(kLast - 5, 10)},
       .expect = {NFS4ERR_INVAL, NFS4ERR_BAD_RANGE}},
      {.note = "part of a range of its own",
       .before = {a_file(), a_lock()},
       .steps = {at("f"), lock({.held = "l", .offset = 15, .length = 10})},
       .expect = {NFS4_OK, NFS4ERR_LOCK_RANGE}},
  };
}

// Where more counts than the range: the mode of the open, other waiters, the object.
Scripts locking_otherwise() {
  return {
      {.note = "for writing, of a file that is open for reading",
       .before = {a_file(),
                  {own(), open({.name = "f", .access = kRead, .owner = "reader", .as = "r"})}},
       .steps = {at("r"), lock({.open = "r", .held = "l"})},
       .expect = {NFS4ERR_OPENMODE}},
      {.note = "for reading, of a file that is open for writing",
       .before = {{own(), open({.name = "f", .access = kWrite, .create = UNCHECKED4})}},
       .steps = a_lock(READ_LT),
       .expect = {NFS4ERR_OPENMODE, NFS4_OK}},
      {.note = "for writing, what it has for reading",
       .before = {a_file(), a_lock(READ_LT)},
       .steps = {at("f"), lock({.held = "l", .offset = 10})},
       .expect = {NFS4_OK, NFS4ERR_LOCK_NOTSUPP}},
      asked(OP_LOCK, NFS4ERR_DEADLOCK, "two owners that wait for each other", kAll,
            wait_for_each_other),
      {.note = "a reclaim after the grace period",
       .before = {a_file()},
       .steps = {at("f"), lock({.open = "f", .held = "l", .reclaim = true})},
       .expect = {NFS4ERR_NO_GRACE}},
      {.note = "of a folder",
       .before = {a_file()},
       .steps = {at("dir"), of_range(0, 10)},
       .expect = {NFS4ERR_ISDIR, NFS4ERR_BAD_STATEID}},
      {.note = "of a FIFO",
       .minors = kSessions,
       .before = {a_file()},
       .steps = {at("fifo"), of_range(0, 10)},
       .expect = {NFS4ERR_WRONG_TYPE, NFS4ERR_BAD_STATEID, NFS4ERR_INVAL}},
      {.note = "of a symbolic link",
       .minors = kSessions,
       .before = {a_file()},
       .steps = {at("link"), of_range(0, 10)},
       .expect = {NFS4ERR_SYMLINK, NFS4ERR_WRONG_TYPE, NFS4ERR_BAD_STATEID}},
      {.note = "a lock stateid that nobody gave",
       .before = {a_file()},
       .steps = {at("f"), lock({.held = "garbage"})},
       .expect = {NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID, NFS4ERR_EXPIRED}},
  };
}

Scripts testing() {
  return {
      {.note = "a range that is free",
       .before = {a_file()},
       .steps = {at("f"), lockt(WRITE_LT, 0, 10)}},
      {.note = "a range that another owner has",
       .before = {a_file(), a_lock()},
       .steps = {at("f"), lockt(READ_LT, 0, kLast)},
       .expect = {NFS4ERR_DENIED},
       .check = names_the_range},
      {.note = "a range of its own",
       .before = {a_file(), a_lock()},
       .steps = {at("f"), lockt(WRITE_LT, 0, kLast, "locker")}},
      {.note = "a range that another owner reads",
       .before = {a_file(), a_lock(READ_LT)},
       .steps = {at("f"), lockt(READ_LT, 0, kLast)}},
      {.note = "of a file that this user may not read",
       .steps = {at("secret"), lockt(READ_LT, 0, 10)},
       .expect = {NFS4_OK, NFS4ERR_ACCESS, NFS4ERR_WRONG_CRED},
       .stranger = true},
      {.note = "of no bytes",
       .steps = {at("file"), lockt(READ_LT, 0, 0)},
       .expect = {NFS4ERR_INVAL}},
      {.note = "beyond the last offset",
       .steps = {at("file"), lockt(READ_LT, kLast - 5, 10)},
       .expect = {NFS4ERR_INVAL, NFS4ERR_BAD_RANGE}},
      {.note = "of a folder",
       .steps = {at("dir"), lockt(READ_LT, 0, 10)},
       .expect = {NFS4ERR_ISDIR}},
      {.note = "of a FIFO",
       .minors = kSessions,
       .steps = {at("fifo"), lockt(READ_LT, 0, 10)},
       .expect = {NFS4ERR_WRONG_TYPE, NFS4ERR_INVAL}},
      {.note = "of a symbolic link",
       .minors = kSessions,
       .steps = {at("link"), lockt(READ_LT, 0, 10)},
       .expect = {NFS4ERR_SYMLINK, NFS4ERR_WRONG_TYPE, NFS4ERR_INVAL}},
  };
}

Scripts unlocking() {
  const std::vector<Steps> locked{a_file(), a_lock()};
  return {
      {.note = "what is locked", .before = locked, .steps = {at("f"), locku("l", 10, 10)}},
      {.note = "what is not locked", .before = locked, .steps = {at("f"), locku("l", 100, 10)}},
      {.note = "by another user than the one who locked it",
       .before = locked,
       .steps = {at("f"), locku("l", 10, 10)},
       .expect = {NFS4_OK, NFS4ERR_ACCESS, NFS4ERR_WRONG_CRED},
       .stranger = true},
      {.note = "of a folder",
       .minors = k40,
       .before = locked,
       .steps = {at("dir"), locku("l", 10, 10)},
       .expect = {NFS4ERR_ISDIR, NFS4ERR_BAD_STATEID}},
      {.note = "part of what is locked",
       .before = locked,
       .steps = {at("f"), locku("l", 12, 2)},
       .expect = {NFS4_OK, NFS4ERR_LOCK_RANGE}},
      {.note = "of no bytes",
       .before = locked,
       .steps = {at("f"), locku("l", 0, 0)},
       .expect = {NFS4ERR_INVAL}},
      {.note = "beyond the last offset",
       .before = locked,
       .steps = {at("f"), locku("l", kLast - 5, 10)},
       .expect = {NFS4ERR_INVAL, NFS4ERR_BAD_RANGE}},
      {.note = "a stateid that nobody gave",
       .before = locked,
       .steps = {at("f"), locku("garbage")},
       .expect = {NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID, NFS4ERR_EXPIRED}},
      {.note = "the stateid of an earlier time",
       .before = {a_file(), a_lock(), {at("f"), lock({.held = "l", .offset = 50})}},
       .steps = {at("f"), locku("old l")},
       .expect = {NFS4ERR_OLD_STATEID}},
      {.note = "the stateid of a later time",
       .before = locked,
       .steps = {at("f"), locku("future l")},
       .expect = {NFS4ERR_BAD_STATEID}},
      {.note = "and the range is free for others",
       .before = {a_file(), a_lock(), {at("f"), locku("l", 10, 10)}},
       .steps = {at("f"), second_lock(WRITE_LT, 10, 10)}},
  };
}

}  // namespace

Scripts lock_cases() {
  Scripts all = locking();
  append(all, locking_otherwise());
  append(all, testing());
  append(all, unlocking());
  return all;
}

}  // namespace stag::conform::nfs4
