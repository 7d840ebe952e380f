// Calls that the server sends in the reverse direction (RFC 8167): CB_RECALL of version 4.1, drawn
// by a second client that opens what a first one has a delegation of. The first one answers as it
// should, or as it should not, and what it does must neither end the server nor keep the second one
// out after DELEGRETURN.
#include <fmt/format.h>

#include "base/pause.h"
#include "conform/rpcrdma/session_party.h"

namespace stag::conform::rpcrdma {
namespace {

// A server may look first whether the client can be called, and be busy.
constexpr int kPatience = 100;
constexpr auto kPause = std::chrono::milliseconds(50);

using Operations = SessionParty::Operations;
enum class Behaviour : std::uint8_t { Answers, AnswersLate, AnswersAnother, ErrChunk, ErrVers };

// A file of the case, and who has it open.
struct Recalled {
  explicit Recalled(Context& of)
      : context(of),
        file(fmt::format("{}-{:x}", of.link, of.next_xid())),
        holder(of, file + " holder"),
        other(of, file + " other") {}

  Context& context;
  const std::string file;
  SessionParty holder, other;
  v4::nfs_fh4 handle{};
  v4::stateid4 delegation{};
};

Operations opening(const Recalled& recalled, const SessionParty& party, std::uint32_t access,
                   bool create = false) {
  Operations operations = way_to(recalled.context);
  operations.push_back(operation(v4::OP_OPEN));
  v4::OPEN4args& args = operations.back().opopen();
  args.share_access = access;
  args.owner = {party.clientid(), Rope::copy_of(bytes_of(recalled.file))};
  if (create) {
    args.openhow.opentype = v4::OPEN4_CREATE;
    args.openhow.how().mode = v4::UNCHECKED4;
    args.openhow.how().createattrs() = {};
  }
  args.claim.claim = v4::CLAIM_NULL;
  args.claim.file() = recalled.file;
  operations.push_back(operation(v4::OP_GETFH));
  return operations;
}

Operations at_file(const Recalled& recalled) {
  Operations operations{operation(v4::OP_PUTFH)};
  operations[0].opputfh() = {recalled.handle};
  return operations;
}

Task<v4::nfsstat4> close(Recalled& recalled, SessionParty& party, v4::stateid4 open) {
  Operations operations = at_file(recalled);
  operations.push_back(operation(v4::OP_CLOSE));
  operations.back().opclose() = {0, open};
  const v4::COMPOUND4res results = co_await party.run(std::move(operations));
  co_return results.status;
}

const v4::OPEN4resok& opened(const v4::COMPOUND4res& results) {
  return results.resarray[results.resarray.size() - 2].opopen().resok4();
}

// What the server asks before the delegation is recalled: whether it can call at all.
void answer_all(SessionParty& party, std::vector<ServerCall> calls) {
  for (const ServerCall& call : calls) party.answer(call);
}

// Opens the file until a delegation comes with it. A sentence about what failed, or nothing.
Task<std::string> obtain(Recalled& recalled, bool& given) {
  constexpr std::uint32_t kWanted =
      v4::OPEN4_SHARE_ACCESS_READ | v4::OPEN4_SHARE_ACCESS_WANT_READ_DELEG;
  SessionParty& holder = recalled.holder;
  for (int i = 0; i < kPatience && !recalled.context.cancel.cancelled(); ++i) {
    SessionParty::Sent sent = holder.send(opening(recalled, holder, kWanted, i == 0));
    const v4::COMPOUND4res results = co_await holder.results_of(std::move(sent));
    answer_all(holder, holder.take_calls());
    if (results.status == v4::NFS4ERR_DELAY || results.status == v4::NFS4ERR_GRACE) {
      co_await pause(recalled.context.fabric.loop(), kPause, recalled.context.cancel);
      continue;
    }
    if (results.status != v4::NFS4_OK) co_return fmt::format("OPEN: {}", to_string(results.status));
    recalled.handle = results.resarray.back().opgetfh().resok4().object;
    const v4::OPEN4resok& open = opened(results);
    given = open.delegation.delegation_type == v4::OPEN_DELEGATE_READ;
    if (given) recalled.delegation = open.delegation.read().stateid;
    co_await close(recalled, holder, open.stateid);
    answer_all(holder, holder.take_calls());
    if (given) break;
    co_await pause(recalled.context.fabric.loop(), kPause, recalled.context.cancel);
  }
  co_return std::string();
}

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

Task<v4::nfsstat4> give_back(Recalled& recalled) {
  Operations operations = at_file(recalled);
  operations.push_back(operation(v4::OP_DELEGRETURN));
  operations.back().opdelegreturn() = {recalled.delegation};
  const v4::COMPOUND4res results = co_await recalled.holder.run(std::move(operations));
  co_return results.status;
}

// The OPEN of the other client, again while the server says NFS4ERR_DELAY.
Task<v4::nfsstat4> opens_at_last(Recalled& recalled, SessionParty::Sent first) {
  SessionParty& other = recalled.other;
  v4::COMPOUND4res results = co_await other.results_of(std::move(first));
  for (int i = 0; i < kPatience && results.status == v4::NFS4ERR_DELAY; ++i) {
    co_await pause(recalled.context.fabric.loop(), kPause, recalled.context.cancel);
    results = co_await other.run(opening(recalled, other, v4::OPEN4_SHARE_ACCESS_WRITE));
  }
  if (results.status == v4::NFS4_OK) co_await close(recalled, other, opened(results).stateid);
  co_return results.status;
}

// The CB_RECALL of the delegation; a sentence about what came instead, or nothing.
Task<std::string> await_recall(Recalled& recalled, ServerCall& recall) {
  for (int i = 0; i < kPatience; ++i) {
    std::optional<ServerCall> call = co_await recalled.holder.next_call();
    if (!call) co_return "no CB_RECALL came for an OPEN in conflict";
    if (!call->complaint.empty()) co_return "the server's Call: " + call->complaint;
    const v4::CB_RECALL4args* const args = call->recall();
    if (args == nullptr) {
      recalled.holder.answer(*call);
      continue;
    }
    if (args->stateid.other != recalled.delegation.other || args->fh != recalled.handle)
      co_return "CB_RECALL is of another delegation or file";
    recall = *std::move(call);
    co_return std::string();
  }
  co_return "other callbacks came again and again, and no CB_RECALL";
}

Task<Verdict> recall_and(Recalled& recalled, Behaviour behaviour) {
  SessionParty& holder = recalled.holder;
  SessionParty::Sent open =
      recalled.other.send(opening(recalled, recalled.other, v4::OPEN4_SHARE_ACCESS_WRITE));
  ServerCall recall;
  const std::string trouble = co_await await_recall(recalled, recall);
  if (trouble.empty()) react(holder, recall, behaviour);
  const v4::nfsstat4 back = co_await give_back(recalled);
  const v4::nfsstat4 other = co_await opens_at_last(recalled, std::move(open));
  if (behaviour == Behaviour::AnswersLate) holder.answer(recall);
  answer_all(holder, holder.take_calls());
  const bool alive = co_await holder.alive();
  answer_all(holder, holder.take_calls());
  if (!trouble.empty()) co_return Verdict::fail(trouble);
  if (back != v4::NFS4_OK)
    co_return Verdict::fail(fmt::format("DELEGRETURN after CB_RECALL: {}", to_string(back)));
  if (other != v4::NFS4_OK)
    co_return Verdict::fail(fmt::format("OPEN after DELEGRETURN: {}", to_string(other)));
  co_return alive ? Verdict::pass() : Verdict::fail("a NULL call behind it was not answered");
}

Task<void> remove_file(Recalled& recalled) {
  Operations operations = way_to(recalled.context);
  operations.push_back(operation(v4::OP_REMOVE));
  operations.back().opremove() = {recalled.file};
  co_await recalled.other.run(std::move(operations));
}

Task<Verdict> prepare_and(Recalled& recalled, Behaviour behaviour) {
  std::string trouble = co_await recalled.holder.establish(true);
  if (trouble.empty()) trouble = co_await recalled.other.establish(false);
  if (trouble.ends_with("NFS4ERR_MINOR_VERS_MISMATCH"))
    co_return Verdict::skip("the server does not offer version 4.1");
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  if (!recalled.holder.is_called())
    co_return Verdict::skip("the server does not call on the connection of a session");
  bool given = false;
  trouble = co_await obtain(recalled, given);
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  Verdict verdict = Verdict::skip("the server gave no delegation");
  if (given) verdict = co_await recall_and(recalled, behaviour);
  co_await remove_file(recalled);
  co_return verdict;
}

Task<Verdict> recalls(Context& context, Behaviour behaviour) {
  Recalled recalled(context);
  Verdict verdict = co_await prepare_and(recalled, behaviour);
  co_await recalled.holder.leave();
  co_await recalled.other.leave();
  co_return verdict;
}

RdmaCase called(std::string name, std::string section, std::string requirements,
                Behaviour behaviour) {
  return {.group = "callback",
          .name = std::move(name),
          .section = std::move(section),
          .requirements = std::move(requirements),
          .run = [behaviour](Context& context) { return recalls(context, behaviour); },
          .needs_link = true};
}

}  // namespace

RdmaCases callback_cases() {
  return {
      called("CB_RECALL comes as a Call in the reverse direction", "8167 5.1",
             "R8167-3.2-a R8167-5.1-a R8167-5.1-b R8167-5.1-d R8167-5.1-e R8167-7-a",
             Behaviour::Answers),
      called("an answer to no Call, before the right one", "8167 2.4", "R8167-2.4-b",
             Behaviour::AnswersAnother),
      called("an answer that comes after DELEGRETURN", "8167 5.2", "", Behaviour::AnswersLate),
      called("ERR_CHUNK as the answer", "8167 5.3", "", Behaviour::ErrChunk),
      called("ERR_VERS as the answer", "8166 4.5.1", "", Behaviour::ErrVers),
  };
}

}  // namespace stag::conform::rpcrdma
