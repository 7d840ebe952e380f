// Bulk that a server receives in registered memory, at (a stub of) a device, and what becomes of
// the memory when a connection ends while it is written to.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "c/serving.h"
#include "c/stag.h"
#include "endpoint/client.h"
#include "endpoint/registered_memory.h"
#include "fabric/registrations.h"
#include "fabric/verbs/stub/stub_network.h"
#include "xdr/procedure.h"

namespace stag::c::placing_devices {
namespace {

constexpr std::size_t kSize = 1 << 20;
constexpr std::size_t kCalls = 8;
constexpr std::uint32_t kProgram = 0x2000'00b0;
constexpr xdr::ItemId kData = 1;

struct Nothing {};
struct Put {
  using Args = Rope;
  using Results = Nothing;
  static constexpr std::uint32_t program = kProgram, version = 1, number = 1;
  static constexpr std::string_view name = "PUT";
  static constexpr std::optional<std::uint32_t> max_args_size{}, max_results_size{0};
  static void encode_args(xdr::Encoder& to, const Args& data) { to.opaque(kData, data); }
  static bool decode_args(xdr::Decoder& from, Args& data) { return from.opaque(kData, data); }
  static void encode_results(xdr::Encoder&, const Results&) {}
  static bool decode_results(xdr::Decoder&, Results&) { return true; }
};
constexpr std::array kTable{rpc::bind<Put>({kData})};

class CPlacingAtDevice : public ::testing::TestWithParam<bool> {
 protected:
  CPlacingAtDevice() {
    stag_serve_options serving{};
    serving.size = sizeof serving;
    serving.transport = STAG_RDMA_DEVICE;
    serving.place = place;
    endpoint::ListenOptions listen;
    listen.verbs.functions = devices_.functions();
    EXPECT_EQ(
        serve_with(listen, "127.0.0.1", 0, &program_, handler, this, &serving, &server_, nullptr),
        STAG_OK);
    endpoint::ConnectOptions options;
    options.binding = rpc::Binding(kTable);
    options.connector.fabric = endpoint::FabricKind::Verbs;
    options.connector.verbs.functions = devices_.functions();
    options.loops = loops_;
    client_.emplace(*endpoint::connect({"127.0.0.1", stag_server_port(server_)}, options));
    // With its first message the server registers what the connection has for all later ones.
    EXPECT_TRUE(client_->call<Put>(Rope::copy_of(Bytes(sent_).first(8))).ok());
    wait_for_releases();
  }
  ~CPlacingAtDevice() override {
    client_.reset();
    EXPECT_EQ(stag_stop(server_), STAG_OK);
    EXPECT_EQ(released_, given_);
  }

  static void place(void* context, stag_placement* placement) {
    auto& self = *static_cast<CPlacingAtDevice*>(context);
    placement->buffer = self.memory_.data();
    placement->capacity = self.memory_.size();
    placement->memory = self.registered_;
    placement->release = [](void* at) {
      auto& count = *static_cast<std::atomic<int>*>(at);
      ++count;
      count.notify_all();
    };
    placement->release_context = &self.released_;
    ++self.given_;
    self.given_.notify_all();
  }
  static void handler(void* context, stag_request* request) {
    auto& self = *static_cast<CPlacingAtDevice*>(context);
    self.in_place_ = stag_request_bulk(request, nullptr) == self.memory_.data();
    stag_results results{};
    results.size = sizeof results;
    ++self.handled_;
    EXPECT_EQ(stag_reply(request, &results), STAG_OK);
  }
  void wait_for_releases() {
    for (int seen = released_; seen != given_; seen = released_) released_.wait(seen);
  }
  void register_pool() {
    ASSERT_EQ(stag_server_memory_register(server_, memory_.data(), kSize, STAG_MEMORY_WRITE,
                                          &registered_, nullptr),
              STAG_OK);
  }
  static std::size_t registrations() { return fabric::RegistrationCount::of_verbs().counts().made; }
  // So many registrations do these calls make, at both ends.
  std::size_t made_by_calls() {
    const std::size_t before = registrations();
    for (std::size_t i = 0; i < kCalls; ++i) {
      std::fill(sent_.begin(), sent_.end(), std::byte(i + 1));
      EXPECT_TRUE(client_->call<Put>(Rope::borrow(sent_)).ok());
      EXPECT_TRUE(in_place_);
      EXPECT_TRUE(memory_ == sent_);
    }
    wait_for_releases();
    return registrations() - before;
  }
  // A call of which no byte comes before release_reads().
  std::future<bool> held_call() {
    devices_.hold_reads(true);
    const int before = given_;
    auto ended = std::async(std::launch::async, [this] {
      rpc::CallOptions options;
      options.cancel = cancel_;
      return client_->call<Put>(Rope::borrow(sent_), options).ok();
    });
    given_.wait(before);
    return ended;
  }
  void cancel() {
    client_->loop().post([this] { cancel_.cancel(); });
  }

  fabric::stub::StubNetwork devices_{
      {GetParam() ? fabric::stub::siw_like() : fabric::stub::rxe_like()}};
  const stag_procedure procedure_{sizeof procedure_, Put::number, STAG_ARGUMENTS_BULK, 0, 0};
  const stag_program program_{sizeof program_, kProgram, 1, &procedure_, 1};
  std::vector<std::byte> memory_ = std::vector<std::byte>(kSize);
  std::vector<std::byte> sent_ = std::vector<std::byte>(kSize, std::byte{0x5a});
  stag_memory* registered_ = nullptr;
  std::atomic<int> given_{0}, released_{0}, handled_{0};
  std::atomic<bool> in_place_{false};
  stag_server* server_ = nullptr;
  std::shared_ptr<endpoint::Loops> loops_ = std::make_shared<endpoint::Loops>();
  CancelSource cancel_;
  std::optional<endpoint::Client> client_;
};

class CPlacingAtWindows : public CPlacingAtDevice {};

TEST_P(CPlacingAtWindows, registers_a_pool_once_for_all_calls) {
  const auto source = endpoint::register_memory(loops_, sent_, endpoint::MemoryAccess::Read);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(made_by_calls(), kCalls) << "memory that is not registered, for each call";
  register_pool();
  EXPECT_EQ(made_by_calls(), 0u);
  EXPECT_EQ(stag_memory_release(registered_), STAG_OK);
}

INSTANTIATE_TEST_SUITE_P(Devices, CPlacingAtWindows, ::testing::Values(false),
                         [](const auto&) { return "Rxe"; });

TEST_P(CPlacingAtDevice, has_bulk_in_place_with_and_without_registered_memory) {
  made_by_calls();
  register_pool();
  made_by_calls();
  EXPECT_EQ(stag_memory_release(registered_), STAG_OK);
}

INSTANTIATE_TEST_SUITE_P(Devices, CPlacingAtDevice, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "Siw" : "Rxe"; });

class CPlacingInReads : public CPlacingAtDevice {};

TEST_P(CPlacingInReads, memory_is_the_servers_until_they_have_ended_with_the_connection) {
  register_pool();
  auto call = held_call();
  EXPECT_EQ(released_, given_ - 1);
  EXPECT_EQ(stag_memory_release(registered_), STAG_BUSY);
  const int before = released_, handled = handled_;
  cancel();
  EXPECT_FALSE(call.get());
  client_.reset();
  released_.wait(before);
  EXPECT_EQ(stag_memory_release(registered_), STAG_OK);
  devices_.hold_reads(false);
  EXPECT_EQ(handled_, handled);
  EXPECT_EQ(std::count(memory_.begin() + 8, memory_.end(), std::byte{0}),
            static_cast<std::ptrdiff_t>(kSize - 8));
}

TEST_P(CPlacingInReads, memory_is_given_back_before_a_server_has_stopped) {
  register_pool();
  auto call = held_call();
  EXPECT_EQ(stag_stop(std::exchange(server_, nullptr)), STAG_OK);
  EXPECT_EQ(released_, given_);
  EXPECT_EQ(stag_memory_release(registered_), STAG_OK);
  cancel();
  EXPECT_FALSE(call.get());
}

INSTANTIATE_TEST_SUITE_P(Devices, CPlacingInReads, ::testing::Values(true),
                         [](const auto&) { return "Siw"; });

}  // namespace
}  // namespace stag::c::placing_devices
