// Memory that is kept registered, at a (stub of a) device.
#include "endpoint/registered_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "endpoint/client.h"
#include "endpoint/listener.h"
#include "fabric/registrations.h"
#include "fabric/verbs/stub/stub_network.h"
#include "rpc/server.h"
#include "testing/store_service.h"

namespace stag::endpoint {
namespace {

using namespace testing::store;

constexpr std::size_t kSize = 1 << 20;
constexpr std::size_t kCalls = 8;

class EndpointKept : public ::testing::Test {
 protected:
  EndpointKept() {
    rpc::Program program(kProgram, kVersion, kBinding);
    program.add<PUT>(
        [this](rpc::CallContext&, PutArgs args) { return put(&state_, std::move(args)); });
    program.add<GET>([this](rpc::CallContext&, GetArgs args) {
      ++gets_;
      gets_.notify_all();
      return get(&state_, args);
    });
    server_.add(std::move(program));
    ListenOptions options;
    options.fabric = FabricKind::Verbs;
    options.verbs.functions = devices_.functions();
    listener_.emplace(*listen(server_, {"127.0.0.1", 0}, options));
    connect_again();
  }

  void connect_again() {
    client_.reset();
    ConnectOptions options;
    options.binding = kBinding;
    options.connector.fabric = FabricKind::Verbs;
    options.connector.verbs.functions = devices_.functions();
    options.loops = loops_;
    client_.emplace(*connect(listener_->address(), options));
    // With its first message the server registers what the connection has for all later ones.
    EXPECT_TRUE(client_->call<PUT>({.slot = 1}).ok());
  }
  RegisteredMemory registered(MemoryAccess access) {
    auto made = register_memory(loops_, memory_, access);
    EXPECT_TRUE(made.ok());
    return *std::move(made);
  }
  // So many registrations do these calls make, at both ends.
  std::size_t made_by_puts() {
    const std::size_t before = registrations();
    const Rope data = Rope::borrow(memory_);
    for (std::size_t i = 0; i < kCalls; ++i) {
      const auto stored = client_->call<PUT>({.slot = 1, .data = data, .checksum = checksum(data)});
      EXPECT_TRUE(stored.ok() && stored->checksum == checksum(data));
    }
    return registrations() - before;
  }
  std::size_t made_by_gets() {
    const Rope data = pattern(kSize, 7);
    state_.slots[2] = data;
    const std::size_t before = registrations();
    const std::array<rpc::ResultBuffer, 1> result_buffers{
        rpc::ResultBuffer{item::get_data, memory_}};
    rpc::CallOptions options;
    options.result_buffers = result_buffers;
    for (std::size_t i = 0; i < kCalls; ++i) {
      const auto back = client_->call<GET>({.slot = 2, .count = kSize}, options);
      EXPECT_TRUE(back.ok() && back->data == data);
      in_place_ = back.ok() && back->data.pieces().begin()->data() == memory_.data();
    }
    return registrations() - before;
  }
  static std::size_t registrations() { return fabric::RegistrationCount::of_verbs().counts().made; }

  fabric::stub::StubNetwork devices_{{fabric::stub::rxe_like()}};
  State state_;
  std::atomic<int> gets_{0};  // begun
  rpc::Server server_;
  std::shared_ptr<Loops> loops_ = std::make_shared<Loops>();
  std::optional<Listener> listener_;
  std::optional<Client> client_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kSize, std::byte{0x5a});
  bool in_place_ = false;
};

TEST_F(EndpointKept, memory_is_registered_once_for_all_calls_with_arguments_there) {
  // The client's source, and where the server reads it to.
  EXPECT_EQ(made_by_puts(), 2 * kCalls);
  const std::size_t before = registrations();
  const auto kept = registered(MemoryAccess::Read);
  EXPECT_EQ(registrations(), before + 1);
  EXPECT_EQ(made_by_puts(), kCalls) << "those of the server alone";
}

TEST_F(EndpointKept, memory_is_registered_once_for_all_calls_with_results_there) {
  // The client's sink, and where the server writes from.
  EXPECT_EQ(made_by_gets(), 2 * kCalls);
  EXPECT_FALSE(in_place_) << "a call that may end early has a sink of its own";
  const auto kept = registered(MemoryAccess::ReadAndWrite);
  EXPECT_EQ(made_by_gets(), kCalls) << "those of the server alone";
  EXPECT_TRUE(in_place_);
}

TEST_F(EndpointKept, memory_to_be_read_only_is_no_sink) {
  const auto kept = registered(MemoryAccess::Read);
  EXPECT_EQ(made_by_gets(), 2 * kCalls);
  EXPECT_FALSE(in_place_);
}

TEST_F(EndpointKept, memory_is_registered_anew_for_a_new_connection) {
  const auto kept = registered(MemoryAccess::ReadAndWrite);
  connect_again();
  EXPECT_EQ(made_by_gets(), kCalls + 1) << "the old one went with its domain";
  EXPECT_TRUE(in_place_);
}

TEST_F(EndpointKept, memory_that_is_given_up_is_used_no_more) {
  const std::size_t before = fabric::RegistrationCount::of_verbs().counts().now;
  registered(MemoryAccess::ReadAndWrite);
  EXPECT_EQ(fabric::RegistrationCount::of_verbs().counts().now, before);
  EXPECT_EQ(made_by_gets(), 2 * kCalls);
  EXPECT_FALSE(in_place_);
}

TEST_F(EndpointKept, memory_is_written_to_by_nobody_once_a_cancelled_call_has_ended) {
  const auto kept = registered(MemoryAccess::ReadAndWrite);
  state_.slots[2] = pattern(kSize, 7);
  const std::array<rpc::ResultBuffer, 1> sinks{rpc::ResultBuffer{item::get_data, memory_}};
  CancelSource source;
  rpc::CallOptions options;
  options.result_buffers = sinks;
  options.cancel = source;
  std::unique_lock answers(state_.mutex);
  auto call = std::async(std::launch::async,
                         [&] { return client_->call<GET>({.slot = 2, .count = kSize}, options); });
  gets_.wait(0);
  client_->loop().post([&] { source.cancel(); });
  const auto cancelled = call.get();
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().reason, Reason::Cancelled);
  std::fill(memory_.begin(), memory_.end(), std::byte{0x5a});
  answers.unlock();
  EXPECT_TRUE(client_->ping(kProgram, kVersion).ok()) << "the server has written by then";
  EXPECT_EQ(std::count(memory_.begin(), memory_.end(), std::byte{0x5a}),
            static_cast<std::ptrdiff_t>(kSize));
}

TEST_F(EndpointKept, memory_that_a_device_refuses_is_an_error) {
  devices_.fail_next("ibv_reg_mr");
  EXPECT_EQ(register_memory(loops_, memory_, MemoryAccess::ReadAndWrite).error(),
            Reason::VerbsMemlockTooLow);
  EXPECT_EQ(devices_.failed_call(), "ibv_reg_mr");
  EXPECT_EQ(made_by_puts(), 2 * kCalls);
}

}  // namespace
}  // namespace stag::endpoint
