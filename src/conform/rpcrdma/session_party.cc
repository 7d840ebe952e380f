#include "conform/rpcrdma/session_party.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "conform/nfs4/callbacks.h"
#include "conform/nfs4/results.h"
#include "xdr/encoder.h"

namespace stag::conform::rpcrdma {
namespace {

constexpr std::uint32_t kOwnThreshold = 4096;

using Op = v4::nfs_argop4;

v4::channel_attrs4 channel_attributes(std::uint32_t calls) {
  v4::channel_attrs4 attributes;
  attributes.ca_maxrequestsize = attributes.ca_maxresponsesize = kOwnThreshold;
  attributes.ca_maxresponsesize_cached = 2048;
  attributes.ca_maxoperations = 16;
  attributes.ca_maxrequests = calls;
  return attributes;
}

v4::CREATE_SESSION4args session_args(v4::clientid4 clientid, v4::sequenceid4 sequence,
                                     std::uint32_t callback_slots) {
  v4::CREATE_SESSION4args args;
  args.csa_clientid = clientid;
  args.csa_sequence = sequence;
  args.csa_fore_chan_attrs = channel_attributes(4);
  args.csa_back_chan_attrs = channel_attributes(std::max(callback_slots, 1u));
  args.csa_cb_program = v4::NFS4_CALLBACK;
  args.csa_sec_parms.resize(1);
  if (callback_slots == 0) return args;
  args.csa_flags = v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
  args.csa_sec_parms[0].cb_secflavor = v4::AUTH_SYS;
  args.csa_sec_parms[0].cbsp_sys_cred().machinename = "conform";
  return args;
}

v4::nfs_cb_resop4 success_of(const v4::nfs_cb_argop4& asked) {
  v4::nfs_cb_resop4 result;
  result.resop = asked.argop;
  if (asked.argop != v4::OP_CB_SEQUENCE) return result;
  const v4::CB_SEQUENCE4args& args = asked.opcbsequence();
  result.opcbsequence().csr_resok4() = {args.csa_sessionid, args.csa_sequenceid, args.csa_slotid,
                                        args.csa_highest_slotid, args.csa_highest_slotid};
  return result;
}

std::string failure(const char* operation, const v4::COMPOUND4res& results) {
  return fmt::format("{}: {}", operation, to_string(results.status));
}

}  // namespace

const v4::CB_RECALL4args* ServerCall::recall() const {
  if (!compound || compound->argarray.size() != 2) return nullptr;
  const bool is_it = compound->argarray[0].argop == v4::OP_CB_SEQUENCE &&
                     compound->argarray[1].argop == v4::OP_CB_RECALL;
  return is_it ? &compound->argarray[1].opcbrecall() : nullptr;
}

Task<std::string> SessionParty::establish(std::uint32_t callback_slots) {
  std::string why;
  peer_ = co_await greet(context_, kOwnThreshold, why);
  if (peer_ == nullptr) co_return "no connection: " + why;
  Operations asking{operation(v4::OP_EXCHANGE_ID)};
  v4::EXCHANGE_ID4args& owner = asking[0].opexchange_id();
  owner.eia_clientowner.co_ownerid = Rope::copy_of(bytes_of(owner_));
  const v4::COMPOUND4res known = co_await bare(std::move(asking));
  if (known.status != v4::NFS4_OK) co_return failure("EXCHANGE_ID", known);
  const v4::EXCHANGE_ID4resok client = known.resarray.front().opexchange_id().eir_resok4();
  clientid_ = client.eir_clientid;
  Operations creating{operation(v4::OP_CREATE_SESSION)};
  creating[0].opcreate_session() = session_args(clientid_, client.eir_sequenceid, callback_slots);
  const v4::COMPOUND4res made = co_await bare(std::move(creating));
  if (made.status != v4::NFS4_OK) co_return failure("CREATE_SESSION", made);
  const v4::CREATE_SESSION4resok& session = made.resarray.front().opcreate_session().csr_resok4();
  session_ = session.csr_sessionid;
  called_ = (session.csr_flags & v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN) != 0;
  Operations completing{operation(v4::OP_RECLAIM_COMPLETE)};
  const v4::COMPOUND4res complete = co_await run(std::move(completing));
  co_return complete.status == v4::NFS4_OK ? "" : failure("RECLAIM_COMPLETE", complete);
}

SessionParty::Sent SessionParty::send_bare(Operations operations) {
  const Call call = compound_call(context_, operations, {}, 1);
  send_call(*peer_, call);
  return {call.header.xid, {kCompoundTag, 1, std::move(operations)}};
}

SessionParty::Sent SessionParty::send(Operations operations) {
  Op sequence = operation(v4::OP_SEQUENCE);
  sequence.opsequence().sa_sessionid = session_;
  sequence.opsequence().sa_sequenceid = ++sequenceid_;
  operations.insert(operations.begin(), std::move(sequence));
  return send_bare(std::move(operations));
}

Task<v4::COMPOUND4res> SessionParty::results_of(Sent sent) {
  v4::COMPOUND4res results;
  const Answer answer = co_await answer_to(sent.xid);
  if (!is_success(answer) || !decode_compound(rpc_reply(answer.payload).results, results) ||
      !nfs4::mismatch(sent.args, results).empty())
    co_return v4::COMPOUND4res{v4::NFS4ERR_SERVERFAULT, {}, {}};
  auto& all = results.resarray;
  if (!all.empty() && all.front().resop == v4::OP_SEQUENCE) all.erase(all.begin());
  co_return results;
}

Task<v4::COMPOUND4res> SessionParty::run(Operations operations) {
  return results_of(send(std::move(operations)));
}

Task<v4::COMPOUND4res> SessionParty::bare(Operations operations) {
  return results_of(send_bare(std::move(operations)));
}

// RFC 8167 2.4: a message of the server is a Reply to this XID only if it says that it is a Reply.
Task<Answer> SessionParty::answer_to(std::uint32_t xid) {
  for (int i = 0; i < kMessages; ++i) {
    Answer came = co_await peer_->next();
    if (came.kind != Answer::Kind::Reply && came.kind != Answer::Kind::Error) co_return came;
    const auto start = oncrpc::peek(came.payload.bytes());
    const bool is_call = start && start->type == oncrpc::MessageType::CALL;
    if (came.kind == Answer::Kind::Reply && is_call)
      keep(came);
    else if (came.xid == xid)
      co_return came;
  }
  co_return Answer{};
}

Task<std::optional<ServerCall>> SessionParty::next_call() {
  for (int i = 0; i < kMessages && calls_.empty(); ++i) {
    const Answer came = co_await peer_->next();
    if (came.kind == Answer::Kind::Lost || came.kind == Answer::Kind::Silence)
      co_return std::nullopt;
    if (came.kind == Answer::Kind::Reply) keep(came);
  }
  if (calls_.empty()) co_return std::nullopt;
  ServerCall first = std::move(calls_.front());
  calls_.pop_front();
  co_return first;
}

std::vector<ServerCall> SessionParty::take_calls() {
  std::vector<ServerCall> taken(std::make_move_iterator(calls_.begin()),
                                std::make_move_iterator(calls_.end()));
  calls_.clear();
  return taken;
}

void SessionParty::keep(const Answer& message) {
  xdr::Decoder decoder(message.payload);
  const auto header = oncrpc::decode_call(decoder);
  if (!header) return;
  ServerCall call{message.xid, {}, complaint_about(message, *header)};
  if (header->procedure == v4::CB_COMPOUND::number) {
    v4::CB_COMPOUND4args args;
    if (!decode(decoder, args)) call.complaint = "CB_COMPOUND with arguments that are malformed";
    call.compound = std::move(args);
  }
  calls_.push_back(std::move(call));
}

// RFC 8167 4.1, 5.1 and 5.3; no item of a callback may be reduced (RFC 8267 6.5).
std::string SessionParty::complaint_about(const Answer& message, const oncrpc::CallHeader& call) {
  if (message.header.xid != call.xid)
    return fmt::format("rdma_xid {:#x} and XID {:#x}", message.header.xid, call.xid);
  if (!xids_.insert(call.xid).second) return "an XID that another Call had";
  if (message.header.credits == 0) return "a request for zero credits";
  if (message.header.proc != wire::RDMA_MSG || message.header.has_chunks())
    return "a Call with chunks";
  if (message.size > kOwnThreshold)
    return fmt::format("{} bytes, and {} were announced", message.size, kOwnThreshold);
  if (call.program != v4::NFS4_CALLBACK || !nfs4::is_callback_version(call.version))
    return fmt::format("program {} version {}", call.program, call.version);
  return {};
}

void SessionParty::answer(const ServerCall& call, std::uint32_t xid) {
  xdr::Encoder encoder;
  oncrpc::encode(encoder, oncrpc::ReplyHeader{xid, {}, {}});
  if (call.compound) {
    v4::CB_COMPOUND4res results;
    results.tag = call.compound->tag;
    for (const v4::nfs_cb_argop4& asked : call.compound->argarray)
      results.resarray.push_back(success_of(asked));
    encode(encoder, results);
  }
  wire::Header header;
  header.xid = xid;
  header.credits = granted_;
  Rope message = Rope::copy_of(wire::EncodedHeader(header).bytes());
  message.append(std::move(encoder).finish().without({}));
  peer_->send(message.flatten().bytes());
}

void SessionParty::refuse(const ServerCall& call, wire::rpc_rdma_errcode code) {
  Words error{code};
  if (code == wire::ERR_VERS) error.insert(error.end(), {wire::kVersion, wire::kVersion});
  peer_->send(
      bytes_of_words(header_words(call.xid, wire::kVersion, wire::RDMA_ERROR, error, granted_)));
}

Task<bool> SessionParty::alive() {
  const std::uint32_t xid = context_.next_xid();
  send_null(*peer_, xid);
  const Answer answer = co_await answer_to(xid);
  co_return is_success(answer);
}

Task<void> SessionParty::disconnect() {
  if (peer_ != nullptr) co_await peer_->close();
  peer_.reset();
  calls_.clear();
}

Task<std::string> SessionParty::reconnect() {
  std::string why;
  peer_ = co_await greet(context_, kOwnThreshold, why);
  co_return peer_ == nullptr ? why : std::string();
}

Task<void> SessionParty::leave() {
  if (peer_ == nullptr) co_return;
  if (!peer_->lost()) {
    Operations session{operation(v4::OP_DESTROY_SESSION)};
    session[0].opdestroy_session() = {session_};
    co_await bare(std::move(session));
    Operations client{operation(v4::OP_DESTROY_CLIENTID)};
    client[0].opdestroy_clientid() = {clientid_};
    co_await bare(std::move(client));
  }
  co_await peer_->close();
}

}  // namespace stag::conform::rpcrdma
