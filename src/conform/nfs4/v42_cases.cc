// The operations of version 4.2 (RFC 7862 15) and extended attributes (RFC 8276).
#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

Steps content(std::string name = "f") {
  return {at(name), write(name, 0, std::string(kContent))};
}

Step allocate(std::string state, std::uint64_t offset, std::uint64_t length) {
  return with_state(OP_ALLOCATE, &Op::opallocate, &ALLOCATE4args::aa_stateid, std::move(state),
                    {{}, offset, length});
}
Step deallocate(std::string state, std::uint64_t offset, std::uint64_t length) {
  return with_state(OP_DEALLOCATE, &Op::opdeallocate, &DEALLOCATE4args::da_stateid,
                    std::move(state), {{}, offset, length});
}
Step seek(std::string state, std::uint64_t offset, data_content4 what) {
  return with_state(OP_SEEK, &Op::opseek, &SEEK4args::sa_stateid, std::move(state),
                    {{}, offset, what});
}
Step read_plus(std::string state, std::uint64_t offset, std::uint32_t count) {
  return with_state(OP_READ_PLUS, &Op::opread_plus, &READ_PLUS4args::rpa_stateid, std::move(state),
                    {{}, offset, count});
}
Step io_advise(std::string state) {
  return with_state(OP_IO_ADVISE, &Op::opio_advise, &IO_ADVISE4args::iaa_stateid, std::move(state),
                    {{}, 0, 10, {1}});
}
Step copy(std::string from, std::string to, std::uint64_t offset, std::uint64_t count) {
  return {OP_COPY, [=](Scene& scene, Op& made) {
            made.opcopy() = {
                scene.stateid(from), scene.stateid(to), offset, 0, count, true, true, {}};
          }};
}
Step clone(std::string from, std::string to, std::uint64_t offset, std::uint64_t count) {
  return {OP_CLONE, [=](Scene& scene, Op& made) {
            made.opclone() = {scene.stateid(from), scene.stateid(to), offset, 0, count};
          }};
}

std::string not_at_the_end(const COMPOUND4res& results, std::uint64_t offset) {
  const seek_res4& ok = results.resarray.back().opseek().resok4();
  return ok.sr_offset == offset ? "" : "another offset came";
}

Scripts ranges() {
  const std::vector<Steps> open_file{a_file()}, written{a_file(), content()};
  return {
      {.note = "room in a file",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), allocate("f", 0, 4096)}},
      {.note = "beyond the last offset",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), allocate("f", kLast - 5, 4096)},
       .expect = {NFS4ERR_INVAL, NFS4ERR_FBIG}},
      {.note = "a hole",
       .minors = k42,
       .before = written,
       .steps = {at("f"), deallocate("f", 0, 50)}},
      {.note = "beyond the last offset",
       .minors = k42,
       .before = written,
       .steps = {at("f"), deallocate("f", kLast - 5, 4096)},
       .expect = {NFS4ERR_INVAL, NFS4ERR_FBIG}},
      {.note = "the first data",
       .minors = k42,
       .before = written,
       .steps = {at("f"), seek("f", 0, NFS4_CONTENT_DATA)},
       .check = [](Scene&, const COMPOUND4res& results) { return not_at_the_end(results, 0); }},
      {.note = "the hole at the end",
       .minors = k42,
       .before = written,
       .steps = {at("f"), seek("f", 0, NFS4_CONTENT_HOLE)},
       .check =
           [](Scene&, const COMPOUND4res& results) {
             return not_at_the_end(results, kContent.size());
           }},
      {.note = "past the end",
       .minors = k42,
       .before = written,
       .steps = {at("f"), seek("f", 5000, NFS4_CONTENT_DATA)},
       .expect = {NFS4ERR_NXIO}},
      {.note = "a content that no RFC knows",
       .minors = k42,
       .before = written,
       .steps = {at("f"), seek("f", 0, static_cast<data_content4>(7))},
       .expect = {NFS4ERR_UNION_NOTSUPP, NFS4ERR_INVAL, NFS4ERR_BADXDR}},
      {.note = "data",
       .minors = k42,
       .before = written,
       .steps = {at("f"), read_plus("f", 0, 100)}},
      {.note = "with the anonymous stateid",
       .minors = k42,
       .steps = {at("file"), read_plus("anonymous", 0, 100)}},
      {.note = "of a folder",
       .minors = k42,
       .steps = {at("dir"), read_plus("anonymous", 0, 10)},
       .expect = {NFS4ERR_ISDIR}},
      {.note = "of another user's file of mode 0600",
       .minors = k42,
       .steps = {at("secret"), read_plus("anonymous", 0, 10)},
       .expect = {NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "a hint", .minors = k42, .before = open_file, .steps = {at("f"), io_advise("f")}},
      {.note = "of a folder",
       .minors = k42,
       .before = open_file,
       .steps = {at("dir"), seek("f", 0, NFS4_CONTENT_DATA)},
       .expect = {NFS4ERR_ISDIR, NFS4ERR_WRONG_TYPE, NFS4ERR_BAD_STATEID}},
      {.note = "with an open for reading only",
       .minors = k42,
       .before = {a_file(),
                  {own(), open({.name = "f", .access = kRead, .owner = "reader", .as = "r"})}},
       .steps = {at("f"), allocate("r", 0, 10)},
       .expect = {NFS4ERR_OPENMODE}},
      {.note = "with an open for reading only",
       .minors = k42,
       .before = {a_file(),
                  {own(), open({.name = "f", .access = kRead, .owner = "reader", .as = "r"})}},
       .steps = {at("f"), deallocate("r", 0, 10)},
       .expect = {NFS4ERR_OPENMODE}},
  };
}

Scripts copies() {
  const std::vector<Steps> two{a_file("f"), content("f"), a_file("g")};
  const auto both = [](Step last) { return Steps{at("f"), savefh(), at("g"), std::move(last)}; };
  return {
      {.note = "from one file to another",
       .minors = k42,
       .before = two,
       .steps = both(copy("f", "g", 0, kContent.size()))},
      {.note = "from past the end",
       .minors = k42,
       .before = two,
       .steps = both(copy("f", "g", 5000, 10)),
       .expect = {NFS4ERR_INVAL, NFS4_OK}},
      {.note = "without a saved filehandle",
       .minors = k42,
       .before = two,
       .steps = {at("g"), copy("f", "g", 0, 10)},
       .expect = {NFS4ERR_NOFILEHANDLE}},
      {.note = "from a stateid that nobody gave",
       .minors = k42,
       .before = two,
       .steps = both(copy("garbage", "g", 0, 10)),
       .expect = {NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID}},
      {.note = "to a stateid that nobody gave",
       .minors = k42,
       .before = two,
       .steps = both(copy("f", "garbage", 0, 10)),
       .expect = {NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID}},
      {.note = "to a folder",
       .minors = k42,
       .before = two,
       .steps = {at("f"), savefh(), at("dir"), copy("f", "g", 0, 10)},
       .expect = {NFS4ERR_ISDIR, NFS4ERR_WRONG_TYPE, NFS4ERR_BAD_STATEID}},
      {.note = "into a file that is open for reading",
       .minors = k42,
       .before = {a_file("f"),
                  content("f"),
                  a_file("g"),
                  {own(), open({.name = "g", .access = kRead, .owner = "reader", .as = "r"})}},
       .steps = both(copy("f", "r", 0, 10)),
       .expect = {NFS4ERR_OPENMODE}},
      {.note = "of whole blocks",
       .minors = k42,
       .before = two,
       .steps = both(clone("f", "g", 0, 0)),
       .expect = {NFS4_OK, NFS4ERR_INVAL, NFS4ERR_NOTSUPP}},
      {.note = "without a saved filehandle",
       .minors = k42,
       .before = two,
       .steps = {at("g"), clone("f", "g", 0, 0)},
       .expect = {NFS4ERR_NOFILEHANDLE}},
      {.note = "from a stateid that nobody gave",
       .minors = k42,
       .before = two,
       .steps = both(clone("garbage", "g", 0, 0)),
       .expect = {NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID}},
      {.note = "of a copy that nobody began",
       .minors = k42,
       .steps = {at("file"), with_state(OP_OFFLOAD_STATUS, &Op::opoffload_status,
                                        &OFFLOAD_STATUS4args::osa_stateid, "garbage")},
       .expect = {NFS4ERR_BAD_STATEID}},
      {.note = "of a copy that nobody began",
       .minors = k42,
       .steps = {at("file"), with_state(OP_OFFLOAD_CANCEL, &Op::opoffload_cancel,
                                        &OFFLOAD_CANCEL4args::oca_stateid, "garbage")},
       .expect = {NFS4ERR_BAD_STATEID}},
  };
}

Step getxattr(std::string name) {
  return plain(OP_GETXATTR, &Op::opgetxattr, {std::move(name)});
}
Step setxattr(std::string name, setxattr_option4 option = SETXATTR4_EITHER) {
  return plain(OP_SETXATTR, &Op::opsetxattr,
               {option, std::move(name), Rope::copy_of(bytes_of("value"))});
}
Step listxattrs(std::uint64_t cookie, std::uint32_t most) {
  return plain(OP_LISTXATTRS, &Op::oplistxattrs, {cookie, most});
}
Step removexattr(std::string name) {
  return plain(OP_REMOVEXATTR, &Op::opremovexattr, {std::move(name)});
}

}  // namespace

Scripts v42_cases() {
  Scripts all = ranges();
  append(all, copies());
  return all;
}

Scripts xattr_cases() {
  const std::vector<Steps> open_file{a_file()};
  const std::vector<Steps> with_one{a_file(), {at("f"), setxattr("colour")}};
  return {
      {.note = "a new one",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), setxattr("colour")}},
      {.note = "a new one that must be new",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), setxattr("colour", SETXATTR4_CREATE)}},
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
      {.note = "what was set",
       .minors = k42,
       .before = with_one,
       .steps = {at("f"), getxattr("colour")}},
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
       .steps = {at("f"), listxattrs(0, 4096)}},
      {.note = "no room for one",
       .minors = k42,
       .before = with_one,
       .steps = {at("f"), listxattrs(0, 4)},
       .expect = {NFS4ERR_TOOSMALL}},
      {.note = "one that is there",
       .minors = k42,
       .before = with_one,
       .steps = {at("f"), removexattr("colour")}},
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

}  // namespace stag::conform::nfs4
