// Request: the beginning of every NFSv3 procedure: its Call, the admission to the exports, and the
// statuses that RFC 1813 lets the procedure return.
#pragma once

#include "nfs/export/admission.h"
#include "nfs/server/v3/attributes.h"
#include "nfs/server/v3/status.h"

namespace stag::nfs::nfs3 {

// Transfer sizes offered in FSINFO (RFC 1813 3.3.19), bytes.
inline constexpr std::uint32_t kMaxTransfer = 1 << 20;

class Request : private Admission {
 public:
  // `procedure` is the number of the procedure that is executed, 1 to 21.
  Request(const ServerContext& server, const rpc::CallContext& call, std::uint32_t procedure)
      : Admission(server, call), procedure_(procedure) {}

  // Bytes of the longest results that reach the client.
  std::uint64_t results_max() const { return call().results_max(); }

  using Admission::Security;
  // `handle` outlives the Eventual.
  Eventual<Result<ExportObject, Refusal>> resolve(const v3::nfs_fh3& handle,
                                                  Security security = Security::Checked) const {
    return resolve_soon(handle.data.bytes(), security);
  }
  // Without waiting.
  Result<ExportObject, Refusal> resolve_now(const v3::nfs_fh3& handle, Security security) const {
    return Admission::resolve(handle.data.bytes(), security);
  }

  using Admission::guarded;
  using Admission::permit;
  using Admission::refused_create;
  using Admission::refused_remove;
  using Admission::refused_rename;

  v3::nfsstat3 failure(vfs::Status status) const { return to_nfsstat3(procedure_, status); }
  v3::nfsstat3 failure(Refusal refusal) const {
    return permitted(procedure_, to_nfsstat3(refusal));
  }

  v3::nfs_fh3 handle_of(const ExportObject& relative, const vfs::Handle& object) const;
  v3::post_op_fh3 post_op_fh(const ExportObject& relative, const vfs::Handle& object) const;

  v3::writeverf3 write_verifier(const ExportObject& object) const;

 private:
  std::uint32_t procedure_;
};

// The results of an error that come without attributes.
template <class Res>
Res failed(v3::nfsstat3 status) {
  Res res;
  res.status = status;
  return res;
}

// One call of a procedure on one object, with all that the procedure refers to while it waits. Lies
// in its CallContext, so that where the store answers at once no coroutine is needed.
template <xdr::Procedure P>
struct Running {
  using Args = typename P::Args;
  // `handle`: the argument that names the object.
  Running(const ServerContext& server, rpc::CallContext& call, Args&& given,
          v3::nfs_fh3 Args::*handle, Request::Security security)
      : request(server, call, P::number),
        args(std::move(given)),
        object(request.resolve_now(args.*handle, security)) {}

  bool undecided() const { return !object && object.error() == Refusal::Undecided; }

  Request request;
  Args args;
  Result<ExportObject, Refusal> object;
};

// Of a call that is undecided(): `procedure` when it is not any more. As of Running's constructor.
template <auto procedure, auto handle, xdr::Procedure P>
Task<typename P::Results> when_decided(Running<P>& call, Request::Security security) {
  call.object = co_await call.request.resolve(call.args.*handle, security);
  if (call.object) co_return co_await procedure(call);
  co_return failed<typename P::Results>(call.request.failure(call.object.error()));
}

// The present attributes that go with an error; absent if the store fails to return them.
Task<v3::post_op_attr> post_op_attributes(const ExportObject& object);
Task<v3::wcc_data> wcc_now(const ExportObject& object);

}  // namespace stag::nfs::nfs3
