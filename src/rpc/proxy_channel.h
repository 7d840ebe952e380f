// ProxyChannel: a Channel of one Loop, *near*, for a Channel that lives on another one, *far*,
// whose thread does all that the transport has to do: it frames, copies, sums and makes the system
// calls. What a call is about (whose it is, what its results mean) stays with near.
//
//   rpc::ProxyConnector connector(near, connector_of_another_loop);
//   ConnectedChannel channel = co_await connector.connect(server, token);  // of `near`
//
// It is a Channel but for three things. Calls of a security mechanism that signs them (CallSigner)
// fail with RpcProtectionFailed: a mechanism belongs to one Loop. Calls of the server are not
// served. And the limits of its connection it knows from its last call: that the connection was
// lost since, the next call finds out. Losses are counted at once, and before the caller of a Reply
// that came by the next connection goes on.
//
// A call costs two notices between the Loops, which wake a Loop that sleeps, and a copy of what the
// far transport would have lent of the Reply; data in ResultBuffers is not copied.
//
// Thread: near's. Ownership: a ProxyChannel owns the Channel on far, which close() destroys there.
// Errors: those of that Channel; OutOfMemory where there is no memory to copy the Reply.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "rpc/channel.h"
#include "rpc/far_task.h"

namespace stag::rpc {

class ProxyChannel final : public Channel {
 public:
  // `bridge` outlives it. Thread: any.
  explicit ProxyChannel(LoopBridge& bridge);
  // close() was awaited, or it never had a Channel.
  ~ProxyChannel() override;

  // From now on this stands for `channel`. Once, before anything else. Thread: far's.
  void adopt(std::unique_ptr<Channel> channel) noexcept;

  Task<Result<ReplyMessage, CallError>> call(CallMessage& message) override;
  Task<void> close() override;
  void serve_reverse(Service&) override {}
  std::optional<ChannelLimits> limits() const override;
  std::uint64_t connections_lost() const override {
    return closing_ ? lost_ : channel_->connections_lost();
  }
  Loop& loop() override { return bridge_.near(); }
  TransportKind kind() const override { return kind_; }
  std::string where() const override { return where_; }

 private:
  class FarCall;
  class FarClose;

  LoopBridge& bridge_;
  std::unique_ptr<Channel> channel_;  // far's
  std::string where_;
  TransportKind kind_ = TransportKind::Memory;
  // Far says so when a call begins and when it ends: calls that wait for a connection do not have
  // others wait with them.
  std::atomic<bool> connected_{false};
  ChannelLimits limits_;    // of the last connection that is known of
  std::uint64_t lost_ = 0;  // when it was closed
  std::size_t active_ = 0;
  bool closing_ = false;
  bool closed_ = false;
};

// Makes ProxyChannels by a Connector of another Loop.
class ProxyConnector final : public Connector {
 public:
  // `far` outlives the ProxyConnector, and is used on its own Loop.
  ProxyConnector(Loop& near, Connector& far) : bridge_(near, far.loop()), far_(far) {}
  Loop& loop() override { return bridge_.near(); }
  Task<Result<std::unique_ptr<Channel>, CallError>> connect(Address server,
                                                            CancelToken cancel) override;

 private:
  class FarConnect;

  LoopBridge bridge_;
  Connector& far_;
};

}  // namespace stag::rpc
