#include "nfs/client/v4/trunking.h"

#include <algorithm>
#include <optional>

#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/operations.h"
#include "nfs/ulb/nfs4_client.h"

namespace stag::nfs::client::nfs4 {
namespace {

// One operation that needs no session, and its results, whatever their status.
Task<std::optional<OpResult>> asked_alone(rpc::Channel& channel, Op operation, std::uint32_t minor,
                                          const ProtocolOptions& options) {
  rpc::Client client(channel, ulb::nfs4_client(), options.credentials);
  v4::COMPOUND4args args;
  args.minorversion = minor;
  args.argarray.push_back(std::move(operation));
  auto came = co_await client.call<v4::NFSPROC4_COMPOUND>(args, call_options_of(options));
  if (!came || came->resarray.size() != 1) co_return std::nullopt;
  if (came->resarray.front().resop != args.argarray.front().argop) co_return std::nullopt;
  co_return std::move(came->resarray.front());
}

Task<std::optional<v4::EXCHANGE_ID4resok>> identity_of(rpc::Channel& channel,
                                                       v4::EXCHANGE_ID4args args,
                                                       std::uint32_t minor,
                                                       const ProtocolOptions& options) {
  Op operation;
  operation.argop = v4::OP_EXCHANGE_ID;
  operation.opexchange_id() = std::move(args);
  auto result = co_await asked_alone(channel, std::move(operation), minor, options);
  if (!result || result->opexchange_id().eir_status != v4::NFS4_OK) co_return std::nullopt;
  co_return std::move(result->opexchange_id().eir_resok4());
}

bool same_bytes(const Rope& a, const Rope& b) {
  const Buffer left = a.flatten(), right = b.flatten();
  return std::ranges::equal(left.bytes(), right.bytes());
}

bool same_server(const v4::EXCHANGE_ID4resok& a, const v4::EXCHANGE_ID4resok& b) {
  return a.eir_clientid == b.eir_clientid &&
         a.eir_server_owner.so_minor_id == b.eir_server_owner.so_minor_id &&
         same_bytes(a.eir_server_owner.so_major_id, b.eir_server_owner.so_major_id) &&
         same_bytes(a.eir_server_scope, b.eir_server_scope);
}

}  // namespace

Task<bool> joins_session(rpc::Channel& first, rpc::Channel& other, const session::Session& session,
                         std::uint32_t minor, ProtocolOptions options) {
  const auto here = co_await identity_of(first, session.exchange_id(), minor, options);
  if (!here) co_return false;
  const auto there = co_await identity_of(other, session.exchange_id(), minor, options);
  if (!there || !same_server(*here, *there)) co_return false;
  Op operation;
  operation.argop = v4::OP_BIND_CONN_TO_SESSION;
  operation.opbind_conn_to_session().bctsa_sessid = session.sessionid();
  operation.opbind_conn_to_session().bctsa_dir = v4::CDFC4_FORE;
  const auto bound = co_await asked_alone(other, std::move(operation), minor, options);
  co_return bound && bound->opbind_conn_to_session().bctsr_status == v4::NFS4_OK;
}

// RFC 7530 16.29. A server that does not reach the client by its callback says so here, and knows
// it.
Task<bool> knows_client(rpc::Channel& other, v4::clientid4 clientid, ProtocolOptions options) {
  Op operation;
  operation.argop = v4::OP_RENEW;
  operation.oprenew() = {clientid};
  const auto renewed = co_await asked_alone(other, std::move(operation), 0, options);
  if (!renewed) co_return false;
  const v4::nfsstat4 status = renewed->oprenew().status;
  co_return status == v4::NFS4_OK || status == v4::NFS4ERR_CB_PATH_DOWN;
}

}  // namespace stag::nfs::client::nfs4
