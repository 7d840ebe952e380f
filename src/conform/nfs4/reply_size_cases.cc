// Operations whose results do not go into what is left of a session's longest reply, or of what a
// slot keeps (RFC 8881 2.10.6.4). Before the operation the COMPOUND has a TEST_STATEID of so many
// stateids that an error fits behind its results and nothing longer.
#include <algorithm>

#include "conform/nfs4/cases.h"
#include "conform/nfs4/limited_session.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

constexpr std::uint32_t kRequest = 16384, kSmall = 1024, kLarge = 8192;

// Bytes of a reply up to the results: the RPC header with AUTH_NONE, and status, tag and the number
// of results of the COMPOUND.
constexpr std::uint32_t kHeaders = 24 + 4 + (4 + 8) + 4;
constexpr std::uint32_t kStatus = 8;  // of an operation, with its number
constexpr std::uint32_t kSequence = kStatus + 36;
// What is left for the operation of the case: too little for what follows an error in any result.
constexpr std::uint32_t kLeft = 16;

// `before`: the steps before that of the case, whose results have nothing but a status.
std::uint32_t filling_stateids(std::uint32_t limit, std::size_t before) {
  const std::uint32_t taken =
      kHeaders + kSequence + kStatus + 4 + static_cast<std::uint32_t>(before) * kStatus + kLeft;
  return limit > taken ? (limit - taken) / 4 : 0;
}

// The steps with what fills the reply up.
Operations filled(Scene& scene, const Steps& steps, const SEQUENCE4args& sequence,
                  std::uint32_t limit) {
  Operations operations;
  operations.push_back(op(OP_SEQUENCE, &Op::opsequence, sequence));
  operations.push_back(op(OP_TEST_STATEID));
  operations.back().optest_stateid().ts_stateids.resize(filling_stateids(limit, steps.size() - 1),
                                                        scene.stateid("garbage"));
  for (const Step& step : steps) {
    operations.push_back(op(step.number));
    if (step.fill) step.fill(scene, operations.back());
  }
  return operations;
}

// Too long for replies, or for what is kept of them.
enum class Beyond : std::uint8_t { Reply, Kept };

struct Long {
  std::vector<Steps> before{};
  Steps steps{};
  Minors minors = kSessions;
  // What a server may say instead, which gives less than there is.
  Statuses other{};
};

Task<Verdict> in_limited_session(Scene& scene, const Long& one, Beyond beyond, Statuses allowed) {
  Client& client = scene.client;
  std::string trouble = co_await client.establish();
  for (const Steps& steps : one.before)
    if (trouble.empty()) trouble = co_await prepare(scene, steps);
  if (trouble.ends_with("NFS4ERR_NOTSUPP"))
    co_return Verdict::skip("the server does not offer what is prepared: " + trouble);
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  const bool kept = beyond == Beyond::Kept;
  const LimitedSession made = co_await limited_session(
      client, kept ? limits_of(kRequest, kLarge, kSmall) : limits_of(kRequest, kSmall, kSmall));
  if (!made.trouble.empty()) co_return made.verdict();
  const channel_attrs4& given = made.session.csr_fore_chan_attrs;
  const std::uint32_t limit = kept ? given.ca_maxresponsesize_cached : given.ca_maxresponsesize;
  const Reply reply = co_await client.bare(filled(scene, one.steps, made.sequence(kept), limit));
  co_await destroy(client, made.session.csr_sessionid);
  const nfs_opnum4 operation = one.steps.back().number;
  if (reply.answered() && reply.results.status == NFS4ERR_NOTSUPP && optional(operation))
    co_return Verdict::skip("the server does not offer " + name_of(operation));
  co_return expect(reply, allowed, "where an error fits and nothing longer");
}

Task<Verdict> does_not_fit(Scene& scene, const Long& one, Beyond beyond, Statuses allowed) {
  const Handles none;
  Client client(scene.client.channel(), scene.other_client("limits"));
  Scene limited(client, none, scene.label + " limits");
  for (const char* name : {"own", "work", "file", "dir", "full", "link"})
    limited.handles[name] = scene.handle(name);
  Verdict verdict = co_await in_limited_session(limited, one, beyond, std::move(allowed));
  co_await tidy(limited);
  co_await client.leave();
  co_return verdict;
}

std::vector<Long> long_results() {
  const std::vector<Steps> file{a_file()}, locked{a_file(), a_lock()};
  return {
      {{}, {own(), create("x", NF4DIR)}},
      {{}, {at("file"), savefh(), own(), link("x")}},
      {{{own(), create("x", NF4FIFO)}}, {own(), remove("x")}},
      {{{own(), create("x", NF4FIFO)}}, {own(), savefh(), rename("x", "y")}},
      {{}, {own(), open({.name = "f", .create = UNCHECKED4})}},
      {file, {at("f"), open_downgrade("f", kRead)}},
      {file, {at("f"), close("f")}},
      {file, {at("f"), lock({.open = "f", .held = "l"})}},
      {locked, {at("f"), locku("l")}},
      {file, {at("f"), write("f", 0, "hello")}},
      {{}, {at("file"), getattr(bits({kChange, kSize, kFileid, kMode, kOwner}))}},
      {{}, {at("file"), read("anonymous", 0, 100)}, kSessions, {NFS4_OK}},
      {{}, {at("full"), readdir()}, kSessions, {NFS4ERR_TOOSMALL}},
      {{}, {at("link"), readlink()}, kSessions, {NFS4_OK}},
      {{}, {test_stateid({"garbage", "garbage", "garbage", "garbage"})}},
  };
}

std::vector<Long> long_results_v42() {
  const std::vector<Steps> file{a_file()};
  const std::vector<Steps> two{a_file("f"), {at("f"), write("f", 0, "hello")}, a_file("g")};
  const Step set = plain(OP_SETXATTR, &Op::opsetxattr,
                         {SETXATTR4_EITHER, "colour", Rope::copy_of(bytes_of("a long value"))});
  const std::vector<Steps> coloured{a_file(), {at("f"), set}};
  return {
      {two, {at("f"), savefh(), at("g"), copy("f", "g", 0, 5)}, k42},
      {file, {at("f"), copy_notify("f")}, k42},
      {two, {at("f"), seek("f", 0, NFS4_CONTENT_HOLE)}, k42},
      {two, {at("f"), read_plus("f", 0, 10)}, k42, {NFS4_OK}},
      {file, {at("f"), write_same("f")}, k42},
      {coloured, {at("f"), plain(OP_GETXATTR, &Op::opgetxattr, {"colour"})}, k42},
      {file, {at("f"), set}, k42},
      {coloured,
       {at("f"), plain(OP_LISTXATTRS, &Op::oplistxattrs, {0, 4096})},
       k42,
       {NFS4ERR_TOOSMALL}},
  };
}

// The kernel of Linux 6.1 ends where SEEK's results do not fit, and warns, which ends it where
// panic_on_warn is set, of a LOCK and of all changes of which a slot cannot keep the results.
bool is_dangerous(nfs_opnum4 operation, Beyond beyond) {
  switch (operation) {
    case OP_SEEK:
    case OP_LOCK:
      return true;
    case OP_GETATTR:
    case OP_READ:
    case OP_READDIR:
    case OP_READLINK:
    case OP_TEST_STATEID:
    case OP_READ_PLUS:
    case OP_GETXATTR:
    case OP_LISTXATTRS:
      return false;
    default:
      return beyond == Beyond::Kept;
  }
}

Script too_long(const Long& one, Beyond beyond) {
  Statuses allowed = one.other;
  allowed.insert(allowed.begin(),
                 beyond == Beyond::Kept ? NFS4ERR_REP_TOO_BIG_TO_CACHE : NFS4ERR_REP_TOO_BIG);
  Script script = asked(
      one.steps.back().number, allowed.front(),
      beyond == Beyond::Kept ? "more than is left of what a slot keeps"
                             : "more than is left of the longest reply",
      one.minors,
      [one, beyond, allowed](Scene& scene) { return does_not_fit(scene, one, beyond, allowed); },
      "8881 2.10.6.4");
  script.expect = std::move(allowed);
  script.dangerous = is_dangerous(script.operation, beyond);
  return script;
}

}  // namespace

Scripts reply_size_cases() {
  Scripts all;
  std::vector<Long> long_ones = long_results();
  std::ranges::move(long_results_v42(), std::back_inserter(long_ones));
  for (const Long& one : long_ones)
    for (const Beyond beyond : {Beyond::Reply, Beyond::Kept}) all.push_back(too_long(one, beyond));
  return all;
}

}  // namespace stag::conform::nfs4
