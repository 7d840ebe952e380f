// A captured fabric is as good as the one behind it, and tells what goes over it.
#include "fabric/capture/captured_fabric.h"

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/sim/sim_fabric.h"
#include "testing/fabric_contract.h"
#include "testing/verbs_harness.h"

namespace stag::testing {
namespace {

class Kept final : public fabric::capture::Recorder {
 public:
  void take(Bytes frame) override { frames.emplace_back(text_of(frame)); }
  void lose() noexcept override { ++lost; }
  std::vector<std::string> frames;
  std::size_t lost = 0;
};

// In how many frames `data` is.
auto seen(const Kept& kept, std::string_view data) {
  return std::ranges::count_if(
      kept.frames, [&](const std::string& frame) { return frame.find(data) != frame.npos; });
}

// Never has memory for a frame.
class Poor final : public fabric::capture::Recorder {
 public:
  void take(Bytes) override { throw std::bad_alloc(); }
  void lose() noexcept override { ++lost; }
  std::size_t lost = 0;
};

class CapturedHarness final : public FabricHarness {
 public:
  explicit CapturedHarness(std::shared_ptr<fabric::capture::Recorder> recorder = nullptr)
      : tap(std::make_shared<fabric::capture::Tap>()),
        fabric_(fabric::capture::captured(
            std::make_unique<fabric::SimFabric>(loop_, fabric::SimOptions()), tap)) {
    if (recorder != nullptr) tap->add(std::move(recorder));
  }

  Loop& loop() override { return loop_; }
  fabric::Fabric& fabric() override { return *fabric_; }
  Address any_address() override { return {"server", 0}; }
  bool run_until(const std::function<bool()>& predicate) override {
    return loop_.run_until(predicate);
  }
  void settle() override { loop_.run_until_idle(); }

  const std::shared_ptr<fabric::capture::Tap> tap;

 private:
  fabric::SimLoop loop_{std::nullopt};
  std::unique_ptr<fabric::Fabric> fabric_;
};

template <class Recorder>
std::unique_ptr<FabricHarness> make() {
  return std::make_unique<CapturedHarness>(std::make_shared<Recorder>());
}
std::unique_ptr<FabricHarness> make_at_rest() {
  return std::make_unique<CapturedHarness>();
}

// Over a device, whose peers' bytes nobody hears of.
class CapturedVerbsHarness final : private StubHolder, public EpollHarness {
 public:
  explicit CapturedVerbsHarness(const fabric::stub::StubOptions& device,
                                std::shared_ptr<Kept> kept = std::make_shared<Kept>())
      : StubHolder({device}),
        EpollHarness("127.0.0.1"),
        iwarp_(device.iwarp),
        fabric_(fabric::capture::captured(
            std::make_unique<fabric::VerbsFabric>(loop(), over(network)), tap_)) {
    tap_->add(std::move(kept));
  }

  fabric::Fabric& fabric() override { return *fabric_; }
  bool counts_the_peers_accesses() const override { return false; }
  bool tells_read_depths_apart() const override { return !iwarp_; }

 private:
  const bool iwarp_;
  const std::shared_ptr<fabric::capture::Tap> tap_ = std::make_shared<fabric::capture::Tap>();
  std::unique_ptr<fabric::Fabric> fabric_;
};

FabricFactory captured_device(std::string name, const fabric::stub::StubOptions& device) {
  return {std::move(name), [device] { return std::make_unique<CapturedVerbsHarness>(device); }};
}

INSTANTIATE_TEST_SUITE_P(CapturedVerbs, FabricContract,
                         ::testing::Values(captured_device("rxe", fabric::stub::rxe_like()),
                                           captured_device("siw", fabric::stub::siw_like())),
                         [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(Captured, FabricContract,
                         ::testing::Values(FabricFactory{"captured", make<Kept>},
                                           FabricFactory{"captured_without_memory", make<Poor>},
                                           FabricFactory{"captured_by_nobody", make_at_rest}),
                         [](const auto& tested) { return tested.param.name; });

class CapturedReads : public FabricTest {
 protected:
  CapturedReads() : CapturedReads(std::make_shared<Kept>()) {}
  explicit CapturedReads(std::shared_ptr<Kept> kept)
      : FabricTest(std::make_unique<CapturedHarness>(kept)), kept_(std::move(kept)) {}

  auto seen(std::string_view data) const { return testing::seen(*kept_, data); }

  const std::shared_ptr<Kept> kept_;
};

TEST_F(CapturedReads, have_each_its_own_data_where_they_share_a_token) {
  join_and_greet();
  std::vector<std::byte> memory = byte_vector("the first half, the second half");
  std::vector<std::byte> sink = byte_vector("not to be seen! not to be seen!");
  const auto source = active->expose_source(memory);
  ASSERT_TRUE(source.ok());
  const auto half = [&](std::size_t at) { return MutableBytes(sink).subspan(at, 15); };
  passive->read(part(*source, 0, 15), half(0), 0, 1);
  passive->read(part(*source, 16, 15), half(16), 0, 1);
  ASSERT_TRUE(run_until([&] { return passive.outcomes.size() == 2; }));
  EXPECT_EQ(seen("the first half,"), 1);
  EXPECT_EQ(seen("the second half"), 1);
  EXPECT_EQ(seen("not to be seen!"), 0);
}

TEST_F(CapturedReads, are_not_shown_when_one_of_their_token_failed) {
  join_and_greet();
  std::vector<std::byte> memory = byte_vector("the first half,");
  std::vector<std::byte> sink = byte_vector("not to be seen! not to be seen!");
  const auto source = active->expose_source(memory);
  ASSERT_TRUE(source.ok());
  passive->read(*source, MutableBytes(sink).first(15), 0, 1);
  passive->read({source->handle ^ 1, 15, source->offset}, MutableBytes(sink).last(15), 0, 1);
  ASSERT_TRUE(run_until([&] { return passive.outcomes.size() == 2; }));
  EXPECT_EQ(seen("the first half,"), 0);
  EXPECT_EQ(seen("not to be seen!"), 0);
}

class CapturedDevice : public FabricTest {
 protected:
  CapturedDevice() : CapturedDevice(std::make_shared<Kept>()) {}
  explicit CapturedDevice(std::shared_ptr<Kept> kept)
      : FabricTest(std::make_unique<CapturedVerbsHarness>(fabric::stub::rxe_like(), kept)),
        kept_(std::move(kept)) {}

  const std::shared_ptr<Kept> kept_;
};

TEST_F(CapturedDevice, shows_messages_at_both_ends_and_writes_and_reads_where_they_are_asked_for) {
  join_and_greet();
  std::vector<std::byte> memory = byte_vector("this is read"), sink(12);
  std::vector<std::byte> target(15);
  const auto source = active->expose_source(memory);
  const auto place = active->expose_sink(target);
  ASSERT_TRUE(source.ok() && place.ok());
  passive->write(Rope::copy_of(bytes_of("this is written")), *place, 0, fabric::kNoToken);
  passive->read(*source, sink, 0, 1);
  active->send(Rope::copy_of(bytes_of("this is sent")), std::nullopt, 0, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return !passive.outcomes.empty() && target.back() != std::byte{}; }));
  settle();
  EXPECT_EQ(seen(*kept_, "this is sent"), 2);
  EXPECT_EQ(seen(*kept_, "this is written"), 1);
  EXPECT_EQ(seen(*kept_, "this is read"), 1);
}

// Frames of a connection that was there before.
class CaptureLater : public FabricTest {
 protected:
  CaptureLater() : CaptureLater(std::make_unique<CapturedHarness>()) {}
  explicit CaptureLater(std::unique_ptr<CapturedHarness> harness)
      : FabricTest(std::move(harness)), tap_(*static_cast<CapturedHarness&>(*this->harness).tap) {}

  void say(std::string_view text) {
    active->send(Rope::copy_of(bytes_of(text)), std::nullopt, 0, fabric::kNoToken);
    settle();
  }

  fabric::capture::Tap& tap_;
};

TEST_F(CaptureLater, shows_the_beginning_of_a_connection_that_was_there_before) {
  join_and_greet();
  say("before it");
  const auto kept = std::make_shared<Kept>();
  tap_.add(kept);
  say("while it");
  tap_.remove(*kept);
  say("after it");
  EXPECT_EQ(kept->frames.size(), 8u) << "three messages and a Send, as both ends show them";
  EXPECT_EQ(seen(*kept, "while it"), 2);
  EXPECT_EQ(seen(*kept, "before it") + seen(*kept, "after it"), 0);
}

TEST_F(CaptureLater, shows_each_capture_what_came_while_it_was_there) {
  join_and_greet();
  const auto first = std::make_shared<Kept>(), second = std::make_shared<Kept>();
  tap_.add(first);
  say("to the first");
  tap_.add(second);
  say("to both");
  tap_.remove(*first);
  say("to the second");
  EXPECT_EQ(first->frames.size(), 10u) << "one beginning as each end shows it";
  EXPECT_EQ(second->frames.size(), 10u);
  EXPECT_EQ(seen(*first, "to the second") + seen(*second, "to the first"), 0);
}

TEST_F(CaptureLater, shows_no_answer_to_a_read_that_was_asked_for_before) {
  join_and_greet();
  std::vector<std::byte> memory = byte_vector("the first half, the second half");
  std::vector<std::byte> sink = byte_vector("not to be seen! not to be seen!");
  const auto source = active->expose_source(memory);
  ASSERT_TRUE(source.ok());
  const auto half = [&](std::size_t at) { return MutableBytes(sink).subspan(at, 15); };
  passive->read(part(*source, 0, 15), half(0), 0, 1);
  const auto kept = std::make_shared<Kept>();
  tap_.add(kept);
  passive->read(part(*source, 16, 15), half(16), 0, 1);
  ASSERT_TRUE(run_until([&] { return passive.outcomes.size() == 2; }));
  EXPECT_EQ(seen(*kept, "the first half,"), 0);
  EXPECT_EQ(seen(*kept, "the second half"), 1);
  EXPECT_EQ(seen(*kept, "not to be seen!"), 0);
}

TEST_F(CaptureLater, leaves_the_tokens_of_reads_that_end_after_it) {
  join_and_greet();
  std::vector<std::byte> memory = byte_vector("read"), sink(4);
  const auto source = active->expose_source(memory);
  ASSERT_TRUE(source.ok());
  const auto kept = std::make_shared<Kept>();
  tap_.add(kept);
  passive->read(*source, sink, 0, 7);
  tap_.remove(*kept);
  ASSERT_TRUE(run_until([&] { return passive.outcomes.size() == 1; }));
  EXPECT_EQ(passive.outcomes.begin()->first, 7u);
  EXPECT_EQ(text_of(sink), "read");
}

TEST(CaptureOfOnePeer, has_no_frames_of_others) {
  fabric::capture::Tap tap;
  const auto kept = std::make_shared<Kept>();
  tap.add(kept, IpNetwork::parse("192.0.2.0/24"));
  tap.take(bytes_of("a"), *IpAddress::parse("192.0.2.7"), 0);
  tap.take(bytes_of("b"), *IpAddress::parse("198.51.100.7"), 0);
  EXPECT_EQ(kept->frames, std::vector<std::string>{"a"});
}

TEST(CaptureWithoutMemory, counts_what_it_loses) {
  const auto poor = std::make_shared<Poor>();
  CapturedHarness harness(poor);
  TestAcceptor acceptor;
  const auto listener = harness.fabric().listen(harness.any_address(), {}, acceptor);
  ASSERT_TRUE(listener.ok());
  auto made = harness.run(harness.fabric().connect((*listener)->local_address(), {}, {}));
  ASSERT_TRUE(made && made->ok());
  EXPECT_EQ(poor->lost, 6u) << "the three messages of the beginning, as both ends show it";
  (**made)->send(Rope::borrow(bytes_of("hello")), std::nullopt, 0, fabric::kNoToken);
  EXPECT_EQ(poor->lost, 7u);
}

}  // namespace
}  // namespace stag::testing
