// The group that may look at the control socket, in a name service that the test stands in for.
#include "cli/serve/control.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <latch>
#include <stop_token>
#include <thread>

namespace {

constexpr const char* kLarge = "a-group-with-many-members";
constexpr const char* kUnsaid = "a-group-of-which-nothing-can-be-said";
constexpr const char* kSilent = "a-group-of-which-nothing-is-said";
constexpr std::size_t kEntry = 3 << 20;  // bytes of the large one

std::atomic<int> silent_lookups = 0;
std::latch may_answer{1};

}  // namespace

// The whole program's.
extern "C" int getgrnam_r(const char* name, group* found, char* memory, std::size_t size,
                          group** result) {
  *result = nullptr;
  if (std::strcmp(name, kUnsaid) == 0) return EIO;
  if (std::strcmp(name, kSilent) == 0) {
    ++silent_lookups;
    silent_lookups.notify_all();
    may_answer.wait();
    return EIO;
  }
  if (std::strcmp(name, kLarge) != 0) {
    const auto system = reinterpret_cast<decltype(&getgrnam_r)>(dlsym(RTLD_NEXT, "getgrnam_r"));
    return system(name, found, memory, size, result);
  }
  if (size < kEntry) return ERANGE;
  found->gr_gid = getegid();
  *result = found;
  return 0;
}

namespace stag::cli {
namespace {

std::string fault_of(const std::string& group) {
  const auto checked = ControlSettings{.path = {}, .group = group}.check();
  return checked ? std::string() : checked.error();
}

TEST(ControlGroup, may_have_more_members_than_fit_a_buffer) {
  EXPECT_EQ(fault_of(kLarge), "");
}

TEST(ControlGroup, is_not_told_as_none_when_nothing_can_be_said_of_it_now) {
  EXPECT_THAT(fault_of(kUnsaid), ::testing::HasSubstr("cannot say whether there is a group"));
  EXPECT_THAT(fault_of(kUnsaid), ::testing::HasSubstr(std::strerror(EIO)));
  EXPECT_EQ(fault_of("no-such-group"), "--control-group: there is no group 'no-such-group'");
}

TEST(ControlGroup, keeps_no_reload_waiting_for_a_name_service_that_hangs) {
  using namespace std::chrono_literals;
  const ControlSettings none, silent{.path = {}, .group = kSilent};
  std::stop_source ending;
  EXPECT_TRUE(silent.check_beside(silent, 1ms, ending.get_token()).ok()) << "it is as it was";
  EXPECT_EQ(silent_lookups, 0);
  const auto late = silent.check_beside(none, 1ms, ending.get_token());
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error(), "--control-group: the name service does not answer");
  silent_lookups.wait(0);
  std::thread end([&] {
    silent_lookups.wait(1);
    ending.request_stop();
  });
  EXPECT_FALSE(silent.check_beside(none, 1h, ending.get_token()).ok());
  end.join();
  EXPECT_EQ(silent_lookups, 2);
  may_answer.count_down();
  const ControlSettings large{.path = {}, .group = kLarge};
  EXPECT_TRUE(large.check_beside(none, 1h, {}).ok());
  const ControlSettings unsaid{.path = {}, .group = kUnsaid};
  const auto failed = unsaid.check_beside(none, 1h, {});
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error(), ::testing::HasSubstr("cannot say whether there is a group"));
}

}  // namespace
}  // namespace stag::cli
