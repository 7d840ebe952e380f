#include "fabric/capture/captured_fabric.h"

#include <atomic>
#include <new>
#include <optional>
#include <span>
#include <unordered_map>
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

// For what a connection is shown to begin with; null where there is no memory for that.
std::shared_ptr<const ConnectOptions> copy_of(const ConnectOptions& options) noexcept {
  try {
    return std::make_shared<const ConnectOptions>(options);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// A Read whose answer is to be shown has its token marked. So it is told from those of the same
// token that were posted while nobody captured, and from those that could not be noted.
constexpr Token kMark = Token{1} << 63;

class CapturedConnection final : public Connection, private Events, private FrameSink {
 public:
  // `asks`: who asked for the connection; `near_options`: what its other end was told, if that is
  // known.
  CapturedConnection(std::unique_ptr<Connection> inner, std::shared_ptr<Tap> tap, From asks,
                     std::shared_ptr<const ConnectOptions> near_options)
      : inner_(std::move(inner)),
        tap_(std::move(tap)),
        asks_(asks),
        near_options_(std::move(near_options)),
        number_(next_number()),
        peer_(IpAddress::parse(inner_->peer_address().host).value_or(IpAddress())) {
    show([] {});
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
  std::optional<std::size_t> filled(std::uint32_t handle) const override {
    return inner_->filled(handle);
  }
  Revocation abandon(std::uint32_t handle) override { return inner_->abandon(handle); }

  void send(Rope message, std::optional<std::uint32_t> invalidate, Flow flow,
            Token token) override {
    show([&] { frames_->send(From::Near, message.flatten().bytes(), invalidate); });
    inner_->send(std::move(message), invalidate, flow, token);
  }
  void send_copy(std::span<const Bytes> parts, std::optional<std::uint32_t> invalidate, Flow flow,
                 Token token) override {
    show([&] {
      Rope message;
      for (const Bytes part : parts) message.append(Rope::borrow(part));
      frames_->send(From::Near, message.flatten().bytes(), invalidate);
    });
    inner_->send_copy(parts, invalidate, flow, token);
  }
  void write(Rope source, RemoteMemory sink, Flow flow, Token token) override {
    show([&] { frames_->write(From::Near, source.flatten().bytes(), sink); });
    inner_->write(std::move(source), sink, flow, token);
  }
  void read(RemoteMemory source, MutableBytes sink, Flow flow, Token token) override {
    bool noted = false;
    show([&] { noted = ask(source, sink, token); });
    inner_->read(source, sink, flow, noted ? token | kMark : token);
  }

 private:
  struct NotedRead {
    std::uint32_t asked;
    MutableBytes sink;
  };
  // Those of one token: its owner cannot tell them apart, so their sinks are the fabric's until all
  // of them are done, and only then are all of them known to be filled.
  struct OpenReads {
    std::vector<NotedRead> noted;
    std::size_t left = 0;  // that have not ended
    bool failed = false;   // one of them
  };

  void on_receive(Buffer message, std::optional<std::uint32_t> invalidated) override {
    show([&] { frames_->send(From::Far, message.bytes(), invalidated); });
    events_->on_receive(std::move(message), invalidated);
  }
  void on_done(Token token, Reason outcome) override {
    if ((token & kMark) != 0 && end_read(token & ~kMark, outcome)) token &= ~kMark;
    events_->on_done(token, outcome);
  }
  void on_revoked(std::uint32_t handle) override { events_->on_revoked(handle); }
  void on_disconnect(Reason reason) override { events_->on_disconnect(reason); }

  bool ask(const RemoteMemory& source, MutableBytes sink, Token token) {
    const auto asked = frames_->read(From::Near, source, static_cast<std::uint32_t>(sink.size()));
    if (token == kNoToken || (token & kMark) != 0) return false;
    const NotedRead read{asked, sink};
    const auto [reads, is_first] = reads_.try_emplace(token, OpenReads{.noted = {read}});
    if (!is_first) reads->second.noted.push_back(read);
    ++reads->second.left;
    return true;
  }
  // False: it is none that was noted, and the mark is the owner's.
  bool end_read(Token token, Reason outcome) {
    const auto found = reads_.find(token);
    if (found == reads_.end()) return false;
    OpenReads& reads = found->second;
    reads.failed |= outcome != Reason::None;
    if (--reads.left != 0) return true;
    if (!reads.failed)
      show([&] {
        for (const NotedRead& each : reads.noted)
          frames_->answer(From::Near, each.asked, each.sink);
      });
    reads_.erase(found);
    return true;
  }

  // A capture that has no memory loses frames, but no operation and no event.
  template <class Make>
  void show(Make make) noexcept {
    const std::uint64_t newest = tap_->newest();
    if ((newest | seen_) == 0) [[likely]]
      return;
    if (newest == 0) return rest();
    try {
      if (newest != seen_) introduce(newest);
      make();
    } catch (...) {
      after_ = 0;
      tap_->lose(peer_);
    }
  }
  // Those recorders that have begun since the last time are told which connection this is.
  void introduce(std::uint64_t newest) {
    if (!frames_)
      frames_.emplace(inner_->local_address(), inner_->peer_address(), number_,
                      static_cast<FrameSink&>(*this));
    const Bytes far = inner_->peer_private_data();
    Bytes near;
    if (near_options_ != nullptr) near = near_options_->private_data_for(inner_->parameters());
    after_ = std::exchange(seen_, newest);
    if (asks_ == From::Near)
      frames_->connect(asks_, near, far);
    else
      frames_->connect(asks_, far, near);
    after_ = 0;
  }
  // The last capture is over. Reads that are noted go on being told apart.
  void rest() {
    if (!reads_.empty()) return;
    seen_ = 0;
    frames_.reset();
    reads_ = {};
  }
  void take(Bytes frame) override { tap_->take(frame, peer_, after_); }

  Events* events_ = nullptr;
  std::unique_ptr<Connection> inner_;
  const std::shared_ptr<Tap> tap_;
  const From asks_;
  const std::shared_ptr<const ConnectOptions> near_options_;
  const std::uint32_t number_;
  const IpAddress peer_;
  std::uint64_t seen_ = 0;        // the Tap's newest, of which the last introduction was
  std::uint64_t after_ = 0;       // the recorders behind this number get the frames
  std::optional<Frames> frames_;  // while a capture runs
  std::unordered_map<Token, OpenReads> reads_;
};

// Stands between a listener and its owner.
class CapturingAcceptor final : public Acceptor {
 public:
  CapturingAcceptor(Acceptor& owner, std::shared_ptr<Tap> tap)
      : owner_(owner), tap_(std::move(tap)) {}

  Result<ConnectOptions, Reason> on_connect_request(const ConnectRequest& request) override {
    auto answer = owner_.on_connect_request(request);
    if (answer) {
      // All are answered alike, as far as private data goes.
      const BriefLock lock(mutex_);
      if (answer_ == nullptr) answer_ = copy_of(*answer);
    }
    return answer;
  }
  void on_connection(std::unique_ptr<Connection> connection) override {
    std::shared_ptr<const ConnectOptions> answer;
    {
      const BriefLock lock(mutex_);
      answer = answer_;
    }
    std::unique_ptr<Connection> shown;
    try {
      shown = std::make_unique<CapturedConnection>(std::move(connection), tap_, From::Far,
                                                   std::move(answer));
    } catch (const std::bad_alloc&) {
      return trace(Reason::OutOfMemory);
    }
    owner_.on_connection(std::move(shown));
  }

 private:
  Acceptor& owner_;
  const std::shared_ptr<Tap> tap_;
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
  void limit_connections(std::uint32_t all, std::uint32_t per_peer) override {
    inner_->limit_connections(all, per_peer);
  }

 private:
  const std::unique_ptr<CapturingAcceptor> acceptor_;
  std::unique_ptr<Listener> inner_;  // gone before the acceptor
};

class CapturedFabric final : public Fabric {
 public:
  CapturedFabric(std::unique_ptr<Fabric> inner, std::shared_ptr<Tap> tap)
      : inner_(std::move(inner)), tap_(std::move(tap)) {}

  Loop& loop() override { return inner_->loop(); }
  std::vector<Loop*> accepting_loops() override { return inner_->accepting_loops(); }
  std::size_t max_private_data() const override { return inner_->max_private_data(); }

  Task<Result<std::unique_ptr<Connection>, Reason>> connect(Address address, ConnectOptions options,
                                                            CancelToken cancel) override {
    const auto asked = copy_of(options);
    auto made = co_await inner_->connect(std::move(address), std::move(options), cancel);
    if (!made) co_return Failure{made.error()};
    std::unique_ptr<Connection> shown =
        std::make_unique<CapturedConnection>(*std::move(made), tap_, From::Near, asked);
    co_return shown;
  }
  Result<std::unique_ptr<Listener>, Reason> listen(Address address, ListenOptions options,
                                                   Acceptor& acceptor) override {
    auto shown =
        std::make_unique<CapturedListener>(std::make_unique<CapturingAcceptor>(acceptor, tap_));
    auto made = inner_->listen(std::move(address), options, shown->acceptor());
    if (!made) return Failure{made.error()};
    shown->take(*std::move(made));
    return std::unique_ptr<Listener>(std::move(shown));
  }

 private:
  const std::unique_ptr<Fabric> inner_;
  const std::shared_ptr<Tap> tap_;
};

}  // namespace

std::unique_ptr<Fabric> captured(std::unique_ptr<Fabric> fabric, std::shared_ptr<Tap> tap) {
  return std::make_unique<CapturedFabric>(std::move(fabric), std::move(tap));
}

}  // namespace stag::fabric::capture
