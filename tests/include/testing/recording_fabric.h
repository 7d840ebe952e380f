// A fabric around another one that writes down, in order, all that its owner posts and all that it
// is told, so that a test can say what came before what on the wire. It can also tamper: alter what
// is sent, hide private data, keep back that a revocation is complete, or guard memory so that
// touching it while it is exposed is a fault of the processor.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fabric.h"

namespace stag::testing {

enum class End : std::uint8_t { Active, Passive };

enum class Act : std::uint8_t {
  Connect,       // bytes: the private data, for ends that have remote invalidation
  Accept,        // the same
  Credit,        // length: Receives added
  ExposeSource,  // bytes: what is there to be read
  ExposeSink,
  Revoke,
  Abandon,
  Revoked,  // by revoke(), on_revoked() or the peer: the memory is free
  Send,     // bytes, as they left; note: "borrowed" when some belong to somebody else
  Write,    // handle and length of the sink; bytes
  Read,     // handle and length of the source
  Receive,  // bytes
  Close,
  Disconnect,
  Note,  // note: what the test wanted to remember
};

struct Recorded {
  Act act;
  End end = End::Active;
  std::uint32_t connection = 0;  // counted from 1 for each end
  std::uint32_t handle = 0;
  std::uint64_t length = 0;
  std::vector<std::byte> bytes{};
  std::optional<std::uint32_t> invalidate{};  // of a Send, or what a Receive invalidated
  std::string note{};
};

struct Tampering {
  bool no_private_data = false;    // from now on the fabric carries none
  bool keep_back_revoked = false;  // on_revoked never comes
  bool guard = false;              // whole pages that are exposed cannot be touched meanwhile
  std::function<void(End, std::vector<std::byte>&)> rewrite_send;
  // The Send ends with an error although the connection lives.
  std::function<bool(End)> fail_send;
  bool fill_unknown = false;  // the provider does not know what was written
  // What lies in it already.
  std::function<void(Bytes)> sink_exposed;
  // The Write leaves as if it was made, but not to the peer.
  std::function<bool(End)> lose_write;
  // What a Write places.
  std::function<void(End, std::vector<std::byte>&)> rewrite_write;
  // The connection is made, and who asked for it does not know yet.
  std::function<void()> connected;
  // What the passive end invalidates with a Send.
  std::function<std::optional<std::uint32_t>(std::optional<std::uint32_t>)> invalidate;
};

class Record {
 public:
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);

  void add(Recorded entry) { log_.push_back(std::move(entry)); }
  void note(std::string text) { log_.push_back({.act = Act::Note, .note = std::move(text)}); }
  const std::vector<Recorded>& log() const { return log_; }
  const Recorded& operator[](std::size_t index) const { return log_[index]; }
  void clear() { log_.clear(); }

  template <class Predicate>
  std::size_t first(Predicate predicate, std::size_t from = 0) const {
    for (std::size_t i = from; i < log_.size(); ++i)
      if (predicate(log_[i])) return i;
    return kNever;
  }
  std::size_t first(Act act, End end, std::size_t from = 0) const {
    return first([&](const Recorded& entry) { return entry.act == act && entry.end == end; }, from);
  }
  std::size_t first(Act act, End end, std::uint32_t handle, std::size_t from) const {
    return first(
        [&](const Recorded& entry) {
          return entry.act == act && entry.end == end && entry.handle == handle;
        },
        from);
  }
  std::size_t count(Act act, End end) const {
    return static_cast<std::size_t>(
        std::count_if(log_.begin(), log_.end(),
                      [&](const Recorded& entry) { return entry.act == act && entry.end == end; }));
  }
  // Handles that `end` has exposed, in order.
  std::vector<std::uint32_t> exposed(End end) const {
    std::vector<std::uint32_t> handles;
    for (const Recorded& entry : log_)
      if (entry.end == end && (entry.act == Act::ExposeSource || entry.act == Act::ExposeSink))
        handles.push_back(entry.handle);
    return handles;
  }
  // Those of them whose memory the peer can still reach.
  std::vector<std::uint32_t> reachable(End end) const {
    std::vector<std::uint32_t> handles;
    for (std::uint32_t handle : exposed(end))
      if (first(Act::Revoked, end, handle, 0) == kNever) handles.push_back(handle);
    return handles;
  }

  Tampering tampering;

 private:
  std::vector<Recorded> log_;
};

// Memory that stands in for pages of the owner while they are exposed.
class GuardedPages {
 public:
  static bool possible(Bytes memory) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    return !memory.empty() && memory.size() % page == 0 &&
           reinterpret_cast<std::uintptr_t>(memory.data()) % page == 0;
  }
  explicit GuardedPages(MutableBytes real) : real_(real), stand_in_(real.begin(), real.end()) {
    ::mprotect(real_.data(), real_.size(), PROT_NONE);
  }
  GuardedPages(GuardedPages&& other) noexcept
      : real_(std::exchange(other.real_, {})), stand_in_(std::move(other.stand_in_)) {}
  ~GuardedPages() {
    if (real_.empty()) return;
    ::mprotect(real_.data(), real_.size(), PROT_READ | PROT_WRITE);
    std::memcpy(real_.data(), stand_in_.data(), real_.size());
  }
  MutableBytes stand_in() { return stand_in_; }

 private:
  MutableBytes real_;
  std::vector<std::byte> stand_in_;
};

class RecordingConnection final : public fabric::Connection, private fabric::Events {
 public:
  RecordingConnection(std::unique_ptr<fabric::Connection> inner, Record& record, End end,
                      std::uint32_t number)
      : inner_(std::move(inner)), record_(record), end_(end), number_(number) {}

  void start(fabric::Events& events) override {
    events_ = &events;
    inner_->start(*this);
  }
  void close(Reason reason) override {
    add({.act = Act::Close});
    inner_->close(reason);
  }
  Loop& loop() override { return inner_->loop(); }
  const fabric::Parameters& parameters() const override { return inner_->parameters(); }
  Bytes peer_private_data() const override { return inner_->peer_private_data(); }
  Address peer_address() const override { return inner_->peer_address(); }
  Address local_address() const override { return inner_->local_address(); }
  const fabric::Traffic& traffic() const override { return inner_->traffic(); }
  std::uint64_t progress_mark() const override { return inner_->progress_mark(); }

  void add_receive_credit(fabric::ReceiveCredit more) override {
    add({.act = Act::Credit, .length = more.count});
    inner_->add_receive_credit(more);
  }

  Result<fabric::RemoteMemory, Reason> expose_source(Bytes memory) override {
    const MutableBytes real{const_cast<std::byte*>(memory.data()), memory.size()};
    return exposed(Act::ExposeSource, real,
                   [&](MutableBytes m) { return inner_->expose_source(m); });
  }
  Result<fabric::RemoteMemory, Reason> expose_sink(MutableBytes memory) override {
    if (record_.tampering.sink_exposed) record_.tampering.sink_exposed(memory);
    return exposed(Act::ExposeSink, memory, [&](MutableBytes m) { return inner_->expose_sink(m); });
  }
  fabric::Revocation revoke(std::uint32_t handle) override {
    add({.act = Act::Revoke, .handle = handle});
    return revoked(handle, inner_->revoke(handle));
  }
  std::optional<std::size_t> filled(std::uint32_t handle) const override {
    return record_.tampering.fill_unknown ? std::nullopt : inner_->filled(handle);
  }
  fabric::Revocation abandon(std::uint32_t handle) override {
    add({.act = Act::Abandon, .handle = handle});
    return revoked(handle, inner_->abandon(handle));
  }

  void send(Rope message, std::optional<std::uint32_t> invalidate, fabric::Flow flow,
            fabric::Token token) override {
    const Tampering& tampering = record_.tampering;
    const Buffer flat = message.flatten();
    std::vector<std::byte> bytes(flat.bytes().begin(), flat.bytes().end());
    if (tampering.rewrite_send) {
      tampering.rewrite_send(end_, bytes);
      message = Rope::copy_of(bytes);
    }
    if (tampering.fail_send && tampering.fail_send(end_)) return fail(token);
    if (tampering.invalidate && end_ == End::Passive) invalidate = tampering.invalidate(invalidate);
    const bool owned = std::all_of(message.pieces().begin(), message.pieces().end(),
                                   [](const Buffer& piece) { return piece.owned(); });
    add({.act = Act::Send,
         .length = bytes.size(),
         .bytes = bytes,
         .invalidate = invalidate,
         .note = owned ? "" : "borrowed"});
    inner_->send(std::move(message), invalidate, flow, token);
  }
  void write(Rope source, fabric::RemoteMemory sink, fabric::Flow flow,
             fabric::Token token) override {
    const Buffer flat = source.flatten();
    add({.act = Act::Write,
         .handle = sink.handle,
         .length = source.size(),
         .bytes = kept(flat.bytes())});
    const Tampering& tampering = record_.tampering;
    if (tampering.lose_write && tampering.lose_write(end_)) source = Rope();
    if (tampering.rewrite_write) {
      std::vector<std::byte> bytes(flat.bytes().begin(), flat.bytes().end());
      tampering.rewrite_write(end_, bytes);
      source = Rope::copy_of(bytes);
    }
    inner_->write(std::move(source), sink, flow, token);
  }
  void read(fabric::RemoteMemory source, MutableBytes sink, fabric::Flow flow,
            fabric::Token token) override {
    add({.act = Act::Read, .handle = source.handle, .length = sink.size()});
    inner_->read(source, sink, flow, token);
  }

 private:
  // Not of what is large: some tests move a lot.
  static std::vector<std::byte> kept(Bytes bytes) {
    if (bytes.size() > (16 << 10)) return {};
    return {bytes.begin(), bytes.end()};
  }
  void add(Recorded entry) {
    entry.end = end_;
    entry.connection = number_;
    record_.add(std::move(entry));
  }
  template <class Expose>
  Result<fabric::RemoteMemory, Reason> exposed(Act act, MutableBytes memory, Expose expose) {
    std::optional<GuardedPages> pages;
    if (record_.tampering.guard && GuardedPages::possible(memory)) pages.emplace(memory);
    auto remote = expose(pages ? pages->stand_in() : memory);
    if (!remote) return remote;
    add({.act = act,
         .handle = remote->handle,
         .length = memory.size(),
         .bytes = act == Act::ExposeSource && !pages ? kept(memory) : std::vector<std::byte>()});
    if (pages) guarded_.emplace(remote->handle, *std::move(pages));
    return remote;
  }
  fabric::Revocation revoked(std::uint32_t handle, fabric::Revocation how) {
    if (how == fabric::Revocation::Done) free(handle);
    return how;
  }
  void free(std::uint32_t handle) {
    guarded_.erase(handle);
    add({.act = Act::Revoked, .handle = handle});
  }
  void fail(fabric::Token token) {
    fail_timer_ = loop().after(Duration::zero(), [this, token] {
      if (token != fabric::kNoToken) events_->on_done(token, Reason::ConnectionLost);
    });
  }

  void on_receive(Buffer message, std::optional<std::uint32_t> invalidated) override {
    if (invalidated) free(*invalidated);
    const Bytes bytes = message.bytes();
    add({.act = Act::Receive,
         .length = bytes.size(),
         .bytes = {bytes.begin(), bytes.end()},
         .invalidate = invalidated});
    events_->on_receive(std::move(message), invalidated);
  }
  void on_done(fabric::Token token, Reason outcome) override { events_->on_done(token, outcome); }
  void on_revoked(std::uint32_t handle) override {
    if (record_.tampering.keep_back_revoked) return;
    free(handle);
    events_->on_revoked(handle);
  }
  void on_disconnect(Reason reason) override {
    guarded_.clear();
    add({.act = Act::Disconnect});
    events_->on_disconnect(reason);
  }

  std::unique_ptr<fabric::Connection> inner_;
  Record& record_;
  const End end_;
  const std::uint32_t number_;
  fabric::Events* events_ = nullptr;
  std::map<std::uint32_t, GuardedPages> guarded_;
  Timer fail_timer_;
};

// Both outlive every connection made through it. One of these for each end when a test must tell
// who connects; one for both otherwise.
class RecordingFabric final : public fabric::Fabric {
 public:
  RecordingFabric(fabric::Fabric& inner, Record& record) : inner_(inner), record_(record) {}

  Loop& loop() override { return inner_.loop(); }
  std::vector<Loop*> accepting_loops() override { return inner_.accepting_loops(); }
  std::size_t max_private_data() const override {
    return record_.tampering.no_private_data ? 0 : inner_.max_private_data();
  }
  Task<Result<std::unique_ptr<fabric::Connection>, Reason>> connect(Address address,
                                                                    fabric::ConnectOptions options,
                                                                    CancelToken cancel) override {
    ++connects_;
    record_.add({.act = Act::Connect, .connection = connects_, .bytes = options.private_data});
    const std::uint32_t number = connects_;
    auto connection = co_await inner_.connect(address, options, cancel);
    if (!connection) co_return Failure{connection.error()};
    if (record_.tampering.connected) record_.tampering.connected();
    std::unique_ptr<fabric::Connection> wrapped =
        std::make_unique<RecordingConnection>(*std::move(connection), record_, End::Active, number);
    co_return std::move(wrapped);
  }

  Result<std::unique_ptr<fabric::Listener>, Reason> listen(Address address,
                                                           fabric::ListenOptions options,
                                                           fabric::Acceptor& acceptor) override {
    auto listener = std::make_unique<RecordingListener>(record_, acceptor);
    auto inner = inner_.listen(std::move(address), std::move(options), *listener);
    if (!inner) return Failure{inner.error()};
    listener->inner = *std::move(inner);
    return std::unique_ptr<fabric::Listener>(std::move(listener));
  }

  // Connection requests made.
  std::uint32_t connects() const { return connects_; }

 private:
  struct RecordingListener final : fabric::Listener, fabric::Acceptor {
    RecordingListener(Record& to, fabric::Acceptor& owner) : record(to), acceptor(owner) {}
    ~RecordingListener() override { inner.reset(); }
    Address local_address() const override { return inner->local_address(); }
    void limit_connections(std::uint32_t all, std::uint32_t per_peer) override {
      inner->limit_connections(all, per_peer);
    }
    Result<fabric::ConnectOptions, Reason> on_connect_request(
        const fabric::ConnectRequest& request) override {
      auto answer = acceptor.on_connect_request(request);
      if (answer)
        record.add({.act = Act::Accept, .end = End::Passive, .bytes = answer->private_data});
      return answer;
    }
    void on_connection(std::unique_ptr<fabric::Connection> connection) override {
      acceptor.on_connection(std::make_unique<RecordingConnection>(std::move(connection), record,
                                                                   End::Passive, ++accepted));
    }

    Record& record;
    fabric::Acceptor& acceptor;
    std::unique_ptr<fabric::Listener> inner;
    std::uint32_t accepted = 0;
  };

  fabric::Fabric& inner_;
  Record& record_;
  std::uint32_t connects_ = 0;
};

}  // namespace stag::testing
