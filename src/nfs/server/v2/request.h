// What every NFSv2 procedure starts from: version 3's Request (request.h) in version 2's words.
#pragma once

#include "nfs/server/v2/cookies.h"
#include "nfs/server/v2/values.h"
#include "nfs/server/v3/request.h"

namespace stag::nfs::nfs2 {

class Request {
 public:
  // READ's list of statuses has all that finding an object can give.
  Request(const Served& served, Cookies& cookies, const rpc::CallContext& call)
      : base_(served, call, v3::NFSPROC3_READ::number), cookies_(cookies) {}

  Cookies& cookies() const { return cookies_; }

  // STALE for a handle that this server did not make or whose export is gone, ACCES when the export
  // does not let this Call in.
  Result<Object, v2::nfsstat> resolve(const v2::fhandle& handle) const;
  // Of something that `relative`'s export holds. IO, and traced, when its handle is too long for
  // version 2.
  Result<v2::fhandle, v2::nfsstat> handle_of(const Object& relative,
                                             const vfs::Handle& object) const;
  // The results of procedures that find or make something.
  v2::diropres found(const Object& relative, const vfs::Node& node) const;

 private:
  nfs::Request base_;
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

}  // namespace stag::nfs::nfs2
