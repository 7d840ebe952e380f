// Request: the beginning of every NFSv2 procedure: its Call, and the admission to the exports.
#pragma once

#include "nfs/export/admission.h"
#include "nfs/server/v2/cookies.h"
#include "nfs/server/v2/values.h"

namespace stag::nfs::nfs2 {

class Request : private Admission {
 public:
  // Version 2 has no status for "later": what is in the way of the Call is waited for.
  Request(const ServerContext& server, Cookies& cookies, const rpc::CallContext& call,
          Deferral& deferral)
      : Admission(server, call, &deferral), cookies_(cookies) {}

  Cookies& cookies() const { return cookies_; }

  using Admission::guarded;
  using Admission::permit;
  using Admission::refused_create;
  using Admission::refused_remove;
  using Admission::refused_rename;

  using Admission::Security;
  // `handle` outlives the Eventual.
  Eventual<Result<ExportObject, Refusal>> resolve(const v2::fhandle& handle,
                                                  Security security = Security::Checked) const {
    return resolve_settled(handle, security);
  }
  // The handle of something that `relative`'s export holds. IO, and traced, when its handle is too
  // long for version 2.
  Result<v2::fhandle, v2::nfsstat> handle_of(const ExportObject& relative,
                                             const vfs::Handle& object) const;
  // The results of procedures that find or make something.
  v2::diropres found(const ExportObject& relative, const vfs::Node& node) const;

 private:
  Cookies& cookies_;
};

// The results of an error.
template <class Res>
Res failed(v2::nfsstat status) {
  Res res;
  res.status = status;
  return res;
}
template <class Res>
Res failed(vfs::Status status) {
  return failed<Res>(to_nfsstat(status));
}
template <class Res>
Res failed(Refusal refusal) {
  return failed<Res>(to_nfsstat(refusal));
}

}  // namespace stag::nfs::nfs2
