// Calls of NFS procedures with what all of them share: JUKEBOX is waited out, every other status
// and every failed call becomes an Error with a sentence.
#pragma once

#include <span>
#include <utility>

#include "nfs/client/protocol/error.h"
#include "nfs/client/v2/procedures.h"
#include "rpc/client.h"

namespace stag::nfs::client {

struct CallerOptions {
  rpc::Credentials credentials{};
  std::uint32_t version = 3;  // of NFS: 2 or 3
  CancelToken cancel{};
  Duration timeout = std::chrono::seconds(60);  // of one call; zero: waits for ever
  // How long NFS3ERR_JUKEBOX ("come back later": a tape robot, a recovering server) is taken for an
  // answer, no longer than `timeout`; and the pauses in between, which double.
  Duration jukebox_for = std::chrono::minutes(2);
  Duration jukebox_pause_min = std::chrono::milliseconds(100);
  Duration jukebox_pause_max = std::chrono::seconds(5);
};

// Copies of a Caller share the Channel, which outlives them.
class Caller {
 public:
  Caller(rpc::Channel& channel, const CallerOptions& options);
  // Of procedures beside those of NFS version 3, with the same statuses.
  Caller(rpc::Channel& channel, const CallerOptions& options, rpc::Binding binding);

  template <class P>
  using Resok = std::remove_cvref_t<decltype(std::declval<typename P::Results&>().resok())>;

  // `args` and what `doing` and `sinks` refer to outlive the Task. `results_max`: see
  // rpc::CallOptions. Where NFS version 2 is spoken, its procedures do the work of version 3's.
  template <xdr::Procedure P>
  Task<Outcome<Resok<P>>> call(const typename P::Args& args, Doing doing,
                               std::span<const rpc::Sink> sinks = {},
                               std::optional<std::uint32_t> results_max = std::nullopt) {
    if constexpr (P::program == v3::NFS_PROGRAM)
      if (options_.version == 2)
        return nfs2::perform({client_, options_.credentials, call_options(sinks), doing}, args);
    return call_as_is<P>(args, doing, sinks, results_max);
  }
  Task<Outcome<Ok>> ping(Doing doing);

  rpc::Channel& channel() const { return client_.channel(); }

 private:
  template <xdr::Procedure P>
  Task<Outcome<Resok<P>>> call_as_is(const typename P::Args& args, Doing doing,
                                     std::span<const rpc::Sink> sinks,
                                     std::optional<std::uint32_t> results_max) {
    Patience patience(*this);
    for (;;) {
      rpc::CallOptions options = call_options(sinks);
      options.results_max = results_max;
      rpc::CallResult<typename P::Results> results = co_await client_.call<P>(args, options);
      if (!results) co_return Failure{Error::of_call(doing, results.error())};
      const auto status = static_cast<v3::nfsstat3>(results->status);
      if (status == v3::NFS3_OK) co_return std::move(results->resok());
      // RFC 1813 2.6: the request was not executed; try it again, as a new one.
      const bool again = status == v3::NFS3ERR_JUKEBOX && patience.left();
      if (!again) co_return Failure{Error::of_status(doing, status)};
      co_await patience.pause();
    }
  }

  class Patience {
   public:
    explicit Patience(Caller& caller);
    bool left() const;
    // Ends early when cancelled.
    Task<void> pause();

   private:
    Caller& caller_;
    TimePoint end_;
    Duration next_;
  };
  rpc::CallOptions call_options(std::span<const rpc::Sink> sinks) const;

  rpc::Client client_;
  CallerOptions options_;
};

}  // namespace stag::nfs::client
