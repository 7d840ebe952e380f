// CREATE_SESSION (RFC 8881 18.36).
#include <memory>
#include <string>

#include "nfs/v4/callback/back_channel.h"
#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/connection.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

namespace {

// Clients that lapsed, for one that finds no room; sessions of them may be smaller than its own.
constexpr int kMostEnded = 16;

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

// Null when the client takes no credentials that this server has.
std::shared_ptr<BackChannel> back_channel_of(const Compound& compound,
                                             const v4::CREATE_SESSION4args& args) {
  auto credentials = usable_credentials(args.csa_sec_parms);
  if (!credentials) return nullptr;
  return std::make_shared<BackChannel>(compound.minor(), args.csa_cb_program,
                                       *std::move(credentials));
}

// `principal` outlives it. `back`: null, or what the client can be called back by.
state::CreateSessionArgs asked_for(Compound& compound, const v4::CREATE_SESSION4args& args,
                                   const std::string& principal,
                                   const std::shared_ptr<BackChannel>& back) {
  state::CreateSessionArgs asked;
  asked.clientid = args.csa_clientid;
  asked.sequence = args.csa_sequence;
  asked.principal = bytes_of(principal);
  asked.integrity = compound.has_integrity();
  asked.fore = to_attributes(args.csa_fore_chan_attrs);
  asked.back = to_attributes(args.csa_back_chan_attrs);
  asked.connection = connection_of(compound);
  if (back != nullptr && (args.csa_flags & v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN) != 0)
    asked.callbacks = callbacks_of(compound);
  asked.connection_back_channel = !asked.callbacks.expired();
  asked.callback_path = back;
  return asked;
}

}  // namespace

v4::CREATE_SESSION4res create_session(Compound& compound, v4::CREATE_SESSION4args& args) {
  constexpr std::uint32_t kKnown = v4::CREATE_SESSION4_FLAG_PERSIST |
                                   v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN |
                                   v4::CREATE_SESSION4_FLAG_CONN_RDMA;
  if ((args.csa_flags & ~kKnown) != 0) return {v4::NFS4ERR_INVAL, {}};
  // A client that is told to come later asks for nothing else, and no other may be there for whose
  // sake leases are looked at.
  compound.shared().expire(compound.now());
  const std::string principal = compound.principal();
  const std::shared_ptr<BackChannel> back = back_channel_of(compound, args);
  const state::CreateSessionArgs asked = asked_for(compound, args, principal, back);
  state::Clients& clients = compound.shared().clients;
  state::CreateSessionResult made = clients.create_session(asked, compound.now());
  for (int i = 0; i < kMostEnded && made.lapsed != 0; ++i) {
    const EndedFor why = made.caches_full ? EndedFor::Room : EndedFor::NewClient;
    if (!compound.shared().end_lapsed(made.lapsed, why)) break;
    made = clients.create_session(asked, compound.now());
  }
  // Before anything that may fail for want of memory: the client asks again, and the session that
  // it is told of then is this one.
  if (back != nullptr && made.status == state::Status::Ok && !made.replay)
    back->open(made.sessionid, made.back);
  compound.shared().release(made.ended);
  note_session(compound, asked, made);
  if (made.confirmed && made.life != nullptr) {
    compound.shared().admit(*made.life);
    compound.shared().watch_leases();
  }
  if (made.status != state::Status::Ok) return {to_nfsstat4(made.status), {}};
  v4::CREATE_SESSION4res results;
  v4::CREATE_SESSION4resok& ok = results.csr_resok4();
  ok.csr_sessionid = made.sessionid;
  ok.csr_sequence = made.sequence;
  ok.csr_flags = made.back_channel ? v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN : 0;
  ok.csr_fore_chan_attrs = to_channel_attrs4(made.fore, args.csa_fore_chan_attrs);
  ok.csr_back_chan_attrs = to_channel_attrs4(made.back, args.csa_back_chan_attrs);
  return results;
}

}  // namespace stag::nfs::nfs4
