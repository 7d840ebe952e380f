// A server of NFSv4.0 to 4.2 on a memory store, in virtual time, with few of everything, so that an
// input meets every limit. Calls go in as the bytes of a COMPOUND and run beside each other; what
// they return is kept as Names for the Calls to come. Whatever the input does, check() holds, and
// when all leases are long over, nothing is left.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "input.h"
#include "nfs/export/server_context.h"
#include "nfs/ulb/nfs4.h"
#include "nfs/v4/callback/callbacks.h"
#include "nfs/v4/interpreter.h"
#include "nfs/v4/ops/offloads.h"
#include "oncrpc/message.h"
#include "rpc/credentials.h"
#include "rpc/server.h"
#include "testing/loopback_channel.h"
#include "testing/manual_loop.h"
#include "vfs/memory/memory.h"

namespace stag::fuzz {

namespace v4 = nfs::v4;

// What the client side of callbacks answers: bytes behind the header of a successful Reply.
// nullopt: no Reply comes.
using Answer = UniqueFunction<std::optional<xdr::Stream>(std::uint32_t procedure, Bytes arguments)>;

// An answer to every callback as a good client gives it.
inline xdr::Stream agree(std::uint32_t procedure, Bytes arguments) {
  xdr::Encoder encoder;
  if (procedure == v4::CB_NULL::number) return std::move(encoder).finish();
  const Buffer copied = Buffer::copy_of(arguments);
  xdr::Decoder decoder(copied);
  v4::CB_COMPOUND4args asked;
  STAG_CHECK(decode(decoder, asked) && asked.argarray.size() == 2);
  const v4::CB_SEQUENCE4args& in = asked.argarray[0].opcbsequence();
  v4::CB_COMPOUND4res results;
  results.resarray.resize(2);
  results.resarray[0].resop = v4::OP_CB_SEQUENCE;
  results.resarray[0].opcbsequence().csr_resok4() = {in.csa_sessionid, in.csa_sequenceid,
                                                     in.csa_slotid, in.csa_highest_slotid,
                                                     in.csa_highest_slotid};
  results.resarray[1].resop = asked.argarray[1].argop;
  encode(encoder, results);
  return std::move(encoder).finish();
}

// The client's side of a connection, as far as the server calls it.
class CallbackPeer final : public rpc::Service {
 public:
  Task<std::optional<rpc::OutgoingReply>> serve(rpc::IncomingCall& call) override {
    xdr::Decoder decoder(call.payload);
    const auto header = oncrpc::decode_call(decoder);
    STAG_CHECK(header.ok());
    const Bytes arguments = call.payload.bytes().subspan(decoder.position());
    std::optional<xdr::Stream> results = answer(header->procedure, arguments);
    if (!results) co_return std::nullopt;
    xdr::Encoder encoder;
    oncrpc::encode_success(encoder, header->xid);
    encoder.append(*results);
    co_return rpc::OutgoingReply{std::move(encoder).finish(), {}};
  }

  Answer answer = [](std::uint32_t procedure, Bytes arguments) {
    return std::optional(agree(procedure, arguments));
  };
};

// What the server has given out: clients put it into their Calls.
struct Names {
  static constexpr std::size_t kMost = 16;  // of each; the newest
  std::vector<v4::nfs_fh4> handles;
  std::vector<v4::stateid4> stateids;
  std::vector<v4::clientid4> clients;
  std::vector<v4::sessionid4> sessions;
  std::vector<v4::verifier4> verifiers;

  template <class T>
  static void keep(std::vector<T>& names, const T& name) {
    if (names.size() == kMost) names.erase(names.begin());
    names.push_back(name);
  }
  void harvest(v4::COMPOUND4res results) {
    for (v4::nfs_resop4& one : results.resarray) harvest(one);
  }

 private:
  void harvest(v4::nfs_resop4& one) {
    switch (one.resop) {
      case v4::OP_GETFH:
        if (one.opgetfh().status == v4::NFS4_OK) keep(handles, one.opgetfh().resok4().object);
        break;
      case v4::OP_OPEN:
        if (one.opopen().status == v4::NFS4_OK) opened(one.opopen().resok4());
        break;
      case v4::OP_LOCK:
        if (one.oplock().status == v4::NFS4_OK) keep(stateids, one.oplock().resok4().lock_stateid);
        break;
      case v4::OP_COPY_NOTIFY:
        if (one.opcopy_notify().cnr_status == v4::NFS4_OK)
          keep(stateids, one.opcopy_notify().resok4().cnr_stateid);
        break;
      case v4::OP_SETCLIENTID:
        if (one.opsetclientid().status != v4::NFS4_OK) break;
        keep(clients, one.opsetclientid().resok4().clientid);
        keep(verifiers, one.opsetclientid().resok4().setclientid_confirm);
        break;
      case v4::OP_EXCHANGE_ID:
        if (one.opexchange_id().eir_status == v4::NFS4_OK)
          keep(clients, one.opexchange_id().eir_resok4().eir_clientid);
        break;
      case v4::OP_CREATE_SESSION:
        if (one.opcreate_session().csr_status == v4::NFS4_OK)
          keep(sessions, one.opcreate_session().csr_resok4().csr_sessionid);
        break;
      default:
        break;
    }
  }
  void opened(v4::OPEN4resok& ok) {
    keep(stateids, ok.stateid);
    if (ok.delegation.delegation_type == v4::OPEN_DELEGATE_READ)
      keep(stateids, ok.delegation.read().stateid);
    if (ok.delegation.delegation_type == v4::OPEN_DELEGATE_WRITE)
      keep(stateids, ok.delegation.write().stateid);
  }
};

class Nfs4World {
 public:
  static constexpr std::uint32_t kClients = 4, kUnconfirmed = 3, kStates = 12;

  Nfs4World() : shared_(context_, options()) {
    nfs::ExportOptions open;
    open.root_squash = false;
    nfs::Exports exports;
    STAG_CHECK(exports.add(1, {"/a", std::make_shared<vfs::MemoryFileSystem>(), open}).ok());
    STAG_CHECK(exports.add(2, {"/a/b", std::make_shared<vfs::MemoryFileSystem>(), open}).ok());
    context_.exports.replace(std::move(exports));
    rpc::Program program(v4::NFS4_PROGRAM, v4::NFS_V4, nfs::ulb::nfs4());
    program.add(v4::NFSPROC4_COMPOUND::number, nfs::nfs4::compound_handler(shared_, nullptr));
    program.replays(rpc::ReplayPolicy::OwnedByProgram);
    server_.add(std::move(program));
    for (auto& origin : origins_) origin = std::make_shared<rpc::Origin>();
    for (std::size_t i = 0; i < origins_.size(); ++i) connect(i);
    callbacks_.emplace(shared_, loop_, nullptr);
    offloads_.emplace(shared_, *callbacks_, nullptr);
  }
  // Everything comes to an end: leases, courtesy, callbacks.
  ~Nfs4World() {
    for (auto& reverse : reverses_) reverse.reset();
    for (int i = 0; i < 3; ++i) {
      loop_.pass(std::chrono::hours(25));
      shared_.expire(loop_.now());
    }
    loop_.drain();
    STAG_CHECK(running_ == 0);
    STAG_CHECK(shared_.clients.list(loop_.now()).empty());
    STAG_CHECK(shared_.files.states() == 0 && !shared_.files.guarded());
    STAG_CHECK(shared_.owners.size() == 0);
    offloads_->stop([] {});
    loop_.drain();
    offloads_.reset();
    callbacks_.reset();
  }

  // A Call on a connection; it runs as far as it can. `body` is a COMPOUND4args.
  void call(std::size_t connection, Bytes body) {
    detach(serve(connection % origins_.size(), Buffer::copy_of(body)));
    loop_.drain();
    check();
  }
  void call(std::size_t connection, std::uint32_t minor, std::vector<v4::nfs_argop4> operations) {
    xdr::Encoder encoder;
    encode(encoder, v4::COMPOUND4args{"", minor, std::move(operations)});
    call(connection, std::move(encoder).finish().rope().flatten().bytes());
  }
  void pass(Duration time) {
    loop_.pass(time);
    check();
  }
  void reconnect(std::size_t connection) { connect(connection % origins_.size()); }
  void check() {
    const auto clients = shared_.clients.list(loop_.now());
    STAG_CHECK(clients.size() <= kClients + kUnconfirmed);
    STAG_CHECK(shared_.files.states() <= kStates);
    std::uint64_t held = 0;
    for (const auto& client : clients) {
      STAG_CHECK(client.sessions <= 2);
      held += client.states;
      STAG_CHECK(shared_.files.list(client.clientid, 64).size() <= client.states);
    }
    STAG_CHECK(held == shared_.files.states());
  }

  Names names;
  CallbackPeer peer;

 private:
  static nfs::nfs4::Nfs4Options options() {
    nfs::nfs4::Nfs4Options options;
    options.lease_seconds = 90;
    options.clients.clients = options.clients.clients_of_address = kClients;
    options.clients.unconfirmed = kUnconfirmed;
    options.clients.sessions = 2;
    options.clients.retries_waiting = 2;
    options.clients.caches = 1 << 16;
    options.states.states = kStates;
    options.states.states_of_client = 6;
    options.states.delegations = 2;
    options.states.waiting = 2;
    return options;
  }
  void connect(std::size_t connection) {
    auto& origin = origins_[connection];
    if (origin->connection != nullptr) origin->connection->end();
    origin = std::make_shared<rpc::Origin>();
    origin->peer = {connection == 0 ? "192.0.2.1" : "192.0.2.2", 700};
    origin->transport = rpc::TransportKind::Memory;
    origin->netid = "memory";
    origin->loop = &loop_;
    origin->connection = std::make_shared<rpc::Connection>();
    reverses_[connection] = std::make_shared<testing::LoopbackChannel>(loop_, peer);
    origin->reverse = reverses_[connection];
  }
  Task<void> serve(std::size_t connection, Buffer body) {
    ++running_;
    rpc::IncomingCall call;
    call.origin = origins_[connection];
    xdr::Encoder encoder;
    oncrpc::CallHeader header;
    header.xid = ++xid_;
    header.program = v4::NFS4_PROGRAM;
    header.version = v4::NFS_V4;
    header.procedure = v4::NFSPROC4_COMPOUND::number;
    oncrpc::encode(encoder, header, credentials_.encoded());
    Rope message = std::move(encoder).finish().rope();
    message.append(Rope(body));
    call.payload = message.flatten();
    const auto reply = co_await server_.serve(call);
    if (reply) read(reply->stream.rope().flatten());
    --running_;
  }
  void read(const Buffer& reply) {
    xdr::Decoder decoder(reply);
    const auto header = oncrpc::decode_reply(decoder);
    STAG_CHECK(header.ok());
    if (!header->status.success()) return;
    v4::COMPOUND4res results;
    STAG_CHECK(decode(decoder, results) && decoder.finish());
    names.harvest(std::move(results));
  }

  testing::ManualLoop loop_;
  nfs::ServerContext context_{nfs::ServerState::ephemeral(7)};
  nfs::nfs4::SharedState shared_;
  rpc::Server server_;
  std::array<std::shared_ptr<rpc::Origin>, 2> origins_;
  std::array<std::shared_ptr<testing::LoopbackChannel>, 2> reverses_;
  std::optional<nfs::nfs4::Callbacks> callbacks_;
  std::optional<nfs::nfs4::Offloads> offloads_;
  const rpc::Credentials credentials_ = rpc::Credentials::sys("fuzz", 0, 0, {});
  std::uint32_t xid_ = 0;
  std::uint32_t running_ = 0;
};

// One client of version 4.1 or 4.2 that has done everything right so far.
class Session {
 public:
  Session(Nfs4World& world, std::size_t connection, const std::string& owner)
      : world_(world), connection_(connection) {
    v4::EXCHANGE_ID4args exchange;
    exchange.eia_clientowner.co_ownerid = Rope::copy_of(bytes_of(owner));
    world_.call(connection_, 1, {op(v4::OP_EXCHANGE_ID, &Op::opexchange_id, exchange)});
    clientid_ = world_.names.clients.back();
    v4::CREATE_SESSION4args create;
    create.csa_clientid = clientid_;
    create.csa_sequence = 1;
    create.csa_flags = v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
    create.csa_fore_chan_attrs = {0, 1 << 16, 1 << 16, 1024, 16, 4, {}};
    create.csa_back_chan_attrs = {0, 4096, 4096, 0, 2, 2, {}};
    create.csa_cb_program = v4::NFS4_CALLBACK;
    create.csa_sec_parms.resize(1);
    create.csa_sec_parms[0].cb_secflavor = v4::AUTH_NONE;
    world_.call(connection_, 1, {op(v4::OP_CREATE_SESSION, &Op::opcreate_session, create)});
    sessionid_ = world_.names.sessions.back();
    call(1, {op(v4::OP_RECLAIM_COMPLETE, &Op::opreclaim_complete, v4::RECLAIM_COMPLETE4args{})});
  }

  v4::nfs_argop4 sequence() {
    v4::SEQUENCE4args args;
    args.sa_sessionid = sessionid_;
    args.sa_sequenceid = ++sequenceid_;
    return op(v4::OP_SEQUENCE, &Op::opsequence, args);
  }
  void call(std::uint32_t minor, std::vector<v4::nfs_argop4> operations) {
    operations.insert(operations.begin(), sequence());
    world_.call(connection_, minor, std::move(operations));
  }
  // In the export, made where it is not there.
  void open(const std::string& name, std::uint32_t access) {
    v4::OPEN4args args;
    args.share_access = access;
    args.owner = {clientid_, Rope::copy_of(bytes_of("owner"))};
    args.openhow.opentype = v4::OPEN4_CREATE;
    args.openhow.how().mode = v4::UNCHECKED4;
    args.openhow.how().createattrs() = {};
    args.claim.claim = v4::CLAIM_NULL;
    args.claim.file() = name;
    call(1, {op(v4::OP_PUTROOTFH), op(v4::OP_LOOKUP, &Op::oplookup, v4::LOOKUP4args{"a"}),
             op(v4::OP_OPEN, &Op::opopen, args), op(v4::OP_GETFH)});
  }

  using Op = v4::nfs_argop4;
  static Op op(v4::nfs_opnum4 number) {
    Op made;
    made.argop = number;
    return made;
  }
  template <class Args>
  static Op op(v4::nfs_opnum4 number, Args& (Op::*arguments)(), Args value) {
    Op made = op(number);
    (made.*arguments)() = std::move(value);
    return made;
  }

 private:
  Nfs4World& world_;
  const std::size_t connection_;
  v4::clientid4 clientid_ = 0;
  v4::sessionid4 sessionid_{};
  std::uint32_t sequenceid_ = 0;
};

}  // namespace stag::fuzz
