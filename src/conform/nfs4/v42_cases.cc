// The operations of version 4.2 on ranges of files, and copies (RFC 7862 15).
#include "conform/nfs4/cases.h"
#include "conform/nfs4/checks.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

Steps content(std::string name = "f") {
  return {at(name), write(name, 0, std::string(kContent))};
}

// To the end of all offsets.
Step write_same_far(std::string state) {
  Step step = write_same(std::move(state));
  step.fill = [fill = step.fill](Scene& scene, Op& made) {
    fill(scene, made);
    made.opwrite_same().wsa_adb.adb_offset = kLast - 5;
  };
  return step;
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
       .steps = {at("f"), allocate("f", 0, 4096)},
       .proof = holds("f", reads(std::string(4096, '\0'), true))},
      {.note = "beyond the last offset",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), allocate("f", kLast - 5, 4096)},
       .expect = {NFS4ERR_INVAL, NFS4ERR_FBIG}},
      {.note = "a hole",
       .minors = k42,
       .before = written,
       .steps = {at("f"), deallocate("f", 0, 50)},
       .proof = holds("f", reads(std::string(50, '\0') + std::string(kContent.substr(50)), true))},
      {.note = "beyond the last offset",
       .minors = k42,
       .before = written,
       .steps = {at("f"), deallocate("f", kLast - 5, 4096)},
       .expect = {NFS4ERR_INVAL, NFS4ERR_FBIG}},
  };
}

Scripts reading_ranges() {
  const std::vector<Steps> open_file{a_file()}, written{a_file(), content()};
  return {
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
       .steps = {at("f"), read_plus("f", 0, 100)},
       .check = reads_plus(std::string(kContent))},
      {.note = "with the anonymous stateid",
       .minors = k42,
       .steps = {at("file"), read_plus("anonymous", 0, 100)},
       .check = reads_plus(std::string(kContent))},
      {.note = "a hint", .minors = k42, .before = open_file, .steps = {at("f"), io_advise("f")}},
      {.note = "beyond the last offset",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), plain(OP_IO_ADVISE, &Op::opio_advise, {{}, kLast - 5, 10, {1}})},
       .expect = {NFS4ERR_INVAL, NFS4ERR_FBIG, NFS4_OK}},
  };
}

Scripts patterns_by_stateid() {
  const std::vector<Steps> open_file{a_file()};
  return {
      {.note = "a pattern",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), write_same("f")}},
      {.note = "beyond the last offset",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), write_same_far("f")},
       .expect = {NFS4ERR_FBIG, NFS4ERR_INVAL}},
      {.note = "with an open for reading only",
       .minors = k42,
       .before = {a_file(),
                  {own(), open({.name = "f", .access = kRead, .owner = "reader", .as = "r"})}},
       .steps = {at("f"), write_same("r")},
       .expect = {NFS4ERR_OPENMODE}},
      {.note = "with the stateid of an earlier time",
       .minors = k42,
       .before = {a_file(), {at("f"), open_downgrade("f", kBoth)}},
       .steps = {at("f"), write_same("old f")},
       .expect = {NFS4ERR_OLD_STATEID}},
  };
}

Scripts ranges_by_stateid() {
  return {
      {.note = "with an open for writing only",
       .minors = k42,
       .before = {{own(), open({.name = "f", .access = kWrite, .create = UNCHECKED4})}, content()},
       .steps = {at("f"), seek("f", 0, NFS4_CONTENT_HOLE)},
       .expect = {NFS4ERR_OPENMODE, NFS4_OK}},
      {.note = "with an open for writing only",
       .minors = k42,
       .before = {{own(), open({.name = "f", .access = kWrite, .create = UNCHECKED4})}},
       .steps = {at("f"), read_plus("f", 0, 10)},
       .expect = {NFS4ERR_OPENMODE, NFS4_OK}},
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

// The same of 10 bytes.
Step copy_far(std::string from, std::string to) {
  Step step = copy(std::move(from), std::move(to), 0, 10);
  step.fill = [fill = step.fill](Scene& scene, Op& made) {
    fill(scene, made);
    made.opcopy().ca_dst_offset = kLast - 5;
  };
  return step;
}
Step clone_far(std::string from, std::string to) {
  Step step = clone(std::move(from), std::move(to), 0, 10);
  step.fill = [fill = step.fill](Scene& scene, Op& made) {
    fill(scene, made);
    made.opclone().cl_dst_offset = kLast - 5;
  };
  return step;
}
// From an address at which no server listens.
Step copy_from_nobody(std::string from, std::string to) {
  Step step = copy(std::move(from), std::move(to), 0, 10);
  step.fill = [fill = step.fill](Scene& scene, Op& made) {
    fill(scene, made);
    netloc4 source;
    source.nl_type = NL4_NETADDR;
    source.nl_addr() = {"tcp", "127.0.0.1.0.1"};
    made.opcopy().ca_source_server.push_back(std::move(source));
  };
  return step;
}

// What a copy from f to g begins with.
struct TwoFiles {
  const std::vector<Steps> two{a_file("f"), content("f"), a_file("g")};
  std::vector<Steps> renewed = two, reading = two;

  TwoFiles() {
    renewed.push_back({at("f"), open_downgrade("f", kBoth)});
    reading.push_back({own(), open({.name = "g", .access = kRead, .owner = "reader", .as = "r"})});
  }
};
Steps both(Step last) {
  return {at("f"), savefh(), at("g"), std::move(last)};
}

Scripts copies() {
  const auto [two, renewed, reading] = TwoFiles();
  return {
      {.note = "from one file to another",
       .minors = k42,
       .before = two,
       .steps = both(copy("f", "g", 0, kContent.size())),
       .check = copied(kContent.size()),
       .proof = holds("g", reads_what_was_written(0, std::string(kContent)))},
      {.note = "from past the end",
       .minors = k42,
       .before = two,
       .steps = both(copy("f", "g", 5000, 10)),
       .expect = {NFS4ERR_INVAL, NFS4_OK}},
      {.note = "beyond the last offset",
       .minors = k42,
       .before = two,
       .steps = both(copy_far("f", "g")),
       .expect = {NFS4ERR_FBIG, NFS4ERR_INVAL}},
      {.note = "from a server that is none",
       .minors = k42,
       .before = two,
       .steps = both(copy_from_nobody("f", "g")),
       .expect = {NFS4ERR_OFFLOAD_DENIED, NFS4ERR_PARTNER_NOTSUPP, NFS4ERR_PARTNER_NO_AUTH}},
      {.note = "without a saved filehandle",
       .minors = k42,
       .before = two,
       .steps = {at("g"), copy("f", "g", 0, 10)},
       .expect = {NFS4ERR_NOFILEHANDLE}},
  };
}

Scripts copies_by_stateid() {
  const auto [two, renewed, reading] = TwoFiles();
  return {
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
       .before = reading,
       .steps = both(copy("f", "r", 0, 10)),
       .expect = {NFS4ERR_OPENMODE}},
      {.note = "from the stateid of an earlier time",
       .minors = k42,
       .before = renewed,
       .steps = both(copy("old f", "g", 0, 10)),
       .expect = {NFS4ERR_OLD_STATEID}},
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

Scripts clones() {
  const auto [two, renewed, reading] = TwoFiles();
  return {
      {.note = "from the stateid of an earlier time",
       .minors = k42,
       .before = renewed,
       .steps = both(clone("old f", "g", 0, 0)),
       .expect = {NFS4ERR_OLD_STATEID}},
      {.note = "into a file that is open for reading",
       .minors = k42,
       .before = reading,
       .steps = both(clone("f", "r", 0, 0)),
       .expect = {NFS4ERR_OPENMODE}},
      {.note = "beyond the last offset",
       .minors = k42,
       .before = two,
       .steps = both(clone_far("f", "g")),
       .expect = {NFS4ERR_FBIG, NFS4ERR_INVAL}},
      {.note = "of whole blocks",
       .minors = k42,
       .before = two,
       .steps = both(clone("f", "g", 0, 0)),
       .expect = {NFS4_OK, NFS4ERR_INVAL, NFS4ERR_NOTSUPP},
       .proof = holds("g", reads(std::string(kContent), true))},
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
  };
}

struct Object {
  std::string name, note;
  Statuses expect;
  bool stranger = false;
};

// What has no ranges, or is not this user's.
std::vector<Object> objects() {
  return {
      {"dir", "a folder", {NFS4ERR_ISDIR, NFS4ERR_WRONG_TYPE, NFS4ERR_INVAL}},
      {"link", "a symbolic link", {NFS4ERR_SYMLINK, NFS4ERR_WRONG_TYPE, NFS4ERR_INVAL}},
      {"fifo", "a FIFO", {NFS4ERR_WRONG_TYPE, NFS4ERR_INVAL}},
      {"secret", "another user's file of mode 0600", {NFS4ERR_ACCESS}, true},
  };
}

Scripts wrong_objects() {
  Scripts all;
  const auto add = [&all](std::string note, Steps steps, const Object& object) {
    Script script;
    script.note = std::move(note);
    script.minors = k42;
    script.steps = std::move(steps);
    script.expect = object.expect;
    script.stranger = object.stranger;
    // It is a hint, which a server may as well ignore.
    if (script.subject() == OP_IO_ADVISE) script.expect.push_back(NFS4_OK);
    all.push_back(std::move(script));
  };
  for (const Object& object : objects()) {
    for (const nfs_opnum4 operation :
         {OP_ALLOCATE, OP_DEALLOCATE, OP_SEEK, OP_READ_PLUS, OP_IO_ADVISE, OP_WRITE_SAME})
      add("of " + object.note, {at(object.name), sample(operation)}, object);
    for (const nfs_opnum4 operation : {OP_COPY, OP_CLONE})
      add("into " + object.note, {at("file"), savefh(), at(object.name), sample(operation)},
          object);
  }
  return all;
}

}  // namespace

Scripts v42_cases() {
  Scripts all = ranges();
  append(all, reading_ranges());
  append(all, patterns_by_stateid());
  append(all, ranges_by_stateid());
  append(all, copies());
  append(all, copies_by_stateid());
  append(all, clones());
  append(all, wrong_objects());
  return all;
}

}  // namespace stag::conform::nfs4
