#include "conform/nfs4/client.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "conform/nfs4/results.h"
#include "nfs/ulb/nfs4.h"

namespace stag::conform::nfs4 {
namespace {

constexpr std::uint32_t kResultsMax = 1 << 20;
constexpr const char* kTag = "conform";

// COMPOUND with arguments that need not be well formed.
struct RawCompound {
  using Args = std::vector<std::byte>;
  using Results = v4::COMPOUND4res;
  static constexpr std::uint32_t program = v4::NFS4_PROGRAM;
  static constexpr std::uint32_t version = v4::NFS_V4;
  static constexpr std::uint32_t number = v4::NFSPROC4_COMPOUND::number;
  static constexpr std::string_view name = "COMPOUND";
  static constexpr std::optional<std::uint32_t> max_args_size = std::nullopt;
  static constexpr std::optional<std::uint32_t> max_results_size = std::nullopt;
  static void encode_args(xdr::Encoder& encoder, const Args& args) { encoder.fixed_opaque(args); }
  static bool decode_args(xdr::Decoder&, Args&) { return true; }
  static void encode_results(xdr::Encoder&, const Results&) {}
  static bool decode_results(xdr::Decoder& decoder, Results& results) {
    return decode(decoder, results);
  }
};
static_assert(xdr::Procedure<RawCompound>);

std::vector<std::byte> encoded(const v4::COMPOUND4args& args) {
  xdr::Encoder encoder;
  encode(encoder, args);
  const xdr::Stream stream = std::move(encoder).finish();
  const Buffer flat = stream.without({}).flatten();
  return {flat.bytes().begin(), flat.bytes().end()};
}

v4::channel_attrs4 channel_attributes(std::uint32_t bytes, std::uint32_t calls) {
  v4::channel_attrs4 attributes;
  attributes.ca_maxrequestsize = attributes.ca_maxresponsesize = bytes;
  attributes.ca_maxresponsesize_cached = 4096;
  attributes.ca_maxoperations = 32;
  attributes.ca_maxrequests = calls;
  return attributes;
}

}  // namespace

Op op(v4::nfs_opnum4 number) {
  Op made;
  made.argop = number;
  return made;
}

std::string name_of(v4::nfs_opnum4 number) {
  const std::string_view name = to_string(number);
  return name.starts_with("OP_") ? std::string(name.substr(3)) : fmt::format("{}", int{number});
}

std::string name_of(v4::nfsstat4 status) {
  const std::string_view name = to_string(status);
  return name.empty() ? fmt::format("{}", int{status}) : std::string(name);
}

bool Reply::garbage() const {
  return error && error->kind == rpc::CallError::Kind::Answered &&
         error->status.reply == oncrpc::ReplyStat::MSG_ACCEPTED &&
         error->status.accept == oncrpc::AcceptStat::GARBAGE_ARGS;
}

bool Reply::silent() const {
  return error && error->kind == rpc::CallError::Kind::Transport &&
         error->reason == Reason::TimedOut;
}

std::string Reply::text() const {
  if (error) return "no results: " + error->message();
  return foreign.empty() ? name_of(results.status) : foreign;
}

Client::Client(rpc::Channel& channel, ClientOptions options)
    : channel_(channel),
      options_(std::move(options)),
      rpc_(channel, nfs::ulb::nfs4(), options_.credentials) {}

rpc::CallOptions Client::call_options(const rpc::Credentials* credentials) const {
  rpc::CallOptions call;
  call.timeout = options_.timeout;
  call.cancel = options_.cancel;
  call.credentials = credentials;
  return call;
}

Task<Reply> Client::compound(v4::COMPOUND4args args, const rpc::Credentials* credentials) {
  Reply reply;
  auto came = co_await rpc_.call<v4::NFSPROC4_COMPOUND>(args, call_options(credentials));
  if (!came) {
    reply.error = came.error();
    co_return reply;
  }
  reply.results = *std::move(came);
  reply.foreign = mismatch(args, reply.results);
  co_return reply;
}

Task<Reply> Client::bare(std::vector<Op> operations, const rpc::Credentials* credentials) {
  v4::COMPOUND4args args{kTag, options_.minor, std::move(operations)};
  return compound(std::move(args), credentials);
}

Task<Reply> Client::raw(std::vector<std::byte> arguments) {
  Reply reply;
  rpc::CallOptions options = call_options(nullptr);
  options.results_max = 64 << 10;
  auto came = co_await rpc_.call<RawCompound>(arguments, options);
  if (!came)
    reply.error = came.error();
  else
    reply.results = *std::move(came);
  co_return reply;
}

void Client::take_off_sequence(Reply& reply) {
  note(reply);
  auto& results = reply.results.resarray;
  if (!reply.error && results.size() > 1 && results.front().resop == v4::OP_SEQUENCE)
    results.erase(results.begin());
}

Task<Reply> Client::run(std::vector<Op> operations, const rpc::Credentials* credentials) {
  if (minor() == 0) co_return co_await bare(std::move(operations), credentials);
  operations.insert(operations.begin(), op(v4::OP_SEQUENCE, &Op::opsequence, sequence()));
  Reply reply = co_await bare(std::move(operations), credentials);
  take_off_sequence(reply);
  co_return reply;
}

Task<Reply> Client::run_altered(const std::vector<Op>& operations, Alteration alter) {
  v4::COMPOUND4args args{kTag, minor(), operations};
  if (minor() > 0)
    args.argarray.insert(args.argarray.begin(), op(v4::OP_SEQUENCE, &Op::opsequence, sequence()));
  std::vector<std::byte> bytes = encoded(args);
  alter(bytes);
  Reply reply = co_await raw(std::move(bytes));
  if (minor() > 0) take_off_sequence(reply);
  co_return reply;
}

v4::SEQUENCE4args Client::sequence() const {
  v4::SEQUENCE4args args;
  args.sa_sessionid = session_.csr_sessionid;
  args.sa_sequenceid = sequenceid_;
  return args;
}

void Client::note(const Reply& reply) {
  const auto& results = reply.results.resarray;
  if (reply.error || results.empty() || results.front().resop != v4::OP_SEQUENCE) return;
  if (results.front().opsequence().sr_status == v4::NFS4_OK) ++sequenceid_;
}

v4::EXCHANGE_ID4args Client::owner_args() const {
  v4::EXCHANGE_ID4args args;
  args.eia_clientowner.co_ownerid = Rope::copy_of(bytes_of(options_.owner));
  args.eia_clientowner.co_verifier = verifier_;
  return args;
}

v4::SETCLIENTID4args Client::owner_args_v40() const {
  v4::SETCLIENTID4args args;
  args.client.id = Rope::copy_of(bytes_of(options_.owner));
  args.client.verifier = verifier_;
  args.callback.cb_program = v4::NFS4_CALLBACK;
  // Else where nobody listens, so that no delegation is given.
  args.callback.cb_location = {"tcp", "0.0.0.0.0.0"};
  if (options_.place != nullptr) args.callback.cb_location = options_.place->where();
  return args;
}

v4::CREATE_SESSION4args Client::session_args() const {
  v4::CREATE_SESSION4args args;
  args.csa_clientid = clientid_;
  args.csa_sequence = create_sequence_;
  args.csa_fore_chan_attrs = channel_attributes(kResultsMax, 4);
  args.csa_back_chan_attrs = channel_attributes(4096, 1);
  args.csa_cb_program = v4::NFS4_CALLBACK;
  args.csa_sec_parms.resize(1);
  if (!options_.called_back) return args;
  args.csa_flags = v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
  args.csa_sec_parms[0].cb_secflavor = v4::AUTH_SYS;
  args.csa_sec_parms[0].cbsp_sys_cred().machinename = "conform";
  return args;
}

Task<std::string> Client::establish_v40() {
  std::vector<Op> asked;
  asked.push_back(op(v4::OP_SETCLIENTID, &Op::opsetclientid, owner_args_v40()));
  const Reply given = co_await bare(std::move(asked));
  if (!given.ok()) co_return "SETCLIENTID: " + given.text();
  const auto& client = given.results.resarray.front().opsetclientid().resok4();
  clientid_ = client.clientid;
  v4::SETCLIENTID_CONFIRM4args args{client.clientid, client.setclientid_confirm};
  std::vector<Op> confirming;
  confirming.push_back(op(v4::OP_SETCLIENTID_CONFIRM, &Op::opsetclientid_confirm, args));
  const Reply confirmed = co_await bare(std::move(confirming));
  co_return confirmed.ok() ? std::string() : "SETCLIENTID_CONFIRM: " + confirmed.text();
}

Task<std::string> Client::establish_session() {
  std::vector<Op> asked;
  asked.push_back(op(v4::OP_EXCHANGE_ID, &Op::opexchange_id, owner_args()));
  const Reply given = co_await bare(std::move(asked));
  if (!given.ok()) co_return "EXCHANGE_ID: " + given.text();
  const auto& client = given.results.resarray.front().opexchange_id().eir_resok4();
  clientid_ = client.eir_clientid;
  create_sequence_ = client.eir_sequenceid;
  std::vector<Op> creating;
  creating.push_back(op(v4::OP_CREATE_SESSION, &Op::opcreate_session, session_args()));
  const Reply made = co_await bare(std::move(creating));
  if (!made.ok()) co_return "CREATE_SESSION: " + made.text();
  adopt(made.results.resarray.front().opcreate_session().csr_resok4());
  std::vector<Op> completing;
  completing.push_back(op(v4::OP_RECLAIM_COMPLETE, &Op::opreclaim_complete, {}));
  const Reply complete = co_await run(std::move(completing));
  co_return complete.ok() ? std::string() : "RECLAIM_COMPLETE: " + complete.text();
}

void Client::adopt(const v4::CREATE_SESSION4resok& session) {
  session_ = session;
  ++create_sequence_;
  sequenceid_ = 1;
}

Task<std::string> Client::establish() {
  // Another verifier is another incarnation, whose state of before goes.
  auto& count = verifier_.back();
  count = static_cast<std::byte>(static_cast<unsigned>(count) + 1);
  if (minor() == 0) return establish_v40();
  return establish_session();
}

Task<Reply> Client::renew() {
  std::vector<Op> operations;
  if (minor() == 0) operations.push_back(op(v4::OP_RENEW, &Op::oprenew, {clientid_}));
  operations.push_back(op(v4::OP_PUTROOTFH));
  return run(std::move(operations));
}

Task<bool> Client::alive() {
  const Reply reply = co_await renew();
  co_return reply.ok();
}

Task<void> Client::leave() {
  if (clientid_ == 0) co_return;
  options_.cancel = {};  // after an interruption, too
  // Version 4.0 cannot give a client ID back: one that holds nothing goes with its lease.
  const bool gone = minor() != 0 && co_await destroyed();
  if (gone) co_return;
  // Cases may have left something open: it goes with the next incarnation.
  const std::string trouble = co_await establish();
  if (trouble.empty() && minor() != 0) co_await destroyed();
}

Task<bool> Client::destroyed() {
  std::vector<Op> session;
  session.push_back(op(v4::OP_DESTROY_SESSION, &Op::opdestroy_session, {session_.csr_sessionid}));
  co_await bare(std::move(session));
  std::vector<Op> client;
  client.push_back(op(v4::OP_DESTROY_CLIENTID, &Op::opdestroy_clientid, {clientid_}));
  const Reply reply = co_await bare(std::move(client));
  co_return reply.ok();
}

}  // namespace stag::conform::nfs4
