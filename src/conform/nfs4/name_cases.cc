// CREATE, REMOVE, RENAME, LINK, READLINK, READDIR, and names that are not (RFC 8881 14, 18.4, 18.9,
// 18.23-26).
#include "conform/nfs4/cases.h"
#include "conform/nfs4/checks.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

// What stays the same under another name.
const bitmap4 kIdentity = bits({kType, kFileid});

// An operation on a name in the folder "own", in which "there" exists and is saved.
struct Named {
  std::function<Step(std::string)> make;
  bool creates;  // the name need not be there
};

std::vector<Named> named_operations() {
  return {
      {[](std::string name) { return lookup(std::move(name)); }, false},
      {[](std::string name) { return secinfo(std::move(name)); }, false},
      {[](std::string name) { return remove(std::move(name)); }, false},
      {[](std::string name) { return create(std::move(name), NF4DIR); }, true},
      {[](std::string name) { return link(std::move(name)); }, true},
      {[](std::string name) { return rename("there", std::move(name)); }, true},
      {[](std::string name) { return open({.name = std::move(name), .create = GUARDED4}); }, true},
  };
}

struct BadName {
  std::string note;
  std::string name;
  Statuses expect;
};

// RFC 8881 14.5, 1.7.3: what a server may do about names. One that takes names as bytes accepts
// what is no UTF-8, and one that knows "." as no name of a file may call it absent.
std::vector<BadName> bad_names(bool creates) {
  const nfsstat4 taken = creates ? NFS4_OK : NFS4ERR_NOENT;
  return {
      {"a name of no bytes", "", {NFS4ERR_INVAL}},
      {"a name of 5000 bytes", std::string(5000, 'n'), {NFS4ERR_NAMETOOLONG}},
      {"a name that is no UTF-8", "\xff\xfe", {NFS4ERR_INVAL, taken}},
      {"the name .", ".", {NFS4ERR_BADNAME, taken}},
      {"the name ..", "..", {NFS4ERR_BADNAME, taken}},
      {"a name with a slash", "a/b", {NFS4ERR_BADCHAR, NFS4ERR_BADNAME, taken}},
      {"a name with a zero byte",
       std::string("a\0b", 3),
       {NFS4ERR_BADCHAR, NFS4ERR_BADNAME, NFS4ERR_INVAL, taken}},
  };
}

Scripts bad_name_cases() {
  Scripts all;
  for (const Named& operation : named_operations())
    for (const BadName& bad : bad_names(operation.creates)) {
      Script script;
      script.note = bad.note;
      script.before = {{own(), create("there", NF4FIFO)}};
      script.steps = {own(), lookup("there"), savefh(), own(), operation.make(bad.name)};
      if (script.subject() == OP_RENAME) script.steps = {own(), savefh(), operation.make(bad.name)};
      script.expect = bad.expect;
      all.push_back(std::move(script));
    }
  all.push_back({.note = "an old name of no bytes",
                 .steps = {own(), savefh(), rename("", "new")},
                 .expect = {NFS4ERR_INVAL}});
  return all;
}

Scripts creations() {
  return {
      {.note = "a folder", .steps = {own(), create("x", NF4DIR)}, .proof = has_type("x", NF4DIR)},
      {.note = "a symbolic link",
       .steps = {own(), create("x", NF4LNK)},
       .proof = {{own(), lookup("x"), readlink()}, NFS4_OK, leads_to("target")}},
      {.note = "a FIFO", .steps = {own(), create("x", NF4FIFO)}, .proof = has_type("x", NF4FIFO)},
      {.note = "a socket", .steps = {own(), create("x", NF4SOCK)}, .proof = has_type("x", NF4SOCK)},
      {.note = "a device, if the user may",
       .steps = {own(), create("x", NF4CHR)},
       .expect = {NFS4_OK, NFS4ERR_PERM, NFS4ERR_ACCESS, NFS4ERR_BADTYPE},
       .proof = has_type("x", NF4CHR)},
      {.note = "a device, which only root may make",
       .before = {{own(), create("all", NF4DIR, mode_is(0777)), getfh("all")},
                  {at("all"), setattr("anonymous", mode_is(0777))}},
       .steps = {at("all"), create("x", NF4CHR)},
       .expect = {NFS4ERR_PERM, NFS4ERR_ACCESS, NFS4ERR_BADTYPE},
       .stranger = true},
      {.note = "a file, which OPEN makes",
       .steps = {own(), create("x", NF4REG)},
       .expect = {NFS4ERR_BADTYPE}},
      {.note = "a name that exists",
       .before = {{own(), create("x", NF4DIR)}},
       .steps = {own(), create("x", NF4DIR)},
       .expect = {NFS4ERR_EXIST}},
      {.note = "in a file", .steps = {at("file"), create("x", NF4DIR)}, .expect = {NFS4ERR_NOTDIR}},
      {.note = "in a folder of another user",
       .steps = {at("dir"), create("x", NF4DIR)},
       .expect = {NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "an attribute that nobody knows",
       .steps = {own(), create("x", NF4DIR, attribute(kUnknown, 1))},
       .expect = {NFS4ERR_ATTRNOTSUPP}},
      {.note = "an attribute that cannot be set",
       .steps = {own(), create("x", NF4DIR, type_is(NF4DIR))},
       .expect = {NFS4ERR_INVAL}},
      {.note = "an owner that nobody knows",
       .steps = {own(), create("x", NF4DIR, owner_is("nobody knows@stag.invalid"))},
       .expect = {NFS4ERR_BADOWNER, NFS4ERR_PERM}},
      {.note = "a link that leads nowhere",
       .steps = {own(), symlink("x", "")},
       .expect = {NFS4ERR_INVAL, NFS4ERR_NOENT, NFS4_OK}},
  };
}

Scripts readlinks() {
  return {
      {.note = "the target of a symbolic link",
       .steps = {at("link"), readlink()},
       .check = leads_to("target")},
      {.note = "of another user's symbolic link",
       .steps = {at("link"), readlink()},
       .expect = {NFS4_OK, NFS4ERR_ACCESS},
       .check = leads_to("target"),
       .stranger = true},
      {.note = "of a file",
       .minors = k40,
       .steps = {at("file"), readlink()},
       .expect = {NFS4ERR_INVAL}},
      {.note = "of a file",
       .minors = kSessions,
       .steps = {at("file"), readlink()},
       .expect = {NFS4ERR_WRONG_TYPE, NFS4ERR_INVAL}},
      {.note = "of a folder",
       .minors = k40,
       .steps = {at("dir"), readlink()},
       .expect = {NFS4ERR_ISDIR, NFS4ERR_INVAL}},
  };
}

Scripts removals() {
  return {
      {.note = "a FIFO",
       .before = {{own(), create("x", NF4FIFO)}},
       .steps = {own(), remove("x")},
       .proof = name_is_gone("x")},
      {.note = "an empty folder",
       .before = {{own(), create("x", NF4DIR)}},
       .steps = {own(), remove("x")},
       .proof = name_is_gone("x")},
      {.note = "a folder that is not empty",
       .steps = {at("work"), remove("full")},
       .expect = {NFS4ERR_NOTEMPTY}},
      {.note = "a name that is not there",
       .steps = {own(), remove("x")},
       .expect = {NFS4ERR_NOENT}},
      {.note = "in a file", .steps = {at("file"), remove("x")}, .expect = {NFS4ERR_NOTDIR}},
      {.note = "in a folder of another user",
       .steps = {at("full"), remove("inner")},
       .expect = {NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "a second name",
       .before = {{at("file"), getattr(kIdentity)}},
       .steps = {at("file"), savefh(), own(), link("x")},
       .proof = names_the_same("x")},
      {.note = "a name that exists",
       .before = {{own(), create("x", NF4DIR)}},
       .steps = {at("file"), savefh(), own(), link("x")},
       .expect = {NFS4ERR_EXIST}},
      {.note = "of a folder",
       .steps = {at("dir"), savefh(), own(), link("x")},
       .expect = {NFS4ERR_ISDIR}},
      {.note = "in a file", .steps = {at("file"), savefh(), link("x")}, .expect = {NFS4ERR_NOTDIR}},
      {.note = "in a symbolic link",
       .minors = kSessions,
       .steps = {at("file"), savefh(), at("link"), link("x")},
       .expect = {NFS4ERR_SYMLINK, NFS4ERR_NOTDIR, NFS4ERR_WRONG_TYPE}},
      {.note = "in a folder of another user",
       .steps = {at("file"), savefh(), at("dir"), link("x")},
       .expect = {NFS4ERR_ACCESS, NFS4ERR_PERM},
       .stranger = true},
      {.note = "without a saved filehandle",
       .steps = {own(), link("x")},
       .expect = {NFS4ERR_NOFILEHANDLE}},
  };
}

Scripts renamings() {
  return {
      {.note = "a folder",
       .before = {{own(), create("x", NF4DIR), getattr(kIdentity)}},
       .steps = {own(), savefh(), rename("x", "y")},
       .proof = was_renamed_to("y")},
      {.note = "over a file",
       .before = {{own(), create("y", NF4FIFO)}, {own(), create("x", NF4FIFO), getattr(kIdentity)}},
       .steps = {own(), savefh(), rename("x", "y")},
       .proof = was_renamed_to("y")},
      {.note = "over an empty folder",
       .before = {{own(), create("y", NF4DIR)}, {own(), create("x", NF4DIR), getattr(kIdentity)}},
       .steps = {own(), savefh(), rename("x", "y")},
       .proof = was_renamed_to("y")},
      {.note = "to itself",
       .before = {{own(), create("x", NF4FIFO), getattr(kIdentity)}},
       .steps = {own(), savefh(), rename("x", "x")},
       .proof = names_the_same("x")},
  };
}

Scripts refused_renamings() {
  return {
      {.note = "a name that is not there",
       .steps = {own(), savefh(), rename("x", "y")},
       .expect = {NFS4ERR_NOENT}},
      {.note = "a folder over a FIFO",
       .before = {{own(), create("x", NF4DIR)}, {own(), create("y", NF4FIFO)}},
       .steps = {own(), savefh(), rename("x", "y")},
       .expect = {NFS4ERR_EXIST}},
      {.note = "a FIFO over a folder",
       .before = {{own(), create("x", NF4FIFO)}, {own(), create("y", NF4DIR)}},
       .steps = {own(), savefh(), rename("x", "y")},
       .expect = {NFS4ERR_EXIST}},
      {.note = "over a folder that is not empty",
       .before = {{own(), create("x", NF4DIR)}, {own(), create("y", NF4DIR), create("z", NF4DIR)}},
       .steps = {own(), savefh(), rename("x", "y")},
       .expect = {NFS4ERR_EXIST, NFS4ERR_NOTEMPTY}},
      {.note = "a folder into itself",
       .before = {{own(), create("x", NF4DIR), getfh("x")}},
       .steps = {own(), savefh(), at("x"), rename("x", "y")},
       .expect = {NFS4ERR_INVAL}},
      {.note = "from a file",
       .steps = {at("file"), savefh(), own(), rename("x", "y")},
       .expect = {NFS4ERR_NOTDIR}},
      {.note = "to a file",
       .before = {{own(), create("x", NF4FIFO)}},
       .steps = {own(), savefh(), at("file"), rename("x", "y")},
       .expect = {NFS4ERR_NOTDIR}},
      {.note = "from a folder of another user",
       .steps = {at("full"), savefh(), rename("inner", "y")},
       .expect = {NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "without a saved filehandle",
       .steps = {own(), rename("x", "y")},
       .expect = {NFS4ERR_NOFILEHANDLE}},
  };
}

std::string lists_inner(Scene&, const COMPOUND4res& results) {
  const dirlist4& list = results.resarray.back().opreaddir().resok4().reply;
  for (const entry4& entry : list.entries) {
    if (entry.name == "." || entry.name == "..") return "the listing has " + entry.name;
    if (entry.cookie < 3) return "a cookie is less than 3";
  }
  return list.entries.size() == 1 && list.eof ? "" : "the listing is not that of the folder";
}

Scripts listings() {
  return {
      {.note = "a folder of one file",
       .steps = {at("full"), readdir({.asked = bits({kType, kFileid})})},
       .check = lists_inner},
      {.note = "an empty folder", .steps = {at("dir"), readdir()}},
      {.note = "of a file", .steps = {at("file"), readdir()}, .expect = {NFS4ERR_NOTDIR}},
      {.note = "of a symbolic link",
       .steps = {at("link"), readdir()},
       .expect = {NFS4ERR_NOTDIR, NFS4ERR_SYMLINK}},
      {.note = "of a folder of another user",
       .steps = {at("private"), readdir()},
       .expect = {NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "no room for one entry",
       .steps = {at("full"), readdir({.dircount = 16, .maxcount = 16})},
       .expect = {NFS4ERR_TOOSMALL}},
      {.note = "a reserved cookie",
       .steps = {at("full"), readdir({.cookie = 1})},
       .expect = {NFS4ERR_BAD_COOKIE}},
      {.note = "the other reserved cookie",
       .steps = {at("full"), readdir({.cookie = 2})},
       .expect = {NFS4ERR_BAD_COOKIE}},
      {.note = "on from an entry, with a verifier that is not the listing's",
       .before = {{at("full"), readdir()}},
       .steps = {at("full"), readdir({.after = "first", .verifier = "wrong"})},
       .expect = {NFS4ERR_NOT_SAME, NFS4_OK}},
      {.note = "an attribute that can only be set",
       .steps = {at("full"), readdir({.asked = bits({kTimeModifySet})})},
       .expect = {NFS4ERR_INVAL}},
      {.note = "with the errors of single files as attributes",
       .steps = {at("full"), readdir({.asked = bits({11, kType})})},
       .section = "8881 5.8.1.12"},
  };
}

}  // namespace

Scripts name_cases() {
  Scripts all = bad_name_cases();
  append(all, creations());
  append(all, readlinks());
  append(all, removals());
  append(all, renamings());
  append(all, refused_renamings());
  append(all, listings());
  return all;
}

}  // namespace stag::conform::nfs4
