// Version 3's values from and to those of version 2, and the call that files.cc and names.cc are
// made of.
#pragma once

#include <optional>

#include "nfs/client/v2/procedures.h"
#include "nfs/proto/nfs2.h"

namespace stag::nfs::client::nfs2 {

inline constexpr std::uint32_t kKeep = 0xffffffff;  // RFC 1094 2.3.6
inline constexpr v2::timeval kKeepTime{kKeep, kKeep};
// Microseconds that stand for the server's own time, a convention of Sun's.
inline constexpr std::uint32_t kServerTime = 1'000'000;

v3::nfsstat3 to_nfsstat3(v2::nfsstat status);
v3::fattr3 to_fattr3(const v2::fattr& attributes);
v3::post_op_attr to_post_op_attr(const v2::fattr& attributes);
v3::nfs_fh3 to_nfs_fh3(const v2::fhandle& handle);
v3::post_op_fh3 to_post_op_fh3(const v2::fhandle& handle);
v2::timeval to_timeval(const v3::nfstime3& time);
// As a device number stands in `rdev`, and in `size` when a device is made.
std::uint32_t to_rdev(const v3::specdata3& device);

Outcome<v2::fhandle> to_fhandle(Doing doing, const v3::nfs_fh3& handle);
Outcome<v2::diropargs> to_diropargs(Doing doing, const v3::diropargs3& entry);
// Times that are the server's become kKeepTime. NFS3ERR_FBIG.
Outcome<v2::sattr> to_sattr(Doing doing, const v3::sattr3& attributes);

inline v2::nfsstat status_of(v2::nfsstat status) {
  return status;
}
template <class Results>
v2::nfsstat status_of(const Results& results) {
  return results.status;
}

// The results of a success.
template <class P>
Task<Outcome<typename P::Results>> run(Context to, const typename P::Args& args) {
  rpc::CallResult<typename P::Results> results = co_await to.client.call<P>(args, to.options);
  if (!results) co_return Failure{Error::of_call(to.doing, results.error())};
  const v2::nfsstat status = status_of(*results);
  if (status != v2::NFS_OK) co_return Failure{Error::of_status(to.doing, to_nfsstat3(status))};
  co_return *std::move(results);
}

}  // namespace stag::nfs::client::nfs2
