// What call security must hold on every transport, as coroutines that a transport's test runs:
// Calls and Replies get lost and each transmission is signed anew, a repeated one is refused, what
// ran is not run again, and an authentication may outlive its connection.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "base/task_group.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "testing/store_service.h"
#include "testing/toy_security.h"

namespace stag::testing {

// In front of a Service: loses a Call, or the Reply to one, and with it the connection where the
// transport has one.
class LossyService final : public rpc::Service {
 public:
  enum class Loss : std::uint8_t { None, Call, Reply };

  explicit LossyService(rpc::Service& inner) : inner_(inner) {}
  Task<std::optional<rpc::OutgoingReply>> serve(rpc::IncomingCall& call) override {
    const bool chosen = load_be<std::uint32_t>(call.payload.data() + 20) == procedure_ &&
                        (spared_ == 0 || spared_-- == 0);
    const Loss loss = chosen ? std::exchange(next_, Loss::None) : Loss::None;
    std::optional<rpc::OutgoingReply> reply;
    if (loss != Loss::Call) reply = co_await inner_.serve(call);
    if (loss == Loss::None) co_return reply;
    call.close = Reason::ConnectionReset;
    if (on_loss) on_loss();
    co_return std::nullopt;
  }
  bool is_worth_fetching(const rpc::Origin& origin, Bytes message) const override {
    return inner_.is_worth_fetching(origin, message);
  }
  std::optional<std::uint64_t> reply_max(const rpc::Origin& origin,
                                         const Buffer& call) const noexcept override {
    return inner_.reply_max(origin, call);
  }
  std::size_t active_calls() const override { return inner_.active_calls(); }

  // The next Call of this procedure but `spared`; what comes late of others changes nothing.
  void lose(Loss loss, std::uint32_t procedure, std::uint32_t spared = 0) {
    next_ = loss;
    procedure_ = procedure;
    spared_ = spared;
  }
  std::function<void()> on_loss;

 private:
  rpc::Service& inner_;
  Loss next_ = Loss::None;
  std::uint32_t procedure_ = 0;
  std::uint32_t spared_ = 0;
};

// The store program behind a server that knows the toy mechanism; a transport comes in front of
// `service`.
struct SecuredStore {
  explicit SecuredStore(bool seals) : security(std::make_shared<ToySecurity>("alice", seals)) {
    server.add(store::make_program(state));
    auto made = std::make_unique<ToyAuthenticator>(seals);
    authenticator = made.get();
    server.add(std::move(made));
  }
  rpc::Client client(rpc::Channel& channel, rpc::Binding binding = store::kBinding) const {
    return rpc::Client(channel, binding, rpc::Credentials::secured(security));
  }

  store::State state;
  rpc::Server server;
  LossyService service{server};
  std::shared_ptr<ToySecurity> security;
  ToyAuthenticator* authenticator = nullptr;
};

// `largest` bytes of data go each way.
inline Task<bool> loses_calls_and_replies(SecuredStore& store, rpc::Channel& channel,
                                          std::uint32_t largest) {
  rpc::Client client = store.client(channel);
  const auto one = co_await client.call<store::INCREMENT>(1u);
  EXPECT_TRUE(one.ok() && *one == 2u);
  std::uint32_t calls = 1, total = 0;
  for (const auto loss : {LossyService::Loss::Call, LossyService::Loss::Reply}) {
    store.service.lose(loss, store::ADD_ONCE::number);
    const auto added = co_await client.call<store::ADD_ONCE>(5u);
    total += 5;
    EXPECT_TRUE(added.ok() && *added == total) << "a Call that ran does not run again";
    store.service.lose(loss, store::PUT::number);
    const Rope data = store::pattern(largest, 7);
    const store::PutArgs put{.slot = 1, .data = data, .checksum = store::checksum(data)};
    const auto stored = co_await client.call<store::PUT>(put);
    EXPECT_TRUE(stored.ok() && stored->checksum == put.checksum);
    store.service.lose(loss, store::GET::number);
    const store::GetArgs get{.slot = 1, .count = largest};
    const auto got = co_await client.call<store::GET>(get);
    EXPECT_TRUE(got.ok() && got->data == data);
    calls += 3;
  }
  EXPECT_EQ(store.authenticator->repeated, 0u) << "each transmission is signed anew";
  EXPECT_GE(store.security->transmissions, 2 * calls - 1);
  co_return true;
}

// The proof that the server looks: a client that sends the same bytes again gets no answer.
inline Task<bool> refuses_what_is_not_signed_again(SecuredStore& store, rpc::Channel& channel) {
  rpc::Client client = store.client(channel);
  const auto one = co_await client.call<store::INCREMENT>(1u);
  EXPECT_TRUE(one.ok());
  store.security->repeats_itself = true;
  store.service.lose(LossyService::Loss::Reply, store::ADD_ONCE::number);
  CancelSource enough;
  store.authenticator->on_repeated = [&enough] { enough.cancel(); };
  rpc::CallOptions options;
  options.cancel = enough;
  const auto result = co_await client.call<store::ADD_ONCE>(5u, options);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.error().reason, Reason::Cancelled);
  EXPECT_GE(store.authenticator->repeated, 1u);
  EXPECT_EQ(store.state.total, 5u);
  store.authenticator->on_repeated = nullptr;
  store.security->repeats_itself = false;
  const auto later = co_await client.call<store::ADD_ONCE>(5u);
  EXPECT_TRUE(later.ok() && *later == 10u);
  co_return true;
}

inline Task<> add_into(rpc::Client& client, std::optional<rpc::CallResult<std::uint32_t>>& to) {
  to = co_await client.call<store::ADD_ONCE>(5u);
}

// A Call waits for its authentication while its connection is lost and the Call comes again on the
// next one.
inline Task<bool> authenticates_longer_than_the_connection_lives(SecuredStore& store,
                                                                 rpc::Channel& channel) {
  rpc::Client client = store.client(channel);
  const auto one = co_await client.call<store::INCREMENT>(1u);
  EXPECT_TRUE(one.ok());
  store.authenticator->is_slow = [](const toy::Credential&) { return true; };
  Completion<Ok> waits, waits_again;
  store.authenticator->on_held = [&] {
    (store.authenticator->held.size() == 1 ? waits : waits_again).complete(Ok{});
  };
  TaskGroup calls;
  std::optional<rpc::CallResult<std::uint32_t>> added;
  calls.add(add_into(client, added));
  co_await waits;
  store.service.lose(LossyService::Loss::Call, 0);
  rpc::Client plain(channel);
  const auto pong = co_await plain.ping(store::kProgram, store::kVersion);
  EXPECT_TRUE(pong.ok()) << "a slow authentication keeps nobody else waiting";
  co_await waits_again;
  EXPECT_FALSE(added.has_value());
  store.authenticator->let_go();
  co_await calls.join();
  EXPECT_TRUE(added->ok() && **added == 5u);
  EXPECT_EQ(store.state.total, 5u) << "the Call of the lost connection ran, the other was answered";
  co_return true;
}

}  // namespace stag::testing
