#include <fmt/format.h>

#include <algorithm>

#include "conform/rpcrdma/talk.h"

namespace stag::conform::rpcrdma {
namespace {

constexpr std::uint32_t kProbeThreshold = 4096;
constexpr int kMessages = 16;  // more than a server that does not flood sends

std::string_view name_of(Expect expect) {
  switch (expect) {
    case Expect::ErrVers:
      return "RDMA_ERROR ERR_VERS with a range that has 1";
    case Expect::ErrChunk:
      return "RDMA_ERROR ERR_CHUNK";
    case Expect::Dropped:
      return "no answer";
    case Expect::Lost:
      return "the end of the connection";
    case Expect::Success:
      return "an RPC Reply with SUCCESS";
    case Expect::ProgUnavail:
      return "PROG_UNAVAIL";
    case Expect::ProgMismatch:
      return "PROG_MISMATCH with the range of versions";
    case Expect::ProcUnavail:
      return "PROC_UNAVAIL";
    case Expect::GarbageArgs:
      return "GARBAGE_ARGS";
    case Expect::Rejected:
      break;
  }
  return "an RPC Reply with an error";
}

std::string list_of(const std::vector<Expect>& allowed) {
  std::string text;
  for (const Expect expect : allowed)
    text += (text.empty() ? "" : " or ") + std::string(name_of(expect));
  return text;
}

Expect classified(const oncrpc::ReplyStatus& status) {
  if (status.success()) return Expect::Success;
  if (status.reply == oncrpc::ReplyStat::MSG_DENIED) return Expect::Rejected;
  const auto [low, high] = status.versions;
  switch (status.accept) {
    case oncrpc::AcceptStat::PROG_UNAVAIL:
      return Expect::ProgUnavail;
    case oncrpc::AcceptStat::PROG_MISMATCH:
      return low <= v4::NFS_V4 && high >= v4::NFS_V4 && high < kUnservedVersion
                 ? Expect::ProgMismatch
                 : Expect::Rejected;
    case oncrpc::AcceptStat::PROC_UNAVAIL:
      return Expect::ProcUnavail;
    case oncrpc::AcceptStat::GARBAGE_ARGS:
      return Expect::GarbageArgs;
    default:
      return Expect::Rejected;
  }
}

bool is_rejection(Expect expect) {
  switch (expect) {
    case Expect::Rejected:
    case Expect::ProgUnavail:
    case Expect::ProgMismatch:
    case Expect::ProcUnavail:
    case Expect::GarbageArgs:
      return true;
    default:
      return false;
  }
}

bool meets(Expect asked, Expect came) {
  return asked == came || (asked == Expect::Rejected && is_rejection(came));
}

// The kind of an answer; nullopt: one that nothing allows.
std::optional<Expect> classified(const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::Lost:
      return Expect::Lost;
    case Answer::Kind::Silence:
      return Expect::Dropped;
    case Answer::Kind::Malformed:
      return std::nullopt;
    case Answer::Kind::Reply:
      if (const RpcReply reply = rpc_reply(answer.payload); reply.decoded)
        return classified(reply.status);
      return std::nullopt;
    case Answer::Kind::Error:
      break;
  }
  const wire::ErrorMessage& error = answer.error;
  if (error.code == wire::ERR_CHUNK) return Expect::ErrChunk;
  const bool has_one = error.lowest <= 1 && error.highest >= 1;
  return has_one ? std::optional(Expect::ErrVers) : std::nullopt;
}

// The first words of a message that draws an error; nullopt: it has none.
struct Sent {
  std::optional<std::uint32_t> xid{}, version{};

  explicit Sent(Bytes message) {
    if (message.size() >= 4) xid = load_be<std::uint32_t>(message.data());
    if (message.size() >= 8) version = load_be<std::uint32_t>(message.data() + 4);
  }
};

// RFC 8166 4.5, 3.3.1: a complaint about what all errors have, or nothing.
std::string wrong_error(const wire::ErrorMessage& error, const Sent& sent) {
  if (sent.xid && error.xid != *sent.xid)
    return fmt::format("with XID {:#x}, the message had {:#x}", error.xid, *sent.xid);
  if (sent.version && error.version != *sent.version)
    return fmt::format("with version {}, the message had {}", error.version, *sent.version);
  return error.credits == 0 ? "with zero credits" : "";
}

// What came for a probe, and whether a NULL call behind it was answered.
struct Reaction {
  Answer answer{};
  bool answered = false;
  bool alive = false;
};

// A message that draws no answer is known by that of the NULL calls behind it: a second one,
// because a server may answer calls in another order.
Task<Reaction> watch(Peer& peer, Context& context, const Probe& probe, std::uint32_t xid) {
  const bool may_drop = std::ranges::find(probe.expect, Expect::Dropped) != probe.expect.end();
  Reaction reaction;
  std::uint32_t null = context.next_xid();
  send_null(peer, null);
  int nulls = 1;
  for (int i = 0; i < kMessages; ++i) {
    Answer came = co_await peer.next();
    if (came.kind == Answer::Kind::Lost || came.kind == Answer::Kind::Silence) {
      if (!reaction.answered) reaction.answer = std::move(came);
      break;
    }
    if (came.xid == null && came.kind == Answer::Kind::Reply) {
      reaction.alive = true;
      if (reaction.answered || (may_drop && nulls == 2)) break;
      if (!may_drop) continue;
      null = context.next_xid();
      send_null(peer, null);
      ++nulls;
    } else if (!reaction.answered && (came.xid == xid || came.kind != Answer::Kind::Reply)) {
      reaction.answer = std::move(came);
      reaction.answered = true;
      if (reaction.alive) break;
    }
  }
  co_return reaction;
}

Verdict judge(const Probe& probe, const Sent& sent, const Reaction& reaction) {
  const std::optional<Expect> came = classified(reaction.answer);
  const std::string asked = "asked for " + list_of(probe.expect);
  const std::string text = described(reaction.answer);
  const auto allows = [&came](Expect expect) { return meets(expect, *came); };
  if (!came || std::ranges::none_of(probe.expect, allows))
    return Verdict::fail(fmt::format("{} came, {}", text, asked));
  const bool error = reaction.answer.kind == Answer::Kind::Error;
  const std::string complaint = error ? wrong_error(reaction.answer.error, sent) : "";
  if (!complaint.empty()) return Verdict::fail(text + " came " + complaint);
  if (!reaction.alive && *came != Expect::Lost)
    return Verdict::fail(fmt::format("{} came, but a NULL call behind it was not answered", text));
  return Verdict::pass(allows(probe.expect.front()) ? "" : text + " came");
}

}  // namespace

Task<Verdict> perform(const Probe& probe, Context& context) {
  std::string why;
  const std::unique_ptr<Peer> peer = co_await greet(context, kProbeThreshold, why);
  if (peer == nullptr) co_return Verdict::fail("no connection: " + why);
  const std::uint32_t xid = context.next_xid();
  std::vector<std::byte> message = bytes_of_words(probe.words(xid));
  if (probe.cut_to > 0) message.resize(probe.cut_to);
  peer->send(message);
  const Reaction reaction = co_await watch(*peer, context, probe, xid);
  co_await peer->close();
  co_return judge(probe, Sent(message), reaction);
}

}  // namespace stag::conform::rpcrdma
