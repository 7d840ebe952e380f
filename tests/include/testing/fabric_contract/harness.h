// What the fabric contract suite needs from a provider: a fabric, a loop, and a way to run it. A
// provider joins the suite with
//
//   #include "testing/fabric_contract.h"
//   INSTANTIATE_TEST_SUITE_P(Sim, FabricContract, ::testing::Values(FabricFactory{"sim", make}));
//
// Everything happens on the test's thread: the harness runs the loop there.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/fabric.h"
#include "testing/fabric_harness.h"
#include "testing/pattern.h"
#include "testing/proves.h"

namespace stag::testing {

// One side of a connection and all that it is told. Stays where it is once it is started.
class Side final : public fabric::Events {
 public:
  struct Message {
    std::string text;
    std::optional<std::uint32_t> invalidated;
  };

  void take(std::unique_ptr<fabric::Connection> connection) { connection_ = std::move(connection); }
  fabric::Connection& operator*() { return *connection_; }
  fabric::Connection* operator->() { return connection_.get(); }
  bool connected() const { return connection_ != nullptr; }
  void start() {
    outside([&] { connection_->start(*this); });
  }
  void destroy() {
    outside([&] { connection_.reset(); });
  }
  // Runs `call`, during which no event may come.
  template <class Call>
  void outside(Call call) {
    const std::size_t before = log.size();
    call();
    EXPECT_EQ(log.size(), before) << "an event came from inside a call";
  }

  void on_receive(Buffer message, std::optional<std::uint32_t> invalidated) override {
    EXPECT_FALSE(disconnected) << "on_receive after on_disconnect";
    log.push_back("receive");
    messages.push_back({std::string(text_of(message.bytes())), invalidated});
    if (when_received) when_received();
  }
  void on_done(fabric::Token token, Reason outcome) override {
    EXPECT_NE(token, fabric::kNoToken);
    log.push_back("done " + std::to_string(token));
    outcomes.emplace_back(token, outcome);
    if (when_done) when_done(token, outcome);
  }
  void on_revoked(std::uint32_t handle) override {
    EXPECT_FALSE(disconnected) << "on_revoked after on_disconnect";
    log.push_back("revoked");
    revoked.push_back(handle);
  }
  void on_disconnect(Reason reason) override {
    EXPECT_FALSE(disconnected) << "on_disconnect twice";
    log.push_back("disconnect");
    disconnected = reason;
  }

  std::optional<Reason> outcome(fabric::Token token) const {
    for (const auto& [known, reason] : outcomes) {
      if (known == token) return reason;
    }
    return std::nullopt;
  }

  std::vector<std::string> log;  // every event, in order
  std::vector<Message> messages;
  std::vector<std::pair<fabric::Token, Reason>> outcomes;
  std::vector<std::uint32_t> revoked;
  std::optional<Reason> disconnected;
  std::function<void()> when_received;
  std::function<void(fabric::Token, Reason)> when_done;

 private:
  std::unique_ptr<fabric::Connection> connection_;
};

// Accepts what the test says.
class TestAcceptor final : public fabric::Acceptor {
 public:
  Result<fabric::ConnectOptions, Reason> on_connect_request(
      const fabric::ConnectRequest& request) override {
    ++requests;
    private_data.assign(text_of(request.private_data));
    peer = request.peer;
    if (rejection) return Failure{*rejection};
    return answer;
  }
  void on_connection(std::unique_ptr<fabric::Connection> connection) override {
    arrived.push_back(std::move(connection));
  }

  fabric::ConnectOptions answer;
  std::optional<Reason> rejection;
  int requests = 0;
  std::string private_data;
  Address peer;
  std::vector<std::unique_ptr<fabric::Connection>> arrived;
};

// Whether a connection carried exactly `text`: InfiniBand's CM fills up with zeros.
inline bool carries(std::string_view private_data, std::string_view text) {
  return private_data.substr(0, text.size()) == text &&
         private_data.find_first_not_of('\0', text.size()) == std::string_view::npos;
}

inline std::vector<std::byte> byte_vector(std::string_view text) {
  const Bytes bytes = bytes_of(text);
  return {bytes.begin(), bytes.end()};
}

// `size` bytes that tell their place and their `seed`.
inline std::vector<std::byte> pattern(std::size_t size, std::uint32_t seed) {
  std::vector<std::byte> bytes(size);
  fill_pattern(bytes, seed);
  return bytes;
}

// A fabric, a listener's acceptor and the two sides of a connection.
class FabricTest : public ::testing::Test {
 protected:
  using ConnectOutcome = Result<std::unique_ptr<fabric::Connection>, Reason>;

  explicit FabricTest(std::unique_ptr<FabricHarness> made) : harness(std::move(made)) {
    // A plenty that tests of credit lower.
    options.receive = acceptor.answer.receive = {250, 70'000};
    options.receives_max = acceptor.answer.receives_max = 250;
  }
  ~FabricTest() override {
    if (active.connected()) active.destroy();
    if (passive.connected()) passive.destroy();
    acceptor.arrived.clear();
    listener.reset();
    harness->settle();
  }

  Loop& loop() { return harness->loop(); }
  fabric::Fabric& fabric() { return harness->fabric(); }
  bool run_until(const std::function<bool()>& predicate) { return harness->run_until(predicate); }
  // What has not happened by now does not happen.
  void settle() { harness->settle(); }

  void listen() {
    auto made = fabric().listen(harness->any_address(), {}, acceptor);
    ASSERT_TRUE(made.ok()) << to_string(made.error());
    listener = std::move(*made);
  }
  static Task<void> connect_into(fabric::Fabric* fabric, Address address,
                                 fabric::ConnectOptions options, CancelToken cancel,
                                 std::optional<ConnectOutcome>* outcome) {
    outcome->emplace(co_await fabric->connect(address, options, cancel));
  }
  std::optional<ConnectOutcome> connect(const Address& address, CancelToken cancel = {}) {
    std::optional<ConnectOutcome> outcome;
    detach(connect_into(&fabric(), address, options, cancel, &outcome));
    EXPECT_TRUE(run_until([&] { return outcome.has_value(); })) << "connect never ended";
    return outcome;
  }
  // Both sides connected, not started.
  void join() {
    if (!listener) listen();
    auto outcome = connect(listener->local_address());
    ASSERT_TRUE(outcome && outcome->ok()) << to_string((*outcome).error());
    ASSERT_TRUE(run_until([&] { return !acceptor.arrived.empty(); }));
    active.take(std::move(**outcome));
    passive.take(std::move(acceptor.arrived.front()));
    acceptor.arrived.clear();
  }
  // Both sides connected and started; the active side has spoken, so the passive side may.
  void join_and_greet() {
    join();
    active.start();
    passive.start();
    active->send(Rope::borrow(bytes_of("hello")), std::nullopt, 0, fabric::kNoToken);
    ASSERT_TRUE(run_until([&] { return passive.messages.size() == 1; }));
    passive.messages.clear();
    passive.log.clear();
  }
  bool done(Side& side, fabric::Token token) {
    return run_until([&] { return side.outcome(token).has_value(); });
  }
  // Whether both sides find that the connection has ended.
  bool ended() {
    return run_until([&] { return active.disconnected && passive.disconnected; });
  }

  std::unique_ptr<FabricHarness> harness;
  fabric::ConnectOptions options;
  TestAcceptor acceptor;
  std::unique_ptr<fabric::Listener> listener;
  Side active, passive;
};

class FabricContract : public FabricTest, public ::testing::WithParamInterface<FabricFactory> {
 protected:
  FabricContract() : FabricTest(GetParam().make()) {}
};

}  // namespace stag::testing
