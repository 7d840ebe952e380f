#include "nfs/client/v4/callback_service_v40.h"

#include <random>

#include "rpcbind/universal_address.h"

namespace stag::nfs::client::nfs4 {
namespace {

// Operations of one CB_COMPOUND: more are refused before any is executed.
constexpr std::size_t kMostCallbacks = 8;

}  // namespace

CallbackServiceV40::CallbackServiceV40() {
  listening_.ident = std::random_device{}();
  rpc::Program program(v4::NFS4_CALLBACK, v4::NFS_CB);
  program.add<v4::CB_COMPOUND>(
      [this](rpc::CallContext&, v4::CB_COMPOUND4args args) -> Task<v4::CB_COMPOUND4res> {
        co_return answered(args);
      });
  server_.add(std::move(program));
}

// RFC 5665 5.2.3.3, 5.2.3.4.
void CallbackServiceV40::listens_at(const Address& at) {
  listening_.at = {rpcbind::is_ipv6(at.host) ? "tcp6" : "tcp", rpcbind::to_universal(at)};
}

v4::CB_COMPOUND4res CallbackServiceV40::answered(const v4::CB_COMPOUND4args& args) {
  v4::CB_COMPOUND4res results;
  results.tag = args.tag;
  if (args.minorversion != 0) {
    results.status = v4::NFS4ERR_MINOR_VERS_MISMATCH;
  } else if (args.argarray.size() > kMostCallbacks) {
    results.status = v4::NFS4ERR_RESOURCE;
  }
  const bool meant = holder_ != nullptr && args.callback_ident == listening_.ident;
  for (const v4::nfs_cb_argop4& operation : args.argarray) {
    if (results.status != v4::NFS4_OK) break;
    results.status = answered(operation, meant, results.resarray.emplace_back());
  }
  return results;
}

v4::nfsstat4 CallbackServiceV40::answered(const v4::nfs_cb_argop4& operation, bool meant,
                                          v4::nfs_cb_resop4& result) {
  result.resop = operation.argop;
  switch (operation.argop) {
    case v4::OP_CB_RECALL: {
      v4::nfsstat4& status = result.opcbrecall().status;
      status = v4::NFS4ERR_BADHANDLE;
      if (meant) status = holder_->recall(operation.opcbrecall().stateid);
      return status;
    }
    case v4::OP_CB_GETATTR:
      return result.opcbgetattr().status = v4::NFS4ERR_BADHANDLE;
    default:  // RFC 7530 15.2.4: what is not known has this number in the results
      result.resop = v4::OP_CB_ILLEGAL;
      return result.opcbillegal().status = v4::NFS4ERR_OP_ILLEGAL;
  }
}

}  // namespace stag::nfs::client::nfs4
