// For tests of the provider: a service that echoes, on a loop of its own.
#pragma once

#include "fabric/iwarp/raw_peer_test.h"

namespace stag::fabric::testing {

// Used on the loop's thread; what the test may look at is atomic.
class Service final : public Acceptor {
 public:
  explicit Service(IwarpOptions options = {}, ListenOptions listening = {})
      : fabric_(thread_.loop(), options) {
    on_loop(loop(), [&] {
      auto listener = fabric_.listen({"127.0.0.1", 0}, listening, *this);
      listener_ = std::move(*listener);
      address_ = listener_->local_address();
      return true;
    });
  }
  ~Service() {
    on_loop(loop(), [this] {
      listener_.reset();
      peers_.clear();
      return true;
    });
  }

  Loop& loop() { return thread_.loop(); }
  Address address() const { return address_; }
  // Of the first connection that ended.
  Reason ended() { return end_.get_future().get(); }
  std::size_t connections() {
    return on_loop(loop(), [this] { return peers_.size(); });
  }
  void turns(int count) {
    for (int i = 0; i < count; ++i) connections();
  }
  // Runs `function` with the latest connection, which has not ended.
  template <class Function>
  auto with_connection(Function function) {
    return on_loop(loop(), [&] { return function(*peers_.back()->connection); });
  }
  // Echoes of a connection that had not been told to have left, at the worst moment.
  std::size_t most_under_way() {
    return on_loop(loop(), [this] { return most_under_way_; });
  }
  void stop_listening() {
    on_loop(loop(), [this] {
      listener_.reset();
      return true;
    });
  }

  ConnectOptions answer;
  std::optional<Reason> refusal;
  std::string greeting;  // posted on every connection as soon as it is there

  Result<ConnectOptions, Reason> on_connect_request(const ConnectRequest&) override {
    if (refusal) return Failure{*refusal};
    return answer;
  }
  void on_connection(std::unique_ptr<Connection> connection) override {
    peers_.push_back(std::make_unique<Peer>(*this, std::move(connection)));
    Peer& peer = *peers_.back();
    peer.connection->start(peer);
    if (!greeting.empty())
      peer.connection->send(Rope::copy_of(bytes_of(greeting)), std::nullopt, 0, kNoToken);
  }

 private:
  struct Peer final : Events {
    Peer(Service& owner, std::unique_ptr<Connection> its)
        : service(owner), connection(std::move(its)) {}
    void on_receive(Buffer message, std::optional<std::uint32_t>) override {
      connection->send(Rope::copy_of(message.bytes()), std::nullopt, 0, Token{1});
      service.most_under_way_ = std::max(service.most_under_way_, ++under_way);
    }
    void on_done(Token, Reason) override { --under_way; }
    void on_revoked(std::uint32_t) override {}
    void on_disconnect(Reason reason) override {
      if (!std::exchange(service.ended_, true)) service.end_.set_value(reason);
      // As Link does: in a later turn, since its event is being delivered.
      service.loop().post([gone = std::move(connection)]() mutable { gone.reset(); });
    }
    Service& service;
    std::unique_ptr<Connection> connection;
    std::size_t under_way = 0;
  };

  net::LoopThread thread_;
  IwarpFabric fabric_;
  std::unique_ptr<Listener> listener_;
  Address address_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::size_t most_under_way_ = 0;
  bool ended_ = false;
  std::promise<Reason> end_;
};

}  // namespace stag::fabric::testing
