// COPY_NOTIFY: a file that another server may copy (RFC 7862 4.6.2, 15.3, 15.8). This command is
// that server, too: a second client of it reads by the stateid that the first one was given.
#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

constexpr const char* kNotice = "notice";

// 15.3.3: copy stateids are distinct from all others.
std::string is_its_own(Scene& scene, const COPY_NOTIFY4resok& ok) {
  if (ok.cnr_source_server.empty()) return "no address to read from";
  return ok.cnr_stateid.other == scene.stateid("f").other ? "cnr_stateid is that of the open" : "";
}

using NoticeUse = Task<Verdict> (*)(Scene& source, Scene& reader);

Task<Reply> read_notified(Scene& reader) {
  Steps steps;
  steps.push_back(at("f"));
  steps.push_back(read(kNotice, 0, 100));
  co_return co_await send(reader, steps);
}

// The end of the leave, and what may be said to who reads then.
Task<Verdict> is_over(Scene& source, Scene& reader, Step step) {
  const Reply before = co_await read_notified(reader);
  if (!before.ok()) co_return expect(before, {NFS4_OK}, "READ of another client before that");
  Steps steps;
  steps.push_back(at("f"));
  steps.push_back(std::move(step));
  const Reply ended = co_await send(source, steps);
  if (!ended.ok()) co_return expect(ended, {NFS4_OK}, "what ends it");
  const Reply after = co_await read_notified(reader);
  co_return expect(after, {NFS4ERR_BAD_STATEID, NFS4ERR_PARTNER_NO_AUTH},
                   "READ of another client after that");
}

Task<Verdict> is_read(Scene&, Scene& reader) {
  const Reply reply = co_await read_notified(reader);
  if (!reply.ok()) co_return expect(reply, {NFS4_OK}, "READ of another client");
  const READ4resok& ok = reply.results.resarray.back().opread().resok4();
  co_return ok.data == Rope::copy_of(bytes_of(kContent)) ? Verdict::pass()
                                                         : Verdict::fail("other data came");
}

Task<Verdict> ends_with_the_open(Scene& source, Scene& reader) {
  return is_over(source, reader, close("f"));
}

Task<Verdict> is_taken_back(Scene& source, Scene& reader) {
  return is_over(source, reader,
                 with_state(OP_OFFLOAD_CANCEL, &Op::opoffload_cancel,
                            &OFFLOAD_CANCEL4args::oca_stateid, kNotice));
}

Task<Verdict> notify_and(Scene& scene, Scene& reader, NoticeUse use) {
  std::string trouble = co_await reader.client.establish();
  const std::vector<Steps> compounds{
      a_file(), {at("f"), write("f", 0, std::string(kContent))}, {at("f"), copy_notify("f")}};
  for (const Steps& steps : compounds)
    if (trouble.empty()) trouble = co_await prepare(scene, steps);
  if (trouble.ends_with("NFS4ERR_NOTSUPP"))
    co_return Verdict::skip("the server does not offer COPY_NOTIFY");
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  reader.handles["f"] = scene.handle("f");
  reader.states[kNotice] = scene.stateid(kNotice);
  co_return co_await use(scene, reader);
}

Task<Verdict> with_reader(Scene& scene, NoticeUse use) {
  const Handles none;
  Client client(scene.client.channel(), scene.other_client("reader"));
  Scene reader(client, none, scene.label + " reader");
  Verdict verdict = co_await notify_and(scene, reader, use);
  co_await client.leave();
  co_return verdict;
}

Script of_notice(nfs_opnum4 operation, nfsstat4 status, std::string note, NoticeUse use) {
  return asked(
      operation, status, std::move(note), k42,
      [use](Scene& scene) { return with_reader(scene, use); }, "7862 15.3");
}

// What nobody can have open.
Script of_object(const char* object, std::string note, nfsstat4 status) {
  return {.note = std::move(note),
          .minors = k42,
          .steps = {at(object), copy_notify("anonymous")},
          .expect = {status, NFS4ERR_WRONG_TYPE, NFS4ERR_INVAL, NFS4ERR_BAD_STATEID}};
}

}  // namespace

Scripts copy_notify_cases() {
  const std::vector<Steps> open_file{a_file()};
  return {
      of_object("dir", "of a folder", NFS4ERR_ISDIR),
      of_object("link", "of a symbolic link", NFS4ERR_SYMLINK),
      of_object("fifo", "of a FIFO", NFS4ERR_WRONG_TYPE),
      {.note = "to another server",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), copy_notify("f")},
       .check =
           [](Scene& scene, const COMPOUND4res& results) {
             return is_its_own(scene, results.resarray.back().opcopy_notify().resok4());
           }},
      {.note = "from the stateid of an earlier time",
       .minors = k42,
       .before = {a_file(), {at("f"), open_downgrade("f", kBoth)}},
       .steps = {at("f"), copy_notify("old f")},
       .expect = {NFS4ERR_OLD_STATEID}},
      {.note = "with an open for writing only",
       .minors = k42,
       .before = {{own(), open({.name = "f", .access = kWrite, .create = UNCHECKED4})}},
       .steps = {at("f"), copy_notify("f")},
       .expect = {NFS4ERR_OPENMODE, NFS4_OK}},
      {.note = "with a stateid that nobody gave",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), copy_notify("garbage")},
       .expect = {NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID}},
      {.note = "with the anonymous stateid, which is neither an open nor a lock",
       .minors = k42,
       .before = open_file,
       .steps = {at("f"), copy_notify("anonymous")},
       .expect = {NFS4ERR_BAD_STATEID, NFS4ERR_INVAL}},
      of_notice(OP_READ, NFS4_OK, "by another client that was told a copy stateid", is_read),
      of_notice(OP_READ, NFS4ERR_BAD_STATEID, "by a copy stateid whose open is closed",
                ends_with_the_open),
      of_notice(OP_OFFLOAD_CANCEL, NFS4_OK, "of leave to copy to another server", is_taken_back),
  };
}

}  // namespace stag::conform::nfs4
