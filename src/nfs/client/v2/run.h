// The call that the operations of version 2 are made of; included by .cc files of this folder.
#pragma once

#include "nfs/client/protocol/retrying_client.h"
#include "nfs/client/v2/nfs2.h"
#include "nfs/client/v2/values.h"

namespace stag::nfs::client::nfs2 {

inline v2::nfsstat status_of(v2::nfsstat status) {
  return status;
}
template <class Results>
v2::nfsstat status_of(const Results& results) {
  return results.status;
}

template <class P>
Task<Outcome<typename P::Results>> Nfs2::run(OperationContext context, const typename P::Args& args,
                                             std::span<const rpc::ResultBuffer> result_buffers) {
  JukeboxRetry retry(client_.channel().loop(), client_.options());
  for (;;) {
    rpc::CallResult<typename P::Results> results =
        co_await client_.client().call<P>(args, client_.call_options(result_buffers));
    if (!results) co_return Failure{Error::of_call(context, results.error())};
    const auto number = static_cast<std::uint32_t>(status_of(*results));
    if (number == 0) co_return *std::move(results);
    const Status status = to_status(number);
    // EAGAIN is said of what was not executed, as NFS3ERR_JUKEBOX is.
    if (status != Status::Delay || !retry.left())
      co_return Failure{Error::of_status(context, status)};
    co_await retry.pause();
  }
}

}  // namespace stag::nfs::client::nfs2
