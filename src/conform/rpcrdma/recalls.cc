#include "conform/rpcrdma/recalls.h"

#include <fmt/format.h>

#include "base/pause.h"

namespace stag::conform::rpcrdma {
namespace {

// A server may look first whether the client can be called, and be busy.
constexpr int kPatience = 100;
constexpr auto kPause = std::chrono::milliseconds(50);

using Operations = SessionParty::Operations;

Operations at_file(const DelegatedFile& file) {
  Operations operations{operation(v4::OP_PUTFH)};
  operations[0].opputfh() = {file.handle};
  return operations;
}

Task<v4::nfsstat4> close(const DelegatedFile& file, SessionParty& party, v4::stateid4 open) {
  Operations operations = at_file(file);
  operations.push_back(operation(v4::OP_CLOSE));
  operations.back().opclose() = {0, open};
  const v4::COMPOUND4res results = co_await party.run(std::move(operations));
  co_return results.status;
}

const v4::OPEN4resok& opened(const v4::COMPOUND4res& results) {
  return results.resarray[results.resarray.size() - 2].opopen().resok4();
}

std::string not_prepared(const std::string& trouble) {
  return "could not be prepared: " + trouble;
}

}  // namespace

void answer_all(SessionParty& party, std::vector<ServerCall> calls) {
  for (const ServerCall& call : calls) party.answer(call);
}

Recalls::Recalls(Context& of)
    : context(of),
      label(fmt::format("{}-{:x}", of.link, of.next_xid())),
      holder(of, label + " holder"),
      other(of, label + " other") {}

SessionParty::Operations Recalls::opening(const DelegatedFile& file, const SessionParty& party,
                                          std::uint32_t access, bool create) const {
  Operations operations = way_to(context);
  operations.push_back(operation(v4::OP_OPEN));
  v4::OPEN4args& args = operations.back().opopen();
  args.share_access = access;
  args.owner = {party.clientid(), Rope::copy_of(bytes_of(file.name))};
  if (create) {
    args.openhow.opentype = v4::OPEN4_CREATE;
    args.openhow.how().mode = v4::UNCHECKED4;
    args.openhow.how().createattrs() = {};
  }
  args.claim.claim = v4::CLAIM_NULL;
  args.claim.file() = file.name;
  operations.push_back(operation(v4::OP_GETFH));
  return operations;
}

Task<Verdict> Recalls::begin(std::uint32_t slots) {
  std::string trouble = co_await holder.establish(slots);
  if (trouble.empty()) trouble = co_await other.establish(0);
  if (trouble.ends_with("NFS4ERR_MINOR_VERS_MISMATCH"))
    co_return Verdict::skip("the server does not offer version 4.1");
  if (!trouble.empty()) co_return Verdict::fail(not_prepared(trouble));
  if (!holder.is_called())
    co_return Verdict::skip("the server does not call on the connection of a session");
  co_return Verdict::pass();
}

// Opens the file until a delegation comes with it. A sentence about what failed, or nothing.
Task<std::string> Recalls::obtain(DelegatedFile& file, bool& given) {
  constexpr std::uint32_t kWanted =
      v4::OPEN4_SHARE_ACCESS_READ | v4::OPEN4_SHARE_ACCESS_WANT_READ_DELEG;
  for (int i = 0; i < kPatience && !context.cancel.cancelled(); ++i) {
    SessionParty::Sent sent = holder.send(opening(file, holder, kWanted, i == 0));
    const v4::COMPOUND4res results = co_await holder.results_of(std::move(sent));
    answer_all(holder, holder.take_calls());
    if (results.status == v4::NFS4ERR_DELAY || results.status == v4::NFS4ERR_GRACE) {
      co_await pause(context.fabric.loop(), kPause, context.cancel);
      continue;
    }
    if (results.status != v4::NFS4_OK) co_return fmt::format("OPEN: {}", to_string(results.status));
    file.handle = results.resarray.back().opgetfh().resok4().object;
    const v4::OPEN4resok& open = opened(results);
    given = open.delegation.delegation_type == v4::OPEN_DELEGATE_READ;
    if (given) file.delegation = open.delegation.read().stateid;
    co_await close(file, holder, open.stateid);
    answer_all(holder, holder.take_calls());
    if (given) break;
    co_await pause(context.fabric.loop(), kPause, context.cancel);
  }
  co_return std::string();
}

Task<Verdict> Recalls::delegate(DelegatedFile& file, std::string_view name) {
  file.name = fmt::format("{}-{}", label, name);
  made_.push_back(file.name);
  bool given = false;
  const std::string trouble = co_await obtain(file, given);
  if (!trouble.empty()) co_return Verdict::fail(not_prepared(trouble));
  co_return given ? Verdict::pass() : Verdict::skip("the server gave no delegation");
}

SessionParty::Sent Recalls::open_to_write(const DelegatedFile& file, SessionParty& writer) {
  return writer.send(opening(file, writer, v4::OPEN4_SHARE_ACCESS_WRITE));
}

Task<v4::nfsstat4> Recalls::opens_at_last(const DelegatedFile& file, SessionParty& writer,
                                          v4::COMPOUND4res results) {
  for (int i = 0; i < kPatience && results.status == v4::NFS4ERR_DELAY; ++i) {
    co_await pause(context.fabric.loop(), kPause, context.cancel);
    results = co_await writer.run(opening(file, writer, v4::OPEN4_SHARE_ACCESS_WRITE));
  }
  if (results.status == v4::NFS4_OK) co_await close(file, writer, opened(results).stateid);
  co_return results.status;
}

Task<std::string> Recalls::await_recall(const DelegatedFile& file, ServerCall& recall) {
  for (int i = 0; i < kPatience; ++i) {
    std::optional<ServerCall> call = co_await holder.next_call();
    if (!call) co_return "no CB_RECALL came for an OPEN in conflict";
    if (!call->complaint.empty()) co_return "the server's Call: " + call->complaint;
    const v4::CB_RECALL4args* const args = call->recall();
    if (args == nullptr) {
      holder.answer(*call);
      continue;
    }
    if (args->stateid.other != file.delegation.other || args->fh != file.handle)
      co_return "CB_RECALL is of another delegation or file";
    recall = *std::move(call);
    co_return std::string();
  }
  co_return "other callbacks came again and again, and no CB_RECALL";
}

Task<v4::nfsstat4> Recalls::give_back(const DelegatedFile& file) {
  Operations operations = at_file(file);
  operations.push_back(operation(v4::OP_DELEGRETURN));
  operations.back().opdelegreturn() = {file.delegation};
  const v4::COMPOUND4res results = co_await holder.run(std::move(operations));
  co_return results.status;
}

Task<void> Recalls::end() {
  for (const std::string& name : made_) {
    Operations operations = way_to(context);
    operations.push_back(operation(v4::OP_REMOVE));
    operations.back().opremove() = {name};
    co_await other.run(std::move(operations));
  }
  co_await holder.leave();
  co_await other.leave();
}

}  // namespace stag::conform::rpcrdma
