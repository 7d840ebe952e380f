// Extended attributes (RFC 8276).
#include "conform/nfs4/cases.h"
#include "conform/nfs4/checks.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

Step getxattr(std::string name) {
  return plain(OP_GETXATTR, &Op::opgetxattr, {std::move(name)});
}
Step setxattr(std::string name, setxattr_option4 option = SETXATTR4_EITHER,
              std::string_view value = "value") {
  return plain(OP_SETXATTR, &Op::opsetxattr,
               {option, std::move(name), Rope::copy_of(bytes_of(value))});
}
Step listxattrs(std::uint64_t cookie, std::uint32_t most) {
  return plain(OP_LISTXATTRS, &Op::oplistxattrs, {cookie, most});
}
Step removexattr(std::string name) {
  return plain(OP_REMOVEXATTR, &Op::opremovexattr, {std::move(name)});
}

Scripts setting_xattrs() {
  const std::vector<Steps> open_file{a_file()};
  const Proof was_set{{at("f"), getxattr("colour")}, NFS4_OK, xattr_is("value")};
  const std::vector<Steps> with_one{a_file(), {at("f"), setxattr("colour")}};
  return {
      {.note = "a new one",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), setxattr("colour")},
       .proof = was_set},
      {.note = "a new one that must be new",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), setxattr("colour", SETXATTR4_CREATE)},
       .proof = was_set},
      {.note = "one that must be new and is not",
       .minors = k42,
       .before = with_one,
       .steps = {at("f"), setxattr("colour", SETXATTR4_CREATE)},
       .expect = {NFS4ERR_EXIST}},
      {.note = "one that must be there and is not",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), setxattr("colour", SETXATTR4_REPLACE)},
       .expect = {NFS4ERR_NOXATTR}},
      {.note = "of another user's file",
       .minors = k42,
       .steps = {at("file"), setxattr("colour")},
       .expect = {NFS4ERR_ACCESS, NFS4ERR_PERM},
       .stranger = true},
      {.note = "a name of 5000 bytes",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), setxattr(std::string(5000, 'n'))},
       .expect = {NFS4ERR_NAMETOOLONG, NFS4ERR_INVAL}},
  };
}

Scripts reading_xattrs() {
  const std::vector<Steps> open_file{a_file()};
  const std::vector<Steps> with_one{a_file(), {at("f"), setxattr("colour")}};
  return {
      {.note = "what was set",
       .minors = k42,
       .before = with_one,
       .steps = {at("f"), getxattr("colour")},
       .check = xattr_is("value")},
      {.note = "one that is not there",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), getxattr("colour")},
       .expect = {NFS4ERR_NOXATTR}},
      {.note = "of another user's file of mode 0600",
       .minors = k42,
       .steps = {at("secret"), getxattr("colour")},
       .expect = {NFS4ERR_ACCESS, NFS4ERR_NOXATTR},
       .stranger = true},
      {.note = "of a file that has one",
       .minors = k42,
       .before = with_one,
       .steps = {at("f"), listxattrs(0, 4096)},
       .check = xattrs_have("colour")},
      {.note = "no room for one",
       .minors = k42,
       .before = with_one,
       .steps = {at("f"), listxattrs(0, 4)},
       .expect = {NFS4ERR_TOOSMALL}},
  };
}

Scripts removing_xattrs() {
  const std::vector<Steps> open_file{a_file()};
  const std::vector<Steps> with_one{a_file(), {at("f"), setxattr("colour")}};
  return {
      {.note = "one that is there",
       .minors = k42,
       .before = with_one,
       .steps = {at("f"), removexattr("colour")},
       .proof = {{at("f"), getxattr("colour")}, NFS4ERR_NOXATTR}},
      {.note = "one that is not there",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), removexattr("colour")},
       .expect = {NFS4ERR_NOXATTR}},
      {.note = "of another user's file",
       .minors = k42,
       .steps = {at("file"), removexattr("colour")},
       .expect = {NFS4ERR_ACCESS, NFS4ERR_PERM, NFS4ERR_NOXATTR},
       .stranger = true},
  };
}

// Names that are none, and objects that have no attributes of users.
Scripts xattr_errors() {
  const std::vector<Steps> open_file{a_file()};
  const Statuses invalid{NFS4ERR_INVAL, NFS4ERR_NAMETOOLONG, NFS4ERR_NOXATTR, NFS4ERR_ACCESS};
  const Statuses bad{NFS4ERR_BADCHAR, NFS4ERR_INVAL, NFS4ERR_NOXATTR, NFS4ERR_ACCESS};
  const Statuses too_long{NFS4ERR_NAMETOOLONG, NFS4ERR_INVAL, NFS4ERR_NOXATTR};
  const Statuses wrong{NFS4ERR_WRONG_TYPE, NFS4ERR_PERM, NFS4ERR_INVAL, NFS4ERR_NOXATTR,
                       NFS4ERR_ACCESS};
  const std::string zero("a\0b", 3), longest(5000, 'n');
  Scripts all;
  const auto add = [&](std::string note, const char* object, Step step, const Statuses& expect) {
    Script script;
    script.note = std::move(note);
    script.minors = k42;
    if (object == std::string_view("f")) script.before = open_file;
    script.steps = {at(object), std::move(step)};
    script.expect = expect;
    all.push_back(std::move(script));
  };
  for (const auto& make : std::vector<std::function<Step(std::string)>>{
           getxattr, [](std::string name) { return setxattr(std::move(name)); }, removexattr}) {
    add("a name of no bytes", "f", make(""), invalid);
    add("of a FIFO", "fifo", make("colour"), wrong);
  }
  add("a name of 5000 bytes", "f", getxattr(longest), too_long);
  add("a name of 5000 bytes", "f", removexattr(longest), too_long);
  add("a name with a zero byte", "f", setxattr(zero), bad);
  add("a name with a zero byte", "f", removexattr(zero), bad);
  add("a value of 70000 bytes", "f", setxattr("colour", SETXATTR4_EITHER, std::string(70000, 'v')),
      {NFS4ERR_XATTR2BIG, NFS4ERR_NOSPC, NFS4ERR_INVAL});
  add("of a FIFO", "fifo", listxattrs(0, 4096),
      {NFS4_OK, NFS4ERR_WRONG_TYPE, NFS4ERR_PERM, NFS4ERR_ACCESS});
  return all;
}

}  // namespace

Scripts xattr_cases() {
  Scripts all = setting_xattrs();
  append(all, reading_xattrs());
  append(all, removing_xattrs());
  append(all, xattr_errors());
  return all;
}

}  // namespace stag::conform::nfs4
