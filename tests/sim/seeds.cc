#include "seeds.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

// Every sanitizer has it; other builds do not.
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*)());

namespace stag::testing {
namespace {

std::string program;
std::uint64_t first_seed = 1;
std::uint64_t seed_count = 1000;
// Of the run that goes on: ready for a process that may do nothing any more but write.
std::string way_to_run_again;

void tell_way_to_run_again() {
  const auto written = ::write(STDERR_FILENO, way_to_run_again.data(), way_to_run_again.size());
  static_cast<void>(written);
}

// What a failing check or a bad access does not get to say.
void tell_when_the_process_dies() {
  const auto tell = [](int) { tell_way_to_run_again(); };
  struct sigaction action {};
  action.sa_handler = tell;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGABRT, &action, nullptr);
  if (__sanitizer_set_death_callback != nullptr)
    return __sanitizer_set_death_callback(tell_way_to_run_again);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) ::sigaction(fault, &action, nullptr);
}

std::uint64_t number_above_0(const char* name, std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number != 0) return number;
  std::fprintf(stderr, "%s is not a number above 0\n", name);
  std::exit(2);
}

}  // namespace

void choose_seeds(int argc, char** argv) {
  program = argv[0];
  if (const char* count = std::getenv("STAG_SIM_SEEDS"))
    seed_count = number_above_0("STAG_SIM_SEEDS", count);
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--seed") continue;
    first_seed = number_above_0("--seed", i + 1 < argc ? argv[i + 1] : "");
    seed_count = 1;
  }
  tell_when_the_process_dies();
}

void for_each_seed(const std::function<void(std::uint64_t seed)>& run) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  for (std::uint64_t seed = first_seed; seed < first_seed + seed_count; ++seed) {
    const std::string number = std::to_string(seed);
    way_to_run_again = "seed " + number + " failed; again: " + program +
                       " --gtest_filter=" + test->test_suite_name() + '.' + test->name() +
                       " --seed " + number + '\n';
    run(seed);
    if (!::testing::Test::HasFailure()) continue;
    tell_way_to_run_again();
    break;
  }
  way_to_run_again.clear();
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
