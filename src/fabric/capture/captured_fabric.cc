#include "fabric/capture/captured_fabric.h"

#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/brief_mutex.h"

namespace stag::fabric::capture {

namespace {

using From = Frames::From;

std::uint32_t next_number() {
  static std::atomic<std::uint32_t> last{0};
  return last++;
}

class CapturedConnection final : public Connection, private Events {
 public:
  // `asks`: who asked for the connection; `answered`: what the other end was told.
  CapturedConnection(std::unique_ptr<Connection> inner, std::shared_ptr<Recorder> recorder,
                     From asks, const std::vector<std::byte>& near_private_data)
      : inner_(std::move(inner)),
        recorder_(std::move(recorder)),
        frames_(inner_->local_address(), inner_->peer_address(), next_number(), *recorder_) {
    const Bytes far = inner_->peer_private_data();
    show([&] {
      if (asks == From::Near)
        frames_.connect(asks, near_private_data, far);
      else
        frames_.connect(asks, far, near_private_data);
    });
  }

  void start(Events& events) override {
    events_ = &events;
    inner_->start(*this);
  }
  void close(Reason reason) override { inner_->close(reason); }
  Loop& loop() override { return inner_->loop(); }
  const Parameters& parameters() const override { return inner_->parameters(); }
  Bytes peer_private_data() const override { return inner_->peer_private_data(); }
  Address peer_address() const override { return inner_->peer_address(); }
  Address local_address() const override { return inner_->local_address(); }
  const Traffic& traffic() const override { return inner_->traffic(); }
  std::uint64_t progress_mark() const override { return inner_->progress_mark(); }
  void add_receive_credit(ReceiveCredit more) override { inner_->add_receive_credit(more); }
  Result<RemoteMemory, Reason> expose_source(Bytes memory) override {
    return inner_->expose_source(memory);
  }
  Result<RemoteMemory, Reason> expose_sink(MutableBytes memory) override {
    return inner_->expose_sink(memory);
  }
  Revocation revoke(std::uint32_t handle) override { return inner_->revoke(handle); }
  Revocation abandon(std::uint32_t handle) override { return inner_->abandon(handle); }

  void send(Rope message, std::optional<std::uint32_t> invalidate, Flow flow,
            Token token) override {
    show([&] { frames_.send(From::Near, message.flatten().bytes(), invalidate); });
    inner_->send(std::move(message), invalidate, flow, token);
  }
  void send_copy(std::span<const Bytes> parts, std::optional<std::uint32_t> invalidate, Flow flow,
                 Token token) override {
    show([&] {
      Rope message;
      for (const Bytes part : parts) message.append(Rope::borrow(part));
      frames_.send(From::Near, message.flatten().bytes(), invalidate);
    });
    inner_->send_copy(parts, invalidate, flow, token);
  }
  void write(Rope source, RemoteMemory sink, Flow flow, Token token) override {
    show([&] { frames_.write(From::Near, source.flatten().bytes(), sink); });
    inner_->write(std::move(source), sink, flow, token);
  }
  void read(RemoteMemory source, MutableBytes sink, Flow flow, Token token) override {
    if (!show([&] { ask(source, sink, token); })) forget_reads();
    inner_->read(source, sink, flow, token);
  }

 private:
  struct OpenRead {
    std::uint32_t asked;
    MutableBytes sink;
  };
  // Of one token: its owner cannot tell them apart, so their sinks are the fabric's until all of
  // them are done, and only then are all of them known to be filled.
  struct OpenReads {
    std::vector<OpenRead> all;
    std::size_t done = 0;
    bool failed = false;
  };

  void on_receive(Buffer message, std::optional<std::uint32_t> invalidated) override {
    show([&] { frames_.send(From::Far, message.bytes(), invalidated); });
    events_->on_receive(std::move(message), invalidated);
  }
  void on_done(Token token, Reason outcome) override {
    if (const auto found = reads_.find(token); found != reads_.end()) {
      OpenReads& reads = found->second;
      reads.failed = reads.failed || outcome != Reason::None;
      if (++reads.done == reads.all.size()) {
        if (!reads.failed) show([&] { answer(reads); });
        reads_.erase(found);
      }
    }
    events_->on_done(token, outcome);
  }
  void ask(const RemoteMemory& source, MutableBytes sink, Token token) {
    const auto asked = frames_.read(From::Near, source, static_cast<std::uint32_t>(sink.size()));
    if (token != kNoToken && knows_reads_) reads_[token].all.push_back({asked, sink});
  }
  void answer(const OpenReads& reads) {
    for (const OpenRead& read : reads.all) frames_.answer(From::Near, read.asked, read.sink);
  }
  // One that was not noted makes it unknown when those of its token are all done, and their sinks
  // must not be looked at too early: from now on this connection shows no answers.
  void forget_reads() {
    knows_reads_ = false;
    reads_.clear();
  }
  // A capture that has no memory loses frames, but no operation and no event. False: it does.
  template <class Make>
  bool show(Make make) noexcept {
    try {
      make();
      return true;
    } catch (...) {
      recorder_->lose();
      return false;
    }
  }

  void on_revoked(std::uint32_t handle) override { events_->on_revoked(handle); }
  void on_disconnect(Reason reason) override { events_->on_disconnect(reason); }

  Events* events_ = nullptr;
  std::unique_ptr<Connection> inner_;
  const std::shared_ptr<Recorder> recorder_;
  Frames frames_;
  std::map<Token, OpenReads> reads_;
  bool knows_reads_ = true;
};

// Stands between a listener and its owner.
class CapturingAcceptor final : public Acceptor {
 public:
  CapturingAcceptor(Acceptor& owner, std::shared_ptr<Recorder> recorder)
      : owner_(owner), recorder_(std::move(recorder)) {}

  Result<ConnectOptions, Reason> on_connect_request(const ConnectRequest& request) override {
    auto answer = owner_.on_connect_request(request);
    if (answer) {
      // All are answered alike, as far as private data goes.
      const std::lock_guard lock(mutex_);
      answer_ = std::make_shared<const ConnectOptions>(*answer);
    }
    return answer;
  }
  void on_connection(std::unique_ptr<Connection> connection) override {
    std::shared_ptr<const ConnectOptions> answer;
    {
      const std::lock_guard lock(mutex_);
      answer = answer_;
    }
    const std::vector<std::byte> none;
    const auto& private_data =
        answer == nullptr ? none : answer->private_data_for(connection->parameters());
    owner_.on_connection(std::make_unique<CapturedConnection>(std::move(connection), recorder_,
                                                              From::Far, private_data));
  }

 private:
  Acceptor& owner_;
  const std::shared_ptr<Recorder> recorder_;
  BriefMutex mutex_;
  std::shared_ptr<const ConnectOptions> answer_;
};

class CapturedListener final : public Listener {
 public:
  explicit CapturedListener(std::unique_ptr<CapturingAcceptor> acceptor)
      : acceptor_(std::move(acceptor)) {}
  void take(std::unique_ptr<Listener> inner) { inner_ = std::move(inner); }
  CapturingAcceptor& acceptor() { return *acceptor_; }
  Address local_address() const override { return inner_->local_address(); }

 private:
  const std::unique_ptr<CapturingAcceptor> acceptor_;
  std::unique_ptr<Listener> inner_;  // gone before the acceptor
};

class CapturedFabric final : public Fabric {
 public:
  CapturedFabric(std::unique_ptr<Fabric> inner, std::shared_ptr<Recorder> recorder)
      : inner_(std::move(inner)), recorder_(std::move(recorder)) {}

  Loop& loop() override { return inner_->loop(); }
  std::vector<Loop*> accepting_loops() override { return inner_->accepting_loops(); }
  std::size_t max_private_data() const override { return inner_->max_private_data(); }

  Task<Result<std::unique_ptr<Connection>, Reason>> connect(Address address, ConnectOptions options,
                                                            CancelToken cancel) override {
    const ConnectOptions asked = options;
    auto made = co_await inner_->connect(std::move(address), std::move(options), cancel);
    if (!made) co_return Failure{made.error()};
    const auto& private_data = asked.private_data_for((*made)->parameters());
    std::unique_ptr<Connection> shown =
        std::make_unique<CapturedConnection>(*std::move(made), recorder_, From::Near, private_data);
    co_return shown;
  }
  Result<std::unique_ptr<Listener>, Reason> listen(Address address, ListenOptions options,
                                                   Acceptor& acceptor) override {
    auto shown = std::make_unique<CapturedListener>(
        std::make_unique<CapturingAcceptor>(acceptor, recorder_));
    auto made = inner_->listen(std::move(address), options, shown->acceptor());
    if (!made) return Failure{made.error()};
    shown->take(*std::move(made));
    return std::unique_ptr<Listener>(std::move(shown));
  }

 private:
  const std::unique_ptr<Fabric> inner_;
  const std::shared_ptr<Recorder> recorder_;
};

}  // namespace

std::unique_ptr<Fabric> captured(std::unique_ptr<Fabric> fabric,
                                 std::shared_ptr<Recorder> recorder) {
  return std::make_unique<CapturedFabric>(std::move(fabric), std::move(recorder));
}

}  // namespace stag::fabric::capture
