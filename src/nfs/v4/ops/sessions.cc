// EXCHANGE_ID, CREATE_SESSION, BIND_CONN_TO_SESSION, BACKCHANNEL_CTL, DESTROY_SESSION,
// DESTROY_CLIENTID and RECLAIM_COMPLETE (RFC 8881 18.33 to 18.37, 18.50, 18.51).
#include "nfs/v4/callback/back_channel.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

namespace {

// Which connection it is; one of datagrams is none.
state::ConnectionId connection_of(const Compound& compound) {
  const auto& connection = compound.admission().call().connection();
  return connection == nullptr ? 0 : connection->id();
}

// What carries callbacks on this connection; expired when nothing does.
state::CallbackConnection callbacks_of(const Compound& compound) {
  if (compound.shared().callbacks.load(std::memory_order_acquire) == nullptr) return {};
  return compound.admission().call().reverse_channel();
}

// 2.5: what tells this server from every other, on whatever address and after every restart.
Rope identity_of(const Compound& compound) {
  const std::uint64_t id = compound.shared().server.handles.file_system_id("/");
  std::array<std::byte, 8> bytes;
  store_be(bytes.data(), id);
  return Rope::copy_of(bytes);
}

constexpr std::uint32_t kKnownFlags =
    v4::EXCHGID4_FLAG_SUPP_MOVED_REFER | v4::EXCHGID4_FLAG_SUPP_MOVED_MIGR |
    v4::EXCHGID4_FLAG_SUPP_FENCE_OPS | v4::EXCHGID4_FLAG_BIND_PRINC_STATEID |
    v4::EXCHGID4_FLAG_USE_NON_PNFS | v4::EXCHGID4_FLAG_USE_PNFS_MDS |
    v4::EXCHGID4_FLAG_USE_PNFS_DS | v4::EXCHGID4_FLAG_UPD_CONFIRMED_REC_A;

// 18.35.3: state protection wants a security mechanism that this server does not have.
v4::nfsstat4 check_arguments(const v4::EXCHANGE_ID4args& args) {
  if ((args.eia_flags & ~kKnownFlags) != 0 || args.eia_client_impl_id.size() > 1)
    return v4::NFS4ERR_INVAL;
  if (args.eia_state_protect.spa_how == v4::SP4_SSV) return v4::NFS4ERR_ENCR_ALG_UNSUPP;
  if (args.eia_state_protect.spa_how != v4::SP4_NONE) return v4::NFS4ERR_INVAL;
  return v4::NFS4_OK;
}

state::ChannelAttributes to_attributes(const v4::channel_attrs4& from) {
  return {from.ca_headerpadsize,          from.ca_maxrequestsize, from.ca_maxresponsesize,
          from.ca_maxresponsesize_cached, from.ca_maxoperations,  from.ca_maxrequests};
}

v4::channel_attrs4 to_channel_attrs4(const state::ChannelAttributes& from,
                                     const v4::channel_attrs4& asked) {
  return {from.header_pad_size,   from.max_request_size,
          from.max_response_size, from.max_response_size_cached,
          from.max_operations,    from.max_requests,
          asked.ca_rdma_ird};
}

}  // namespace

v4::EXCHANGE_ID4res exchange_id(Compound& compound, v4::EXCHANGE_ID4args& args) {
  if (const v4::nfsstat4 bad = check_arguments(args); bad != v4::NFS4_OK) return {bad, {}};
  compound.shared().expire(compound.now());
  const std::string principal = compound.principal();
  const std::string& address = compound.admission().call().origin().peer.host;
  const Buffer owner = args.eia_clientowner.co_ownerid.flatten();
  const state::ExchangeIdArgs asked{owner.bytes(), args.eia_clientowner.co_verifier,
                                    bytes_of(principal), address,
                                    (args.eia_flags & v4::EXCHGID4_FLAG_UPD_CONFIRMED_REC_A) != 0};
  const state::ExchangeIdResult found =
      compound.shared().clients.exchange_id(asked, compound.now());
  compound.shared().release(found.ended);
  if (found.status != state::Status::Ok) return {to_nfsstat4(found.status), {}};
  v4::EXCHANGE_ID4res results;
  v4::EXCHANGE_ID4resok& ok = results.eir_resok4();
  ok.eir_clientid = found.clientid;
  ok.eir_sequenceid = found.sequenceid;
  ok.eir_flags =
      v4::EXCHGID4_FLAG_USE_NON_PNFS | (found.confirmed ? v4::EXCHGID4_FLAG_CONFIRMED_R : 0u);
  ok.eir_server_owner.so_major_id = identity_of(compound);
  ok.eir_server_scope = identity_of(compound);
  ok.eir_server_impl_id.push_back({"", "stag", {}});
  return results;
}

namespace {

// Null when the client takes no credentials that this server has.
std::shared_ptr<BackChannel> back_channel_of(const Compound& compound,
                                             const v4::CREATE_SESSION4args& args) {
  auto credentials = usable_credentials(args.csa_sec_parms);
  if (!credentials) return nullptr;
  return std::make_shared<BackChannel>(compound.minor(), args.csa_cb_program,
                                       *std::move(credentials));
}

std::shared_ptr<BackChannel> back_channel_of(const Compound& compound,
                                             const state::SessionId& sessionid) {
  return std::static_pointer_cast<BackChannel>(compound.shared().clients.callback_path(sessionid));
}

}  // namespace

v4::CREATE_SESSION4res create_session(Compound& compound, v4::CREATE_SESSION4args& args) {
  constexpr std::uint32_t kKnown = v4::CREATE_SESSION4_FLAG_PERSIST |
                                   v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN |
                                   v4::CREATE_SESSION4_FLAG_CONN_RDMA;
  if ((args.csa_flags & ~kKnown) != 0) return {v4::NFS4ERR_INVAL, {}};
  const std::string principal = compound.principal();
  state::CreateSessionArgs asked;
  asked.clientid = args.csa_clientid;
  asked.sequence = args.csa_sequence;
  asked.principal = bytes_of(principal);
  asked.fore = to_attributes(args.csa_fore_chan_attrs);
  asked.back = to_attributes(args.csa_back_chan_attrs);
  asked.connection = connection_of(compound);
  const std::shared_ptr<BackChannel> back = back_channel_of(compound, args);
  if (back != nullptr && (args.csa_flags & v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN) != 0)
    asked.callbacks = callbacks_of(compound);
  asked.connection_back_channel = !asked.callbacks.expired();
  asked.callback_path = back;
  state::Clients& clients = compound.shared().clients;
  state::CreateSessionResult made = clients.create_session(asked, compound.now());
  if (made.lapsed != 0) {
    compound.shared().end_lapsed(made.lapsed);
    made = clients.create_session(asked, compound.now());
  }
  compound.shared().release(made.ended);
  if (made.confirmed && made.life != nullptr) compound.shared().admit(*made.life);
  if (made.status != state::Status::Ok) return {to_nfsstat4(made.status), {}};
  if (back != nullptr && !made.replay) back->open(made.sessionid, made.back);
  v4::CREATE_SESSION4res results;
  v4::CREATE_SESSION4resok& ok = results.csr_resok4();
  ok.csr_sessionid = made.sessionid;
  ok.csr_sequence = made.sequence;
  ok.csr_flags = made.back_channel ? v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN : 0;
  ok.csr_fore_chan_attrs = to_channel_attrs4(made.fore, args.csa_fore_chan_attrs);
  ok.csr_back_chan_attrs = to_channel_attrs4(made.back, args.csa_back_chan_attrs);
  return results;
}

v4::BIND_CONN_TO_SESSION4res bind_conn_to_session(Compound& compound,
                                                  v4::BIND_CONN_TO_SESSION4args& args) {
  namespace channel = state::channel;
  std::uint32_t asked = channel::kBoth;
  std::uint32_t required = 0;
  if (args.bctsa_dir == v4::CDFC4_FORE) asked = required = channel::kFore;
  if (args.bctsa_dir == v4::CDFC4_BACK) asked = required = channel::kBack;
  const std::shared_ptr<BackChannel> back = back_channel_of(compound, args.bctsa_sessid);
  const state::BindResult bound = compound.shared().clients.bind_connection(
      args.bctsa_sessid, connection_of(compound), asked, required,
      back == nullptr ? state::CallbackConnection() : callbacks_of(compound));
  if (bound.status != state::Status::Ok) return {to_nfsstat4(bound.status), {}};
  if (back != nullptr && (bound.directions & channel::kBack) != 0) back->ask_again();
  v4::BIND_CONN_TO_SESSION4res results;
  auto& ok = results.bctsr_resok4();
  ok.bctsr_sessid = args.bctsa_sessid;
  ok.bctsr_dir = static_cast<v4::channel_dir_from_server4>(bound.directions);
  return results;
}

v4::BACKCHANNEL_CTL4res backchannel_ctl(Compound& compound, v4::BACKCHANNEL_CTL4args& args) {
  const std::shared_ptr<BackChannel> back =
      back_channel_of(compound, compound.slot()->slot.sessionid);
  auto credentials = usable_credentials(args.bca_sec_parms);
  if (back == nullptr || !credentials) return {v4::NFS4ERR_INVAL};
  back->replace(args.bca_cb_program, *std::move(credentials));
  return {v4::NFS4_OK};
}

v4::DESTROY_SESSION4res destroy_session(Compound& compound, v4::DESTROY_SESSION4args& args) {
  return {to_nfsstat4(compound.shared().clients.destroy_session(args.dsa_sessionid))};
}

Task<v4::DESTROY_CLIENTID4res> destroy_clientid(Compound& compound,
                                                v4::DESTROY_CLIENTID4args& args) {
  const rpc::CallContext& call = compound.admission().call();
  const state::Status status =
      co_await compound.shared().destroy(args.dca_clientid, call.loop(), &call.origin());
  co_return v4::DESTROY_CLIENTID4res{to_nfsstat4(status)};
}

Task<v4::RECLAIM_COMPLETE4res> reclaim_complete(Compound& compound,
                                                v4::RECLAIM_COMPLETE4args& args) {
  // 18.51.3: of one file system only when that one was migrated here, which none is.
  if (args.rca_one_fs) {
    co_return v4::RECLAIM_COMPLETE4res{compound.has_current() ? v4::NFS4_OK
                                                              : v4::NFS4ERR_NOFILEHANDLE};
  }
  if (const v4::nfsstat4 failed = co_await compound.record_client(); failed != v4::NFS4_OK)
    co_return v4::RECLAIM_COMPLETE4res{failed};
  const state::Status status = compound.shared().clients.reclaim_complete(*compound.life());
  if (status == state::Status::Ok) compound.shared().completed(*compound.life(), compound.now());
  co_return v4::RECLAIM_COMPLETE4res{to_nfsstat4(status)};
}

}  // namespace stag::nfs::nfs4
