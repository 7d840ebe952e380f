// A captured fabric is as good as the one behind it, and tells what goes over it.
#include "fabric/capture/captured_fabric.h"

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/sim/sim_fabric.h"
#include "testing/fabric_contract.h"

namespace stag::testing {
namespace {

class Kept final : public fabric::capture::Recorder {
 public:
  void take(Bytes frame) override { frames.emplace_back(text_of(frame)); }
  void lose() noexcept override { ++lost; }
  std::vector<std::string> frames;
  std::size_t lost = 0;
};

// Never has memory for a frame.
class Poor final : public fabric::capture::Recorder {
 public:
  void take(Bytes) override { throw std::bad_alloc(); }
  void lose() noexcept override { ++lost; }
  std::size_t lost = 0;
};

class CapturedHarness final : public FabricHarness {
 public:
  explicit CapturedHarness(std::shared_ptr<fabric::capture::Recorder> recorder)
      : fabric_(fabric::capture::captured(
            std::make_unique<fabric::SimFabric>(loop_, fabric::SimOptions()),
            std::move(recorder))) {}

  Loop& loop() override { return loop_; }
  fabric::Fabric& fabric() override { return *fabric_; }
  Address any_address() override { return {"server", 0}; }
  bool run_until(const std::function<bool()>& predicate) override {
    return loop_.run_until(predicate);
  }
  void settle() override { loop_.run_until_idle(); }

 private:
  fabric::SimLoop loop_{std::nullopt};
  std::unique_ptr<fabric::Fabric> fabric_;
};

template <class Recorder>
std::unique_ptr<FabricHarness> make() {
  return std::make_unique<CapturedHarness>(std::make_shared<Recorder>());
}

INSTANTIATE_TEST_SUITE_P(Captured, FabricContract,
                         ::testing::Values(FabricFactory{"captured", make<Kept>},
                                           FabricFactory{"captured_without_memory", make<Poor>}),
                         [](const auto& tested) { return tested.param.name; });

class CapturedReads : public FabricTest {
 protected:
  CapturedReads() : CapturedReads(std::make_shared<Kept>()) {}
  explicit CapturedReads(std::shared_ptr<Kept> kept)
      : FabricTest(std::make_unique<CapturedHarness>(kept)), kept_(std::move(kept)) {}

  // In how many frames `data` is.
  auto seen(std::string_view data) const {
    return std::count_if(kept_->frames.begin(), kept_->frames.end(), [&](const std::string& frame) {
      return frame.find(data) != std::string::npos;
    });
  }

  const std::shared_ptr<Kept> kept_;
};

TEST_F(CapturedReads, of_one_token_have_each_its_own_data) {
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

TEST(CaptureWithoutMemory, counts_what_it_loses) {
  const auto poor = std::make_shared<Poor>();
  CapturedHarness harness(poor);
  TestAcceptor acceptor;
  const auto listener = harness.fabric().listen(harness.any_address(), {}, acceptor);
  ASSERT_TRUE(listener.ok());
  auto made = harness.run(harness.fabric().connect((*listener)->local_address(), {}, {}));
  ASSERT_TRUE(made && made->ok());
  EXPECT_EQ(poor->lost, 2u) << "the beginning, as both ends show it";
  (**made)->send(Rope::borrow(bytes_of("hello")), std::nullopt, 0, fabric::kNoToken);
  EXPECT_EQ(poor->lost, 3u);
}

}  // namespace
}  // namespace stag::testing
