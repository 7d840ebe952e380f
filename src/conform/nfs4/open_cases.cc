// OPEN, OPEN_DOWNGRADE, CLOSE and share reservations (RFC 8881 9, 18.2, 18.16, 18.18).
#include "conform/nfs4/cases.h"
#include "conform/nfs4/checks.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

constexpr std::uint32_t kDenyRead = OPEN4_SHARE_DENY_READ;
constexpr std::uint32_t kDenyWrite = OPEN4_SHARE_DENY_WRITE;
constexpr std::uint32_t kDenyBoth = OPEN4_SHARE_DENY_BOTH;

Opening creating(std::string name, createmode4 mode = UNCHECKED4) {
  return {.name = std::move(name), .create = mode};
}

Scripts creating_files() {
  return {
      {.note = "creates a file",
       .steps = {own(), open(creating("f"))},
       .proof = has_type("f", NF4REG)},
      {.note = "creates a guarded file",
       .steps = {own(), open(creating("f", GUARDED4))},
       .proof = has_type("f", NF4REG)},
      {.note = "creates an exclusive file",
       .minors = k40,
       .steps = {own(), open(creating("f", EXCLUSIVE4))},
       .proof = has_type("f", NF4REG)},
      {.note = "creates an exclusive file",
       .minors = kSessions,
       .steps = {own(), open(creating("f", EXCLUSIVE4_1))},
       .proof = has_type("f", NF4REG)},
      {.note = "an exclusive file again, with the same verifier",
       .minors = k40,
       .before = {{own(), open(creating("f", EXCLUSIVE4))}},
       .steps = {own(), open(creating("f", EXCLUSIVE4))}},
      {.note = "an exclusive file again, with the same verifier",
       .minors = kSessions,
       .before = {{own(), open(creating("f", EXCLUSIVE4_1))}},
       .steps = {own(), open(creating("f", EXCLUSIVE4_1))}},
      {.note = "an exclusive file that another verifier made",
       .minors = kSessions,
       .before = {{own(), open(creating("f", EXCLUSIVE4_1))}},
       .steps = {own(), open({.name = "f", .create = EXCLUSIVE4_1, .verifier = 9})},
       .expect = {NFS4ERR_EXIST}},
      {.note = "an exclusive file that another verifier made",
       .minors = k40,
       .before = {{own(), open(creating("f", EXCLUSIVE4))}},
       .steps = {own(), open({.name = "f", .create = EXCLUSIVE4, .verifier = 9})},
       .expect = {NFS4ERR_EXIST}},
      {.note = "a guarded file that exists",
       .before = {{own(), open(creating("f"))}},
       .steps = {own(), open(creating("f", GUARDED4))},
       .expect = {NFS4ERR_EXIST}},
      {.note = "an unchecked file that exists",
       .before = {{own(), open(creating("f"))}},
       .steps = {own(), open(creating("f"))}},
      {.note = "in a folder of another user",
       .steps = {at("dir"), open(creating("f"))},
       .expect = {NFS4ERR_ACCESS},
       .stranger = true},
  };
}

Scripts creating_with_attributes() {
  return {
      {.note = "an attribute that nobody knows",
       .steps = {own(),
                 open({.name = "f", .create = UNCHECKED4, .attributes = attribute(kUnknown, 1)})},
       .expect = {NFS4ERR_ATTRNOTSUPP}},
      {.note = "a size that no store takes",
       .steps = {own(), open({.name = "f", .create = UNCHECKED4, .attributes = size_is(kLast)})},
       .expect = {NFS4ERR_FBIG, NFS4ERR_INVAL}},
      {.note = "an attribute that cannot be set",
       .steps = {own(), open({.name = "f", .create = UNCHECKED4, .attributes = type_is(NF4REG)})},
       .expect = {NFS4ERR_INVAL}},
      {.note = "an owner that nobody knows",
       .steps = {own(), open({.name = "f",
                              .create = UNCHECKED4,
                              .attributes = owner_is("nobody knows@stag.invalid")})},
       .expect = {NFS4ERR_BADOWNER, NFS4ERR_PERM}},
  };
}

Scripts opening_files() {
  return {
      {.note = "a file that is there", .steps = {at("full"), open({.name = "inner"})}},
      {.note = "a name that is not there",
       .steps = {own(), open({.name = "f"})},
       .expect = {NFS4ERR_NOENT}},
      {.note = "a folder", .steps = {at("work"), open({.name = "dir"})}, .expect = {NFS4ERR_ISDIR}},
      {.note = "a symbolic link",
       .steps = {at("work"), open({.name = "link"})},
       .expect = {NFS4ERR_SYMLINK}},
      {.note = "a FIFO",
       .minors = k40,
       .steps = {at("work"), open({.name = "fifo"})},
       .expect = {NFS4ERR_SYMLINK, NFS4ERR_INVAL}},
      {.note = "a FIFO",
       .minors = kSessions,
       .steps = {at("work"), open({.name = "fifo"})},
       .expect = {NFS4ERR_WRONG_TYPE, NFS4ERR_SYMLINK}},
      {.note = "in a file", .steps = {at("file"), open({.name = "f"})}, .expect = {NFS4ERR_NOTDIR}},
      {.note = "another user's file of mode 0600",
       .steps = {at("work"), open({.name = "secret"})},
       .expect = {NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "no access at all",
       .steps = {at("work"), open({.name = "file", .access = 0})},
       .expect = {NFS4ERR_INVAL}},
      {.note = "a deny that no RFC knows",
       .steps = {at("work"), open({.name = "file", .deny = 8})},
       .expect = {NFS4ERR_INVAL, NFS4ERR_BADXDR}},
      {.note = "a client ID that nobody gave",
       .minors = k40,
       .steps = {at("work"), open({.name = "file", .clientid_off = kOfNobody})},
       .expect = {NFS4ERR_STALE_CLIENTID, NFS4ERR_EXPIRED}},
  };
}

Scripts opening_by_claims() {
  return {
      {.note = "a reclaim after the grace period",
       .steps = {at("file"), open({.name = "file", .claim = CLAIM_PREVIOUS})},
       .expect = {NFS4ERR_NO_GRACE, NFS4ERR_RECLAIM_BAD}},
      {.note = "by filehandle",
       .minors = kSessions,
       .steps = {at("file"), open({.name = "file", .claim = CLAIM_FH})}},
      {.note = "a folder by filehandle",
       .minors = kSessions,
       .steps = {at("dir"), open({.name = "dir", .claim = CLAIM_FH})},
       .expect = {NFS4ERR_ISDIR, NFS4ERR_INVAL}},
      {.note = "a delegation that was never given",
       .steps = {at("work"), open({.name = "file", .claim = CLAIM_DELEGATE_CUR})},
       .expect = {NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID}},
      {.note = "a delegation of an earlier client",
       .steps = {at("work"), open({.name = "file", .claim = CLAIM_DELEGATE_PREV})},
       .expect = {NFS4ERR_NOTSUPP, NFS4ERR_RECLAIM_BAD, NFS4ERR_INVAL, NFS4ERR_BAD_STATEID,
                  NFS4ERR_NO_GRACE}},
  };
}

// A second open of "f" by another owner, after one that has and denies what is named.
Script second(std::string note, std::uint32_t access, std::uint32_t deny, Opening wish,
              nfsstat4 expect) {
  Script script;
  script.note = std::move(note);
  script.before = {
      {own(), open({.name = "f", .access = access, .deny = deny, .create = UNCHECKED4})}};
  wish.name = "f";
  wish.owner = "second";
  wish.as = "g";
  script.steps = {own(), open(wish)};
  script.expect = {expect};
  script.section = "8881 9.7";
  return script;
}

// The stateid of before is "first".
Step open_again(Opening opening) {
  Step step = open(opening);
  step.take = [take = step.take, name = opening.name](Scene& scene, const OpResult& result) {
    scene.states["first"] = scene.states[name];
    take(scene, result);
  };
  return step;
}

// RFC 8881 9.9, RFC 7530 9.1.4.2, of an open file that is upgraded.
std::string same_open(Scene& scene, const COMPOUND4res&) {
  const stateid4& first = scene.states["first"];
  const stateid4& second = scene.states["f"];
  if (second.other != first.other) return "the stateid is another one than that of the open";
  return second.seqid == first.seqid + 1 ? "" : "the stateid's seqid is not the next one";
}

Scripts sharing() {
  return {
      second("two that deny nothing", kBoth, 0, {}, NFS4_OK),
      second("to read what is denied to readers", kBoth, kDenyRead, {.access = kRead},
             NFS4ERR_SHARE_DENIED),
      second("to write what is denied to writers", kBoth, kDenyWrite, {.access = kWrite},
             NFS4ERR_SHARE_DENIED),
      second("to write what is denied to readers only", kBoth, kDenyRead, {.access = kWrite},
             NFS4_OK),
      second("to deny reading to one who reads", kRead, 0, {.access = kWrite, .deny = kDenyRead},
             NFS4ERR_SHARE_DENIED),
      second("to deny all to one who writes", kWrite, 0, {.access = kRead, .deny = kDenyBoth},
             NFS4ERR_SHARE_DENIED),
      {.note = "a read that a share reservation denies",
       .before = {{own(), open({.name = "f", .deny = kDenyBoth, .create = UNCHECKED4})}},
       .steps = {at("f"), read("anonymous", 0, 4)},
       .expect = {NFS4ERR_LOCKED, NFS4ERR_SHARE_DENIED},
       .section = "8881 9.1.2"},
      {.note = "a write that a share reservation denies",
       .before = {{own(), open({.name = "f", .deny = kDenyBoth, .create = UNCHECKED4})}},
       .steps = {at("f"), write("anonymous", 0, "data")},
       .expect = {NFS4ERR_LOCKED, NFS4ERR_SHARE_DENIED},
       .section = "8881 9.1.2"},
      {.note = "the size, which a share reservation denies",
       .before = {{own(), open({.name = "f", .deny = kDenyBoth, .create = UNCHECKED4})}},
       .steps = {at("f"), setattr("anonymous", size_is(0))},
       .expect = {NFS4ERR_LOCKED, NFS4ERR_SHARE_DENIED},
       .section = "8881 9.1.2"},
      {.note = "the same owner adds access to its open",
       .before = {{own(), open({.name = "f", .access = kRead, .create = UNCHECKED4})}},
       .steps = {own(), open_again({.name = "f", .access = kWrite})},
       .check = same_open,
       .proof = holds("f", reads("", true)),
       .section = "8881 9.9"},
  };
}

Scripts downgrading() {
  return {
      {.note = "from both to reading",
       .before = {{own(), open({.name = "f", .access = kRead, .create = UNCHECKED4})},
                  {own(), open({.name = "f", .access = kBoth})}},
       .steps = {at("f"), open_downgrade("f", kRead)}},
      {.note = "to more than it had",
       .before = {{own(), open({.name = "f", .access = kRead, .create = UNCHECKED4})}},
       .steps = {at("f"), open_downgrade("f", kBoth)},
       .expect = {NFS4ERR_INVAL}},
      {.note = "to nothing",
       .before = {{own(), open(creating("f"))}},
       .steps = {at("f"), open_downgrade("f", 0)},
       .expect = {NFS4ERR_INVAL}},
      {.note = "an open file",
       .before = {{own(), open(creating("f"))}},
       .steps = {at("f"), close("f")}},
      {.note = "of a folder",
       .minors = k40,
       .before = {{own(), open(creating("f"))}},
       .steps = {at("dir"), close("f")},
       .expect = {NFS4ERR_ISDIR, NFS4ERR_BAD_STATEID}},
      {.note = "to reading, while a byte range is locked for writing",
       .minors = k40,
       .before = {{own(), open({.name = "f", .access = kRead, .create = UNCHECKED4})},
                  {own(), open({.name = "f", .access = kBoth})},
                  {at("f"), lock({.open = "f", .held = "l"})}},
       .steps = {at("f"), open_downgrade("f", kRead)},
       .expect = {NFS4ERR_LOCKS_HELD, NFS4_OK}},
      {.note = "while a byte range is locked",
       .before = {{own(), open(creating("f"))}, {at("f"), lock({.open = "f", .held = "l"})}},
       .steps = {at("f"), close("f")},
       .expect = {NFS4ERR_LOCKS_HELD, NFS4_OK}},
  };
}

// Version 4.2 has more that a share reservation denies; of these RFC 7862 says no more than that
// they take stateids as READ and WRITE do.
Scripts denied() {
  const std::vector<Steps> opened{
      {own(), open({.name = "f", .deny = kDenyBoth, .create = UNCHECKED4})}};
  Scripts all;
  for (const nfs_opnum4 operation : {OP_SEEK, OP_READ_PLUS, OP_WRITE_SAME})
    all.push_back({.note = "what a share reservation denies",
                   .minors = k42,
                   .before = opened,
                   .steps = {at("f"), by_stateid(operation, "anonymous")},
                   .expect = {NFS4ERR_LOCKED, NFS4ERR_SHARE_DENIED},
                   .section = "8881 9.1.2"});
  all.push_back({.note = "from what a share reservation denies",
                 .minors = k42,
                 .before = {opened[0], a_file("g")},
                 .steps = {at("f"), savefh(), at("g"), copy("anonymous", "g", 0, 10)},
                 .expect = {NFS4ERR_LOCKED, NFS4ERR_SHARE_DENIED, NFS4ERR_BAD_STATEID},
                 .section = "8881 9.1.2"});
  return all;
}

// RFC 8881 18.25.4: a server may keep open files where they are.
Scripts moving_open_files() {
  const std::vector<Steps> opened{{own(), open(creating("f"))}};
  const bitmap4 identity = bits({kType, kFileid});
  return {
      {.note = "a file that is open",
       .before = opened,
       .steps = {own(), remove("f")},
       .expect = {NFS4_OK, NFS4ERR_FILE_OPEN},
       .proof = name_is_gone("f")},
      {.note = "over a file that is open",
       .before = {opened[0], {own(), create("x", NF4FIFO), getattr(identity)}},
       .steps = {own(), savefh(), rename("x", "f")},
       .expect = {NFS4_OK, NFS4ERR_FILE_OPEN},
       .proof = was_renamed_to("f")},
      {.note = "a file that is open",
       .before = {opened[0], {at("f"), getattr(identity)}},
       .steps = {at("f"), savefh(), own(), link("x")},
       .expect = {NFS4_OK, NFS4ERR_FILE_OPEN},
       .proof = names_the_same("x")},
  };
}

}  // namespace

Scripts open_cases() {
  Scripts all = creating_files();
  append(all, creating_with_attributes());
  append(all, denied());
  append(all, moving_open_files());
  append(all, opening_files());
  append(all, opening_by_claims());
  append(all, sharing());
  append(all, downgrading());
  return all;
}

}  // namespace stag::conform::nfs4
