// SilenceWatch: finds out that nobody serves a connection any more, whatever time its Calls have. A
// peer that is gone is found by the system; here it still acknowledges what it is sent.
//
// When no byte has come for an interval, a NULL call asks whether the server lives: neither a Call
// that takes long nor one whose time is over says that it does not. As long as bytes that were sent
// before it are acknowledged, it is on its way (decision 0012). Those behind it say nothing about
// who reads them.
//
// Thread: the loop's.
#pragma once

#include <cstdint>
#include <optional>

#include "base/loop.h"
#include "rpc/null_call.h"
#include "rpc/tcp/stream.h"

namespace stag::rpc::tcp {

class SilenceWatch {
 public:
  class Owner {
   public:
    // Whether a Call waits for its Reply.
    virtual bool awaits_reply() const = 0;
    virtual std::uint32_t xid_of_probe() = 0;

   protected:
    ~Owner() = default;
  };

  // `interval` zero: nothing is watched.
  SilenceWatch(Loop& loop, Owner& owner, Duration interval)
      : loop_(loop), owner_(owner), interval_(interval) {}
  SilenceWatch(const SilenceWatch&) = delete;

  // `call` was sent on `stream`, which is watched until bytes have come and no Call waits. A silent
  // one is closed with RpcServerSilent, and one that there is no memory to watch with OutOfMemory.
  void on_call_sent(RecordStream& stream, const xdr::Stream& call) noexcept {
    if (stream_ == nullptr && interval_ > Duration::zero()) begin(stream, call);
  }
  // Whether the Reply with this XID is that to the NULL call, which nobody else knows.
  bool on_reply(std::uint32_t xid);
  // The stream that is watched, if any, is gone.
  void on_stream_closed();

 private:
  void begin(RecordStream& stream, const xdr::Stream& call) noexcept;
  void await_tick();
  void on_tick() noexcept;
  void look();
  void probe();
  std::uint64_t progress() const;

  Loop& loop_;
  Owner& owner_;
  const Duration interval_;
  RecordStream* stream_ = nullptr;  // while it is watched
  CallTarget target_;
  Timer timer_;
  std::uint64_t received_ = 0;          // bytes, at the last tick
  std::uint64_t progress_ = 0;          // the same
  std::uint32_t silence_ = 0;           // intervals in a row, while a NULL call waits
  std::optional<std::uint32_t> probe_;  // the XID of a NULL call that waits for its Reply
  std::uint64_t before_probe_ = 0;      // bytes that were sent before it
};

}  // namespace stag::rpc::tcp
