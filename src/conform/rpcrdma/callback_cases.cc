// Calls that the server sends in the reverse direction (RFC 8167): CB_RECALL of version 4.1, drawn
// by a second client that opens what a first one has a delegation of. The first one answers as it
// should, or as it should not, or is gone, and what it does must neither end the server nor keep
// the second one out after DELEGRETURN.
#include <fmt/format.h>

#include "base/pause.h"
#include "conform/rpcrdma/recalls.h"

namespace stag::conform::rpcrdma {
namespace {

enum class Behaviour : std::uint8_t { Answers, AnswersLate, AnswersAnother, ErrChunk, ErrVers };

void react(SessionParty& holder, const ServerCall& call, Behaviour behaviour) {
  constexpr std::uint32_t kAnother = 0x01010101;
  switch (behaviour) {
    case Behaviour::AnswersAnother:
      holder.answer(call, call.xid ^ kAnother);
      return holder.answer(call);
    case Behaviour::Answers:
      return holder.answer(call);
    case Behaviour::ErrChunk:
      return holder.refuse(call, wire::ERR_CHUNK);
    case Behaviour::ErrVers:
      return holder.refuse(call, wire::ERR_VERS);
    case Behaviour::AnswersLate:
      return;
  }
}

// Nothing, or what failed of the two operations that end a recall.
std::string failure_of(v4::nfsstat4 back, v4::nfsstat4 other) {
  if (back != v4::NFS4_OK) return fmt::format("DELEGRETURN after CB_RECALL: {}", to_string(back));
  if (other != v4::NFS4_OK) return fmt::format("OPEN after DELEGRETURN: {}", to_string(other));
  return {};
}

Task<Verdict> recall_and(Recalls& recalls, Behaviour behaviour) {
  DelegatedFile file;
  Verdict verdict = co_await recalls.delegate(file, "file");
  if (verdict.outcome != Outcome::Pass) co_return verdict;
  SessionParty& holder = recalls.holder;
  SessionParty::Sent open = recalls.open_to_write(file, recalls.other);
  ServerCall recall;
  std::string trouble = co_await recalls.await_recall(file, recall);
  if (trouble.empty()) react(holder, recall, behaviour);
  const v4::nfsstat4 back = co_await recalls.give_back(file);
  v4::COMPOUND4res first = co_await recalls.other.results_of(std::move(open));
  const v4::nfsstat4 other = co_await recalls.opens_at_last(file, recalls.other, std::move(first));
  if (behaviour == Behaviour::AnswersLate && recall.compound) holder.answer(recall);
  answer_all(holder, holder.take_calls());
  const bool alive = co_await holder.alive();
  answer_all(holder, holder.take_calls());
  if (trouble.empty()) trouble = failure_of(back, other);
  if (!trouble.empty()) co_return Verdict::fail(trouble);
  co_return alive ? Verdict::pass() : Verdict::fail("a NULL call behind it was not answered");
}

// How often it is looked whether a Call has come that must not: a server has sent by then what it
// sends at all.
constexpr int kLooks = 5;
constexpr auto kBetweenLooks = std::chrono::milliseconds(50);

// What the server has called meanwhile; empty: nothing.
Task<std::vector<ServerCall>> calls_meanwhile(Recalls& recalls) {
  std::vector<ServerCall> calls = recalls.holder.take_calls();
  for (int i = 0; i < kLooks && calls.empty(); ++i) {
    co_await pause(recalls.context.fabric.loop(), kBetweenLooks, recalls.context.cancel);
    co_await recalls.holder.alive();
    calls = recalls.holder.take_calls();
  }
  co_return calls;
}

// Two recalls are due at once, of which the grant allows one.
Task<Verdict> one_at_a_time(Recalls& recalls, const DelegatedFile& first,
                            const DelegatedFile& second, SessionParty& third) {
  SessionParty& holder = recalls.holder;
  SessionParty::Sent open_first = recalls.open_to_write(first, recalls.other);
  ServerCall recall, next;
  std::string trouble = co_await recalls.await_recall(first, recall);
  SessionParty::Sent open_second = recalls.open_to_write(second, third);
  const std::vector<ServerCall> early = co_await calls_meanwhile(recalls);
  if (trouble.empty() && !early.empty())
    trouble = "a second Call came before the first was answered, and one credit is granted";
  if (recall.compound) holder.answer(recall);
  answer_all(holder, early);
  if (trouble.empty()) trouble = co_await recalls.await_recall(second, next);
  if (trouble.empty()) holder.answer(next);
  const v4::nfsstat4 first_back = co_await recalls.give_back(first);
  const v4::nfsstat4 second_back = co_await recalls.give_back(second);
  v4::COMPOUND4res results = co_await recalls.other.results_of(std::move(open_first));
  const v4::nfsstat4 first_open =
      co_await recalls.opens_at_last(first, recalls.other, std::move(results));
  results = co_await third.results_of(std::move(open_second));
  const v4::nfsstat4 second_open =
      co_await recalls.opens_at_last(second, third, std::move(results));
  answer_all(holder, holder.take_calls());
  if (trouble.empty()) trouble = failure_of(first_back, first_open);
  if (trouble.empty()) trouble = failure_of(second_back, second_open);
  co_return trouble.empty() ? Verdict::pass() : Verdict::fail(trouble);
}

Task<Verdict> grants_one(Recalls& recalls) {
  DelegatedFile first, second;
  Verdict verdict = co_await recalls.delegate(first, "first");
  if (verdict.outcome == Outcome::Pass) verdict = co_await recalls.delegate(second, "second");
  if (verdict.outcome != Outcome::Pass) co_return verdict;
  SessionParty third(recalls.context, first.name + " third");
  const std::string trouble = co_await third.establish(0);
  verdict = Verdict::fail("could not be prepared: " + trouble);
  if (trouble.empty()) verdict = co_await one_at_a_time(recalls, first, second, third);
  co_await third.leave();
  co_return verdict;
}

// RFC 8167 5.4: the server neither waits for ever nor connects by itself.
Task<Verdict> is_cut_off(Recalls& recalls) {
  DelegatedFile file;
  Verdict verdict = co_await recalls.delegate(file, "file");
  if (verdict.outcome != Outcome::Pass) co_return verdict;
  SessionParty::Sent open = recalls.open_to_write(file, recalls.other);
  ServerCall recall;
  std::string trouble = co_await recalls.await_recall(file, recall);
  co_await recalls.holder.disconnect();
  v4::COMPOUND4res first = co_await recalls.other.results_of(std::move(open));
  if (trouble.empty() && first.status == v4::NFS4ERR_SERVERFAULT)
    trouble = "the OPEN in conflict drew no results";
  std::string lost = co_await recalls.holder.reconnect();
  if (trouble.empty() && !lost.empty()) trouble = "no connection after that: " + lost;
  if (!trouble.empty()) co_return Verdict::fail(trouble);
  const v4::nfsstat4 back = co_await recalls.give_back(file);
  const v4::nfsstat4 other = co_await recalls.opens_at_last(file, recalls.other, std::move(first));
  answer_all(recalls.holder, recalls.holder.take_calls());
  trouble = failure_of(back, other);
  co_return trouble.empty() ? Verdict::pass() : Verdict::fail(trouble);
}

using Use = std::function<Task<Verdict>(Recalls&)>;

// `slots`: of the holder's back channel. `grant`: the credits of its answers.
struct Channel {
  std::uint32_t slots = 1, grant = 4;
};

Task<Verdict> with_recalls(Context& context, Channel channel, Use use) {
  Recalls recalls(context);
  recalls.holder.grant(channel.grant);
  Verdict verdict = co_await recalls.begin(channel.slots);
  if (verdict.outcome == Outcome::Pass) verdict = co_await use(recalls);
  co_await recalls.end();
  co_return verdict;
}

RdmaCase called(std::string name, std::string section, std::string requirements, Use use,
                Channel channel = {}) {
  return {.group = "callback",
          .name = std::move(name),
          .section = std::move(section),
          .requirements = std::move(requirements),
          .run = [use, channel](Context& context) { return with_recalls(context, channel, use); },
          .needs_link = true};
}

Use by(Behaviour behaviour) {
  return [behaviour](Recalls& recalls) { return recall_and(recalls, behaviour); };
}

}  // namespace

RdmaCases callback_cases() {
  return {
      called("CB_RECALL comes as a Call in the reverse direction", "8167 5.1",
             "R8167-3.2-a R8167-5.1-a R8167-5.1-b R8167-5.1-d R8167-5.1-e R8167-7-a",
             by(Behaviour::Answers)),
      called("an answer to no Call, before the right one", "8167 2.4", "R8167-2.4-b",
             by(Behaviour::AnswersAnother)),
      called("an answer that comes after DELEGRETURN", "8167 5.2", "", by(Behaviour::AnswersLate)),
      called("ERR_CHUNK as the answer", "8167 5.3", "", by(Behaviour::ErrChunk)),
      called("ERR_VERS as the answer", "8166 4.5.1", "", by(Behaviour::ErrVers)),
      called("a second CB_RECALL waits for the one credit that is granted", "8167 4.1",
             "R8167-4.1-g", grants_one, {.slots = 4, .grant = 1}),
      called("the connection is lost before CB_RECALL is answered", "8167 5.4", "R8167-5.4-b",
             is_cut_off),
  };
}

}  // namespace stag::conform::rpcrdma
