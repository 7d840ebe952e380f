// Calls with bulk as no client of the library's sends them.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "c/stag.h"
#include "rpcrdma/header.h"
#include "testing/fabric_contract/harness.h"
#include "testing/iwarp_harness.h"
#include "xdr/encoder.h"

namespace stag::c::placing_hostile {
namespace {

constexpr std::uint32_t kProgram = 0x2000'00b1, kPut = 1;
// RPC header, the head of the arguments, and the length of the bulk.
constexpr std::uint32_t kPosition = 40 + 4 + 4;
constexpr std::uint32_t kSize = 20'000;

// A server of PUT(word, data), which executes nothing twice, and a peer that speaks for itself.
class CPlacingHostile : public stag::testing::FabricTest {
 protected:
  CPlacingHostile()
      : FabricTest(
            std::make_unique<stag::testing::IwarpHarness>(fabric::IwarpOptions{}, "127.0.0.1")) {
    stag_serve_options serving{};
    serving.size = sizeof serving;
    serving.place = place;
    EXPECT_EQ(stag_serve("127.0.0.1", 0, &program_, handler, this, &serving, &server_, nullptr),
              STAG_OK);
    auto outcome = connect({"127.0.0.1", stag_server_port(server_)});
    EXPECT_TRUE(outcome && outcome->ok());
    active.take(std::move(**outcome));
    active.start();
  }
  ~CPlacingHostile() override {
    active.destroy();
    EXPECT_EQ(stag_stop(server_), STAG_OK);
    EXPECT_EQ(released_, asked_);
  }
  static void place(void* context, stag_placement* placement) {
    auto& self = *static_cast<CPlacingHostile*>(context);
    ++self.asked_;
    placement->buffer = self.memory_.data();
    placement->capacity = self.memory_.size();
    placement->release = [](void* count) { ++*static_cast<std::atomic<int>*>(count); };
    placement->release_context = &self.released_;
  }
  static void handler(void* context, stag_request* request) {
    auto& self = *static_cast<CPlacingHostile*>(context);
    ++self.handled_;
    self.in_place_ = stag_request_bulk(request, nullptr) == self.memory_.data();
    stag_results results{};
    results.size = sizeof results;
    EXPECT_EQ(stag_reply(request, &results), STAG_OK);
  }

  // PUT with a bulk of `length` bytes, of which a Read chunk has `chunk` bytes; its accept_stat.
  std::uint32_t put(std::uint32_t xid, std::uint32_t length, std::uint32_t chunk,
                    std::uint32_t position = kPosition, std::size_t words = 12) {
    const auto source = active->expose_source(Bytes(sent_).first(chunk));
    rpcrdma::Header header;
    header.xid = xid;
    header.credits = 1;
    header.read_list.push_back({position, {{source->handle, chunk, source->offset}}});
    Rope message = Rope::copy_of(rpcrdma::EncodedHeader(header).bytes());
    xdr::Encoder call;
    const std::array<std::uint32_t, 12> stream{xid, 0, 2, kProgram, 1, kPut, 0, 0, 0, 0, 7, length};
    for (std::size_t i = 0; i < words; ++i) call.u32(stream[i]);
    message.append(std::move(call).finish().rope());
    active.messages.clear();
    active->send(std::move(message), std::nullopt, 0, fabric::kNoToken);
    EXPECT_TRUE(run_until([&] { return active.messages.size() == 1; }));
    active->revoke(source->handle);
    constexpr std::size_t kAcceptStat = 28 + 20;
    if (active.messages.empty() || active.messages[0].text.size() < kAcceptStat + 4) return ~0u;
    return load_be<std::uint32_t>(
        reinterpret_cast<const std::byte*>(active.messages[0].text.data()) + kAcceptStat);
  }

  const stag_procedure procedure_{sizeof procedure_, kPut, STAG_ARGUMENTS_BULK | STAG_ONCE, 4, 0};
  const stag_program program_{sizeof program_, kProgram, 1, &procedure_, 1};
  std::vector<std::byte> sent_ = std::vector<std::byte>(2 * kSize, std::byte{0x5a});
  std::vector<std::byte> memory_ = std::vector<std::byte>(kSize);
  std::atomic<int> asked_{0}, released_{0}, handled_{0};
  std::atomic<bool> in_place_{false};
  stag_server* server_ = nullptr;
};

TEST_F(CPlacingHostile, asks_for_no_memory_where_length_and_chunk_do_not_agree) {
  std::uint32_t xid = 100;
  ASSERT_EQ(put(++xid, kSize, kSize), 0u);
  EXPECT_TRUE(in_place_);
  ASSERT_EQ(asked_, 1);
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs{
      {kSize, kSize - 4},    {kSize, kSize + 4},   {kSize, 2 * kSize},
      {0xffff'fffc, kSize},  {0xffff'ffff, kSize}, {0, 4},
      {kSize - 1, kSize - 4}};
  for (const auto& [length, chunk] : pairs)
    EXPECT_EQ(put(++xid, length, chunk), unsigned{STAG_GARBAGE_ARGS}) << length << " " << chunk;
  for (const std::uint32_t position : {kPosition - 4, kPosition - 8})
    EXPECT_EQ(put(++xid, kSize, kSize, position), unsigned{STAG_GARBAGE_ARGS}) << position;
  for (const std::size_t words : {10u, 11u})
    EXPECT_NE(put(++xid, kSize, kSize, static_cast<std::uint32_t>(4 * words), words), 0u);
  EXPECT_EQ(handled_, 1);
  EXPECT_EQ(put(++xid, 0, 0), 0u) << "no bytes are placed anywhere";
  EXPECT_EQ(handled_, 2);
  EXPECT_EQ(asked_, 1);
}

TEST_F(CPlacingHostile, gives_back_memory_of_a_repeated_call_that_is_not_executed_again) {
  ASSERT_EQ(put(7, kSize, kSize), 0u);
  ASSERT_EQ(put(7, kSize, kSize), 0u);
  EXPECT_EQ(handled_, 1);
  EXPECT_EQ(asked_, 2);
}

}  // namespace
}  // namespace stag::c::placing_hostile
