// Random traffic of many flows over one connection, checked byte by byte.
#include <gtest/gtest.h>

#include <random>

#include "testing/fabric_contract/harness.h"
#include "testing/iwarp_harness.h"

namespace stag::testing {
namespace {

fabric::IwarpOptions in_parts(std::uint32_t seed) {
  fabric::IwarpOptions options;
  options.max_ulpdu = seed % 2 == 0 ? 64768 : 1000 + seed * 7;
  options.write_message = 20'000;
  options.turn_bytes = 30'000;
  options.always_crc = seed % 3 == 0;
  return options;
}

class Traffic : public FabricTest {
 protected:
  static constexpr std::uint32_t kFlows = 6;
  static constexpr std::uint32_t kRegion = 200'000;

  explicit Traffic(std::uint32_t seed = 0)
      : FabricTest(std::make_unique<IwarpHarness>(in_parts(seed), "127.0.0.1")), random_(seed) {}

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  MutableBytes region(std::vector<std::byte>& of, std::uint32_t flow) const {
    return MutableBytes(of).subspan(std::size_t{flow} * kRegion, kRegion);
  }

  // One round of a flow: a Write, the Send that says so, and a Read of what was written, which
  // waits for the Send's arrival as a ULP would.
  struct Round {
    std::uint32_t from = 0;
    std::uint32_t size = 0;
    std::vector<std::byte> bytes;
    std::vector<std::byte> back;
  };

  void write(std::uint32_t flow) {
    Round& round = rounds_[flow];
    round.from = below(kRegion);
    round.size = below(4) == 0 ? below(50) : below(kRegion - round.from + 1);
    round.bytes = pattern(round.size, random_());
    round.back.assign(round.size, std::byte{0});
    fabric::RemoteMemory to = sinks_[flow];
    to.offset += round.from;
    to.length = round.size;
    passive->write(Rope::borrow(round.bytes), to, flow, fabric::kNoToken);
    passive->send(Rope::copy_of(bytes_of(std::to_string(flow))), std::nullopt, flow,
                  fabric::kNoToken);
  }
  void on_written(std::uint32_t flow) {
    const Round& round = rounds_[flow];
    const Bytes there = region(memory_, flow).subspan(round.from, round.size);
    EXPECT_TRUE(std::equal(there.begin(), there.end(), round.bytes.begin(), round.bytes.end()));
    fabric::RemoteMemory from = sources_[flow];
    from.offset += round.from;
    passive->read(from, rounds_[flow].back, flow, flow + 1);
  }
  void on_read(std::uint32_t flow) {
    EXPECT_TRUE(rounds_[flow].back == rounds_[flow].bytes);
    if (++done_ < kFlows * 15) write(flow);
  }

  std::mt19937 random_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(std::size_t{kFlows} * kRegion);
  std::vector<fabric::RemoteMemory> sinks_, sources_;
  std::vector<Round> rounds_ = std::vector<Round>(kFlows);
  std::uint32_t done_ = 0;
};

class SeededTraffic : public Traffic, public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  SeededTraffic() : Traffic(GetParam()) {}
};

TEST_P(SeededTraffic, arrives_whole_in_every_flow) {
  acceptor.answer.outbound_reads = 1 + GetParam() % 4;
  join_and_greet();
  for (std::uint32_t flow = 0; flow < kFlows; ++flow) {
    sinks_.push_back(*active->expose_sink(region(memory_, flow)));
    sources_.push_back(*active->expose_source(region(memory_, flow)));
  }
  active.when_received = [&] { on_written(std::stoul(active.messages.back().text)); };
  passive.when_done = [&](fabric::Token token, Reason reason) {
    ASSERT_EQ(reason, Reason::None);
    on_read(static_cast<std::uint32_t>(token - 1));
  };
  for (std::uint32_t flow = 0; flow < kFlows; ++flow) write(flow);
  EXPECT_TRUE(run_until([&] { return done_ >= kFlows * 15; }));
  EXPECT_FALSE(active.disconnected || passive.disconnected);
}

// More than leave together while the turn that receives them goes on, and just as many.
TEST_F(Traffic, reports_every_answer_that_was_given_in_the_midst_of_a_turn) {
  constexpr std::size_t kMessages = 60;
  join_and_greet();
  passive->add_receive_credit({kMessages, 4096});
  active->add_receive_credit({kMessages, 4096});
  const auto answer = [](fabric::Connection& connection, std::uint64_t token) {
    connection.send(Rope::copy_of(bytes_of("answer")), std::nullopt, 0, token);
  };
  std::uint64_t answered = 0;
  std::uint64_t done = 0;
  passive.when_received = [&] { answer(*passive, ++answered); };
  passive.when_done = [&](fabric::Token token, Reason reason) {
    EXPECT_EQ(reason, Reason::None);
    EXPECT_EQ(token, ++done);
  };
  const std::size_t before = active.messages.size();
  for (std::size_t i = 0; i < kMessages; ++i) answer(*active, fabric::kNoToken);
  EXPECT_TRUE(run_until([&] { return done == kMessages; }));
  EXPECT_TRUE(run_until([&] { return active.messages.size() == before + kMessages; }));
}

INSTANTIATE_TEST_SUITE_P(Seeds, SeededTraffic, ::testing::Range(1u, 13u));

}  // namespace
}  // namespace stag::testing
