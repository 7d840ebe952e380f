#include "seeds.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace stag::testing {
namespace {

std::string program;
std::uint64_t first_seed = 1;
std::uint64_t seed_count = 1000;

}  // namespace

void choose_seeds(int argc, char** argv) {
  program = argv[0];
  if (const char* count = std::getenv("STAG_SIM_SEEDS"))
    seed_count = std::strtoull(count, nullptr, 10);
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) != "--seed") continue;
    first_seed = std::strtoull(argv[i + 1], nullptr, 10);
    seed_count = 1;
  }
}

void for_each_seed(const std::function<void(std::uint64_t seed)>& run) {
  for (std::uint64_t seed = first_seed; seed < first_seed + seed_count; ++seed) {
    run(seed);
    if (!::testing::Test::HasFailure()) continue;
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::printf("seed %llu failed; again: %s --gtest_filter=%s.%s --seed %llu\n",
                static_cast<unsigned long long>(seed), program.c_str(), test->test_suite_name(),
                test->name(), static_cast<unsigned long long>(seed));
    return;
  }
}

fabric::Faults random_faults(fabric::Random& random) {
  fabric::Faults faults;
  faults.max_delay = std::chrono::microseconds(random.below(3) * random.below(2000));
  faults.reorder_flows = random.chance(700);
  if (random.chance(500)) faults.pending_revocation_permille = 300;
  if (random.chance(300)) faults.kill_permille = static_cast<std::uint32_t>(random.below(20));
  if (random.chance(400)) faults.kill_at_step = 1 + random.below(400);
  if (random.chance(200)) faults.kill_after = std::chrono::milliseconds(random.below(100));
  if (random.chance(200)) faults.fail_send = 1 + random.below(100);
  if (random.chance(200)) faults.fail_write = 1 + random.below(50);
  if (random.chance(200)) faults.fail_read = 1 + random.below(50);
  if (random.chance(200)) faults.fail_expose = 1 + random.below(50);
  if (random.chance(100)) faults.fail_expose_permille = 100;
  if (random.chance(200)) faults.lose_ack = 1 + random.below(100);
  if (random.chance(200)) faults.refuse_connects = static_cast<std::uint32_t>(random.below(3));
  if (random.chance(200)) faults.lose_connects = static_cast<std::uint32_t>(random.below(2));
  return faults;
}

}  // namespace stag::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  stag::testing::choose_seeds(argc, argv);
  return RUN_ALL_TESTS();
}
