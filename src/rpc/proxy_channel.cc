#include "rpc/proxy_channel.h"

#include <new>
#include <utility>

namespace stag::rpc {
namespace {

// In the frame of a call, which may end by an exception.
class CountedCall {
 public:
  explicit CountedCall(std::size_t& calls) : calls_(calls) { ++calls_; }
  CountedCall(const CountedCall&) = delete;
  ~CountedCall() { --calls_; }

 private:
  std::size_t& calls_;
};

}  // namespace

// What of the message belongs to near is replaced while far has it.
class ProxyChannel::FarCall final : public FarTask {
 public:
  FarCall(ProxyChannel& proxy, CallMessage& message)
      : FarTask(proxy.bridge_),
        proxy_(proxy),
        message_(message),
        deadline_(message.deadline),
        cancel_(message.cancel) {
    if (deadline_) left_ = *deadline_ - proxy.bridge_.near().now();
  }
  ~FarCall() {
    message_.deadline = deadline_;
    message_.cancel = cancel_;
  }

  // After it has ended.
  Result<ReplyMessage, CallError> take() {
    if (limits_) proxy_.limits_ = *limits_;
    return *std::move(result_);
  }

 private:
  Task<Ok> run(CancelToken cancel) override {
    Channel& channel = *proxy_.channel_;
    message_.use_xid(channel.next_xid());
    if (deadline_) message_.deadline = channel.loop().now() + left_;
    // A transport may do better by a call that nothing can cancel.
    if (cancel_.has_source()) message_.cancel = cancel;
    proxy_.connected_.store(channel.limits().has_value(), std::memory_order_relaxed);
    Result<ReplyMessage, CallError> result = co_await channel.call(message_);
    limits_ = channel.limits();
    proxy_.connected_.store(limits_.has_value(), std::memory_order_relaxed);
    if (result) keep(result);
    result_.emplace(std::move(result));
    co_return Ok{};
  }
  // The transport's memory is lent until this coroutine suspends.
  void keep(Result<ReplyMessage, CallError>& result) {
    try {
      result->keep(message_.result_buffers);
    } catch (const std::bad_alloc&) {
      CallError error = CallError::transport(Reason::OutOfMemory);
      error.sent = true;
      result = Failure{std::move(error)};
    }
  }

  ProxyChannel& proxy_;
  CallMessage& message_;
  const std::optional<TimePoint> deadline_;
  const CancelToken cancel_;
  Duration left_{};
  std::optional<Result<ReplyMessage, CallError>> result_;
  std::optional<ChannelLimits> limits_;
};

class ProxyChannel::FarClose final : public FarTask {
 public:
  explicit FarClose(ProxyChannel& proxy) : FarTask(proxy.bridge_), proxy_(proxy) {}

 private:
  Task<Ok> run(CancelToken) override {
    co_await proxy_.channel_->close();
    proxy_.channel_.reset();
    co_return Ok{};
  }

  ProxyChannel& proxy_;
};

// XIDs are those of the Channel on far, which uses some itself.
ProxyChannel::ProxyChannel(LoopBridge& bridge) : Channel(0), bridge_(bridge) {}

ProxyChannel::~ProxyChannel() {
  STAG_CHECK(channel_ == nullptr && active_ == 0);
}

void ProxyChannel::adopt(std::unique_ptr<Channel> channel) noexcept {
  channel_ = std::move(channel);
  kind_ = channel_->kind();
  try {
    where_ = channel_->where();
  } catch (const std::bad_alloc&) {  // messages go without it
  }
  const std::optional<ChannelLimits> limits = channel_->limits();
  if (limits) limits_ = *limits;
  connected_.store(limits.has_value(), std::memory_order_relaxed);
}

std::optional<ChannelLimits> ProxyChannel::limits() const {
  if (!connected_.load(std::memory_order_relaxed)) return std::nullopt;
  return limits_;
}

Task<Result<ReplyMessage, CallError>> ProxyChannel::call(CallMessage& message) {
  if (closing_) co_return Failure{CallError::transport(Reason::Shutdown, where_)};
  if (message.signer != nullptr)
    co_return Failure{CallError::transport(Reason::RpcProtectionFailed, where_)};
  const CountedCall counted(active_);
  FarCall call(*this, message);
  co_await call.ended(message.cancel);
  co_return call.take();
}

// Far ends the calls before it has closed; those that are told later may still wait for a
// cancellation of theirs to arrive there.
Task<void> ProxyChannel::close() {
  if (!closing_) lost_ = channel_->connections_lost();
  closing_ = true;
  if (!closed_) {
    FarClose far(*this);
    co_await far.ended({});
    closed_ = true;
  }
  while (active_ > 0) co_await resume_on(loop());
}

// There is memory for the proxy before there is a connection.
class ProxyConnector::FarConnect final : public FarTask {
 public:
  using Connected = Result<std::unique_ptr<Channel>, CallError>;
  FarConnect(ProxyConnector& connector, Address server)
      : FarTask(connector.bridge_), connector_(connector), server_(std::move(server)) {}
  Connected take() { return *std::move(result_); }

 private:
  Task<Ok> run(CancelToken cancel) override {
    auto proxy = std::make_unique<ProxyChannel>(connector_.bridge_);
    Connected connected = co_await connector_.far_.connect(std::move(server_), cancel);
    if (connected) {
      proxy->adopt(*std::move(connected));
      connected = std::unique_ptr<Channel>(std::move(proxy));
    }
    result_.emplace(std::move(connected));
    co_return Ok{};
  }

  ProxyConnector& connector_;
  Address server_;
  std::optional<Connected> result_;
};

Task<Result<std::unique_ptr<Channel>, CallError>> ProxyConnector::connect(Address server,
                                                                          CancelToken cancel) {
  FarConnect connecting(*this, std::move(server));
  co_await connecting.ended(cancel);
  co_return connecting.take();
}

}  // namespace stag::rpc
