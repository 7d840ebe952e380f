// READ, WRITE, COMMIT, and stateids that are not good for them (RFC 8881 8.2, 18.3, 18.22, 18.32).
#include "conform/nfs4/cases.h"
#include "conform/nfs4/checks.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

Scripts reading_data() {
  return {
      {.note = "with the anonymous stateid",
       .steps = {at("file"), read("anonymous", 0, 10)},
       .check = reads("0123456789", false)},
      {.note = "with the bypass stateid",
       .steps = {at("file"), read("bypass", 0, 10)},
       .check = reads("0123456789", false)},
      {.note = "past the end",
       .steps = {at("file"), read("anonymous", 1000, 10)},
       .check = reads("", true)},
      {.note = "up to the end",
       .steps = {at("file"), read("anonymous", 90, 10)},
       .check = reads("0123456789", true)},
      {.note = "with an open",
       .before = {{own(), open({.name = "f", .create = UNCHECKED4})}},
       .steps = {at("f"), read("f", 0, 10)}},
      {.note = "no bytes", .steps = {at("file"), read("anonymous", 0, 0)}},
      {.note = "beyond the last offset",
       .steps = {at("file"), read("anonymous", kLast - 5, 10)},
       .expect = {NFS4ERR_INVAL, NFS4_OK}},
  };
}

Scripts refused_reads() {
  return {
      {.note = "of a folder",
       .steps = {at("dir"), read("anonymous", 0, 10)},
       .expect = {NFS4ERR_ISDIR}},
      {.note = "of a symbolic link",
       .minors = k40,
       .steps = {at("link"), read("anonymous", 0, 10)},
       .expect = {NFS4ERR_INVAL, NFS4ERR_SYMLINK}},
      {.note = "of a symbolic link",
       .minors = kSessions,
       .steps = {at("link"), read("anonymous", 0, 10)},
       .expect = {NFS4ERR_SYMLINK, NFS4ERR_WRONG_TYPE}},
      {.note = "of a FIFO",
       .minors = k40,
       .steps = {at("fifo"), read("anonymous", 0, 10)},
       .expect = {NFS4ERR_INVAL}},
      {.note = "of a FIFO",
       .minors = kSessions,
       .steps = {at("fifo"), read("anonymous", 0, 10)},
       .expect = {NFS4ERR_WRONG_TYPE}},
      {.note = "of another user's file of mode 0600",
       .steps = {at("secret"), read("anonymous", 0, 10)},
       .expect = {NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "with an open for writing only",
       .before = {{own(), open({.name = "f", .access = kWrite, .create = UNCHECKED4})}},
       .steps = {at("f"), read("f", 0, 10)},
       .expect = {NFS4ERR_OPENMODE, NFS4_OK}},
  };
}

Scripts writing_data() {
  return {
      {.note = "with an open",
       .before = {{own(), open({.name = "f", .create = UNCHECKED4})}},
       .steps = {at("f"), write("f", 0, "hello")},
       .check = wrote(5),
       .proof = holds("f", reads_what_was_written(0, "hello"))},
      {.note = "and read back",
       .before = {{own(), open({.name = "f", .create = UNCHECKED4})},
                  {at("f"), write("f", 3, "hello")}},
       .steps = {at("f"), read("f", 0, 100)},
       .check = reads_what_was_written(3, "hello")},
      {.note = "no bytes",
       .before = {{own(), open({.name = "f", .create = UNCHECKED4})}},
       .steps = {at("f"), write("f", 0, "")},
       .check = wrote(0)},
      {.note = "unstable",
       .before = {{own(), open({.name = "f", .create = UNCHECKED4})}},
       .steps = {at("f"), write("f", 0, "hello", UNSTABLE4)},
       .check = wrote(5, UNSTABLE4),
       .proof = holds("f", reads_what_was_written(0, "hello"))},
  };
}

Scripts refused_writes() {
  return {
      {.note = "with an open for reading only",
       .before = {{own(), open({.name = "f", .create = UNCHECKED4})},
                  {own(), open({.name = "f", .access = kRead, .owner = "reader", .as = "r"})}},
       .steps = {at("f"), write("r", 0, "hello")},
       .expect = {NFS4ERR_OPENMODE}},
      {.note = "to a folder",
       .steps = {at("dir"), write("anonymous", 0, "hello")},
       .expect = {NFS4ERR_ISDIR}},
      {.note = "to a symbolic link",
       .minors = k40,
       .steps = {at("link"), write("anonymous", 0, "hello")},
       .expect = {NFS4ERR_INVAL, NFS4ERR_SYMLINK}},
      {.note = "to a symbolic link",
       .minors = kSessions,
       .steps = {at("link"), write("anonymous", 0, "hello")},
       .expect = {NFS4ERR_SYMLINK, NFS4ERR_WRONG_TYPE}},
      {.note = "to a FIFO",
       .minors = k40,
       .steps = {at("fifo"), write("anonymous", 0, "hello")},
       .expect = {NFS4ERR_INVAL}},
      {.note = "to a FIFO",
       .minors = kSessions,
       .steps = {at("fifo"), write("anonymous", 0, "hello")},
       .expect = {NFS4ERR_WRONG_TYPE}},
      {.note = "to another user's file of mode 0600",
       .steps = {at("secret"), write("anonymous", 0, "hello")},
       .expect = {NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "at the last possible byte",
       .before = {{own(), open({.name = "f", .create = UNCHECKED4})}},
       .steps = {at("f"), write("f", kLast - 1, "hello")},
       .expect = {NFS4ERR_FBIG, NFS4ERR_INVAL}},
  };
}

Scripts committing() {
  return {
      {.note = "a file that was written",
       .before = {{own(), open({.name = "f", .create = UNCHECKED4})},
                  {at("f"), write("f", 0, "hello", UNSTABLE4)}},
       .steps = {at("f"), commit()}},
      {.note = "of a folder", .steps = {at("dir"), commit()}, .expect = {NFS4ERR_ISDIR}},
      {.note = "of a symbolic link",
       .minors = k40,
       .steps = {at("link"), commit()},
       .expect = {NFS4ERR_SYMLINK, NFS4ERR_INVAL}},
      {.note = "of a symbolic link",
       .minors = kSessions,
       .steps = {at("link"), commit()},
       .expect = {NFS4ERR_SYMLINK, NFS4ERR_WRONG_TYPE}},
      {.note = "of a FIFO",
       .minors = k40,
       .steps = {at("fifo"), commit()},
       .expect = {NFS4ERR_INVAL}},
      {.note = "of a FIFO",
       .minors = kSessions,
       .steps = {at("fifo"), commit()},
       .expect = {NFS4ERR_WRONG_TYPE}},
      {.note = "of another user's file of mode 0600",
       .steps = {at("secret"), commit()},
       .expect = {NFS4ERR_ACCESS, NFS4_OK},
       .stranger = true},
  };
}

// An operation that takes the stateid of an open.
struct Holder {
  nfs_opnum4 operation;
  Minors minors = kAll;
  bool special = true;  // it takes special stateids, too

  Step make(std::string state) const { return by_stateid(operation, std::move(state)); }
};

std::vector<Holder> holders() {
  return {
      {OP_READ},
      {OP_WRITE},
      {OP_SETATTR},
      {OP_OPEN_DOWNGRADE, kAll, false},
      {OP_CLOSE, kAll, false},
      {OP_LOCK, kAll, false},
      {OP_ALLOCATE, k42},
      {OP_DEALLOCATE, k42},
      {OP_SEEK, k42},
      {OP_READ_PLUS, k42},
      {OP_IO_ADVISE, k42},
  };
}

// What is wrong with a stateid, and what it draws.
struct BadState {
  std::string note, name;
  Minors minors;
  Statuses expect;
  bool closed = false;      // the open is closed before
  bool downgraded = false;  // the stateid is renewed before
};

const std::vector<BadState>& bad_states() {
  static const std::vector<BadState> kStates{
      {"a stateid that nobody gave",
       "garbage",
       kAll,
       {NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID, NFS4ERR_EXPIRED}},
      {"the stateid of a later time", "future f", kAll, {NFS4ERR_BAD_STATEID}},
      {"the stateid of an earlier time", "old f", kAll, {NFS4ERR_OLD_STATEID}, false, true},
      {"the stateid of a file that is closed",
       "f",
       kAll,
       {NFS4ERR_BAD_STATEID, NFS4ERR_OLD_STATEID, NFS4ERR_EXPIRED},
       true},
      {"the invalid special stateid", "invalid", kSessions, {NFS4ERR_BAD_STATEID}},
  };
  return kStates;
}

Script bad_state_case(const Holder& holder, const BadState& bad) {
  Script script;
  script.note = bad.note;
  script.minors = holder.minors & bad.minors;
  script.before = {{own(), open({.name = "f", .create = UNCHECKED4})}};
  // From read and write to both again, so that the stateid is renewed and no right is lost.
  if (bad.downgraded) script.before.push_back({at("f"), open_downgrade("f", kBoth)});
  if (bad.closed) script.before.push_back({at("f"), close("f")});
  script.steps = {at("f"), holder.make(bad.name)};
  script.expect = bad.expect;
  script.section = "8881 8.2.4";
  if (script.minors == k40) script.section = "7530 9.1.4.4";
  return script;
}

}  // namespace

Scripts data_cases() {
  Scripts all = reading_data();
  append(all, refused_reads());
  append(all, writing_data());
  append(all, refused_writes());
  append(all, committing());
  return all;
}

Scripts stateid_cases() {
  Scripts all;
  for (const Holder& holder : holders()) {
    for (const BadState& bad : bad_states()) all.push_back(bad_state_case(holder, bad));
    Script other;
    other.note = "the stateid of another file";
    other.minors = holder.minors;
    other.before = {{own(), open({.name = "f", .create = UNCHECKED4})},
                    {own(), open({.name = "g", .create = UNCHECKED4})}};
    other.steps = {at("g"), holder.make("f")};
    other.expect = {NFS4ERR_BAD_STATEID};
    all.push_back(std::move(other));
    if (holder.special) continue;
    Script special;
    special.note = "the anonymous stateid";
    special.minors = holder.minors;
    special.before = {{own(), open({.name = "f", .create = UNCHECKED4})}};
    special.steps = {at("f"), holder.make("anonymous")};
    special.expect = {NFS4ERR_BAD_STATEID};
    all.push_back(std::move(special));
  }
  for (const Holder& holder : holders()) {
    Script current;
    current.note = "the current stateid, where there is none";
    current.minors = holder.minors & kSessions;
    current.before = {{own(), open({.name = "f", .create = UNCHECKED4})}};
    current.steps = {at("f"), holder.make("current")};
    current.expect = {NFS4ERR_BAD_STATEID};
    current.section = "8881 16.2.3.1.2";
    all.push_back(std::move(current));
  }
  all.push_back({.note = "the current stateid, of an OPEN before it",
                 .minors = kSessions,
                 .steps = {own(), open({.name = "f", .create = UNCHECKED4}), getfh("f"),
                           write("current", 0, "data")},
                 .check = wrote(4),
                 .section = "8881 16.2.3.1.2"});
  return all;
}

}  // namespace stag::conform::nfs4
