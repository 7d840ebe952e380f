// Bulk of arguments that a server receives in memory of its own.
#include "c/placing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/large_blocks.h"
#include "c/stag.h"

namespace stag::c::placing {
namespace {

constexpr std::size_t kSize = 1 << 20;
constexpr std::byte kUntouched{0x5a};

template <class T>
T sized(T value = {}) {
  value.size = sizeof value;
  return value;
}

enum Procedure : std::uint32_t { PUT = 1, LONG_PUT = 2, RAW = 3 };
constexpr std::uint32_t kProgram = 0x2000'00ae;
constexpr std::uint32_t kLongHead = 8192;  // no message has room for it

// PUT(word, data) and LONG_PUT(words, data) tell where the data came. What place() answers is said
// by `give_`.
class CPlacing : public ::testing::TestWithParam<stag_transport> {
 protected:
  CPlacing() {
    stag_serve_options serving = sized(stag_serve_options{});
    serving.transport = GetParam();
    serving.place = place;
    EXPECT_EQ(stag_serve("127.0.0.1", 0, &program_, handler, this, &serving, &server_, &error_),
              STAG_OK);
    stag_connect_options connecting = sized(stag_connect_options{});
    connecting.transport = GetParam();
    EXPECT_EQ(stag_connect("127.0.0.1", stag_server_port(server_), &program_, &connecting, &client_,
                           &error_),
              STAG_OK)
        << error_.text;
  }
  ~CPlacing() override {
    EXPECT_EQ(stag_disconnect(client_), STAG_OK);
    EXPECT_EQ(stag_stop(server_), STAG_OK);
    EXPECT_EQ(released_, given_);
  }

  static void place(void* context, stag_placement* placement) {
    auto& self = *static_cast<CPlacing*>(context);
    ++self.asked_;
    self.placement_ = *placement;
    self.head_.assign(static_cast<const char*>(placement->arguments), placement->arguments_length);
    placement->release = count_released;
    placement->release_context = &self.released_;
    self.give_(*placement);
    if (placement->buffer != nullptr && placement->release != nullptr) ++self.given_;
  }
  static void count_released(void* at) {
    auto& count = *static_cast<std::atomic<int>*>(at);
    ++count;
    count.notify_all();
  }
  void give_memory(stag_placement& placement) {
    placement.buffer = memory_.data();
    placement.capacity = memory_.size();
    placement.memory = registered_;
  }
  static void handler(void* context, stag_request* request) {
    auto& self = *static_cast<CPlacing*>(context);
    std::size_t length = 0;
    const auto* data = static_cast<const std::byte*>(stag_request_bulk(request, &length));
    self.handled_at_ = data;
    EXPECT_EQ(stag_request_placed(request),
              data == self.memory_.data() ? static_cast<void*>(&self.released_) : nullptr);
    self.handled_.assign(data, data + length);
    EXPECT_LE(self.released_, self.given_ - (data == self.memory_.data() ? 1 : 0))
        << "released before the reply";
    const stag_results results = sized(stag_results{});
    EXPECT_EQ(stag_reply(request, &results), STAG_OK);
  }

  int put(const std::vector<std::byte>& data, Procedure procedure = PUT) {
    std::vector<char> head(procedure == PUT ? 4 : kLongHead, 'h');
    stag_call call = sized(stag_call{});
    call.procedure = procedure;
    call.arguments = head.data();
    call.arguments_length = head.size();
    call.bulk = data.data();
    call.bulk_length = data.size();
    handled_at_ = nullptr;
    handled_.clear();
    return stag_call_wait(client_, &call, &error_);
  }
  bool handled_in_place() const { return handled_at_ == memory_.data(); }

  const stag_procedure procedures_[3] = {
      {sizeof(stag_procedure), PUT, STAG_ARGUMENTS_BULK, 4, 0},
      {sizeof(stag_procedure), LONG_PUT, STAG_ARGUMENTS_BULK, kLongHead, 0},
      {sizeof(stag_procedure), RAW, 0, 0, 0}};
  const stag_program program_{sizeof program_, kProgram, 1, procedures_, 3};
  std::vector<std::byte> memory_ = std::vector<std::byte>(kSize, kUntouched);
  stag_memory* registered_ = nullptr;
  std::function<void(stag_placement&)> give_ = [this](stag_placement& to) { give_memory(to); };
  std::atomic<int> asked_{0}, given_{0}, released_{0};
  stag_placement placement_{};
  std::string head_;
  const std::byte* handled_at_ = nullptr;
  std::vector<std::byte> handled_;
  stag_error error_ = sized(stag_error{});
  stag_server* server_ = nullptr;
  stag_client* client_ = nullptr;
};

std::vector<std::byte> bytes(std::size_t size, int first = 1) {
  std::vector<std::byte> data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = std::byte(first + static_cast<int>(i % 251));
  return data;
}

TEST_P(CPlacing, bulk_of_every_size_is_handled_where_the_program_wants_it) {
  ASSERT_EQ(stag_server_memory_register(server_, memory_.data(), memory_.size(), STAG_MEMORY_WRITE,
                                        &registered_, &error_),
            STAG_OK);
  int calls = 0;
  for (const std::size_t size : {std::size_t{1}, std::size_t{5}, std::size_t{70'001}, kSize}) {
    const std::vector<std::byte> data = bytes(size);
    ASSERT_EQ(put(data), STAG_OK) << error_.text;
    ++calls;
    EXPECT_TRUE(handled_in_place());
    EXPECT_EQ(handled_, data);
    EXPECT_EQ(placement_.procedure, PUT);
    EXPECT_EQ(head_, "hhhh");
    EXPECT_EQ(placement_.bulk_length, size);
    EXPECT_EQ(asked_, calls);
    released_.wait(calls - 1);
    EXPECT_EQ(released_, calls);
    EXPECT_EQ(
        std::count(memory_.begin() + static_cast<std::ptrdiff_t>(size), memory_.end(), kUntouched),
        static_cast<std::ptrdiff_t>(kSize - size))
        << "nothing is written behind it";
  }
  EXPECT_EQ(stag_memory_release(registered_), STAG_OK);
}

TEST_P(CPlacing, bulk_behind_arguments_that_no_message_holds_is_copied_there) {
  for (const std::size_t size : {std::size_t{100}, std::size_t{200'001}}) {
    const std::vector<std::byte> data = bytes(size);
    ASSERT_EQ(put(data, LONG_PUT), STAG_OK) << error_.text;
    EXPECT_TRUE(handled_in_place());
    EXPECT_EQ(handled_, data);
    EXPECT_EQ(head_, std::string(kLongHead, 'h'));
    EXPECT_EQ(placement_.bulk_length, size);
    EXPECT_EQ(placement_.procedure, LONG_PUT);
  }
  EXPECT_EQ(asked_, 2);
}

TEST_P(CPlacing, a_program_may_have_no_memory_for_a_call) {
  give_ = [](stag_placement&) {};
  for (const std::size_t size : {std::size_t{5}, kSize}) {
    const std::vector<std::byte> data = bytes(size);
    ASSERT_EQ(put(data), STAG_OK) << error_.text;
    EXPECT_FALSE(handled_in_place());
    EXPECT_EQ(handled_, data);
  }
  EXPECT_EQ(asked_, 2) << "once each";
  ASSERT_EQ(put({}), STAG_OK);
  EXPECT_EQ(asked_, 2) << "for no bytes nobody is asked";
}

TEST_P(CPlacing, memory_that_cannot_be_used_is_given_back_at_once_and_the_call_is_served) {
  stag_memory *of_client = nullptr, *read_only = nullptr, *elsewhere = nullptr;
  std::vector<std::byte> other(kSize);
  ASSERT_EQ(
      stag_memory_register(client_, memory_.data(), kSize, STAG_MEMORY_WRITE, &of_client, nullptr),
      STAG_OK);
  ASSERT_EQ(stag_server_memory_register(server_, memory_.data(), kSize, STAG_MEMORY_READ,
                                        &read_only, nullptr),
            STAG_OK);
  ASSERT_EQ(stag_server_memory_register(server_, other.data(), kSize, STAG_MEMORY_WRITE, &elsewhere,
                                        nullptr),
            STAG_OK);
  using Spoil = std::function<void(stag_placement&)>;
  const std::vector<Spoil> wrongs{
      [](stag_placement& to) { to.capacity = to.bulk_length - 1; },
      [](stag_placement& to) { to.capacity = 0; },
      [&](stag_placement& to) { to.memory = of_client; },
      [&](stag_placement& to) { to.memory = read_only; },
      [&](stag_placement& to) { to.memory = elsewhere; },
      [](stag_placement& to) { to.release = nullptr; },
  };
  for (const std::size_t size : {std::size_t{5}, kSize})
    for (const Spoil& spoil : wrongs) {
      give_ = [&](stag_placement& to) {
        give_memory(to);
        spoil(to);
      };
      const std::vector<std::byte> data = bytes(size);
      ASSERT_EQ(put(data), STAG_OK) << error_.text;
      EXPECT_FALSE(handled_in_place());
      EXPECT_EQ(handled_, data);
      EXPECT_EQ(released_, given_);
    }
  for (stag_memory* each : {of_client, read_only, elsewhere})
    EXPECT_EQ(stag_memory_release(each), STAG_OK) << "none is in use";
  EXPECT_EQ(std::count(memory_.begin(), memory_.end(), kUntouched),
            static_cast<std::ptrdiff_t>(kSize));
}

class CPlacingByRdma : public CPlacing {};

// The library's memory for a bulk of that length would be kept, for later ones.
TEST_P(CPlacingByRdma, bulk_is_copied_by_nobody) {
  const std::vector<std::byte> data = bytes(kSize);
  release_kept_pages();
  ASSERT_EQ(put(data), STAG_OK) << error_.text;
  EXPECT_TRUE(handled_in_place());
  released_.wait(0);
  EXPECT_EQ(kept_page_bytes(), 0u);
  give_ = [](stag_placement&) {};
  ASSERT_EQ(put(data), STAG_OK) << error_.text;
  EXPECT_EQ(stag_disconnect(std::exchange(client_, nullptr)), STAG_OK);
  EXPECT_EQ(stag_stop(std::exchange(server_, nullptr)), STAG_OK);
  EXPECT_GE(kept_page_bytes(), kSize) << "the test is about something";
}

INSTANTIATE_TEST_SUITE_P(Transports, CPlacingByRdma, ::testing::Values(STAG_RDMA),
                         [](const auto&) { return "Rdma"; });
INSTANTIATE_TEST_SUITE_P(Transports, CPlacing, ::testing::Values(STAG_RDMA, STAG_TCP),
                         [](const auto& of) { return of.param == STAG_TCP ? "Tcp" : "Rdma"; });

}  // namespace
}  // namespace stag::c::placing
