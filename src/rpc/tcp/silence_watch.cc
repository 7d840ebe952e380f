#include "rpc/tcp/silence_watch.h"

#include <algorithm>
#include <new>
#include <utility>

namespace stag::rpc::tcp {
namespace {

// Intervals, while a NULL call waits. A server that reads no more until some of its Calls have
// ended has so long for one of them.
constexpr std::uint32_t kLongSilence = 4;

}  // namespace

void SilenceWatch::begin(RecordStream& stream, const xdr::Stream& call) noexcept {
  try {
    stream_ = &stream;
    target_ = target_of(call);
    silence_ = 0;
    received_ = stream.received_bytes();
    progress_ = progress();
    await_tick();
  } catch (const std::bad_alloc&) {
    stream.close(Reason::OutOfMemory);
  }
}

void SilenceWatch::await_tick() {
  timer_ = loop_.after(interval_, [this] { on_tick(); });
}

// Without a timer nobody would find out any more that the server is silent.
void SilenceWatch::on_tick() noexcept {
  if (stream_->closed()) return;
  try {
    look();
  } catch (const std::bad_alloc&) {
    stream_->close(Reason::OutOfMemory);
  }
}

void SilenceWatch::look() {
  const std::uint64_t received = std::exchange(received_, stream_->received_bytes());
  const std::uint64_t before = std::exchange(progress_, progress());
  if (received_ != received && !owner_.awaits_reply()) {
    stream_ = nullptr;
    return;
  }
  if (progress_ != before)
    silence_ = 0;
  else if (!probe_)
    probe();
  else if (++silence_ == kLongSilence)
    return stream_->close(Reason::RpcServerSilent);
  await_tick();
}

void SilenceWatch::probe() {
  const std::uint32_t xid = owner_.xid_of_probe();
  before_probe_ = stream_->sent_bytes();
  progress_ = progress();
  stream_->send(null_call(xid, target_).rope());
  probe_ = xid;
}

std::uint64_t SilenceWatch::progress() const {
  return stream_->received_bytes() + std::min(stream_->acknowledged_bytes(), before_probe_);
}

bool SilenceWatch::on_reply(std::uint32_t xid) {
  if (probe_ != xid) return false;
  probe_.reset();
  return true;
}

void SilenceWatch::on_stream_closed() {
  timer_.cancel();
  stream_ = nullptr;
  probe_.reset();
  before_probe_ = 0;
}

}  // namespace stag::rpc::tcp
