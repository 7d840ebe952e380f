// The group that may look at the control socket, in a name service that the test stands in for.
#include "cli/serve/control.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace {

constexpr const char* kLarge = "a-group-with-many-members";
constexpr const char* kUnsaid = "a-group-of-which-nothing-can-be-said";
constexpr std::size_t kEntry = 3 << 20;  // bytes of the large one

}  // namespace

// The whole program's.
extern "C" int getgrnam_r(const char* name, group* found, char* memory, std::size_t size,
                          group** result) {
  *result = nullptr;
  if (std::strcmp(name, kUnsaid) == 0) return EIO;
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

TEST(ControlGroup, of_which_nothing_can_be_said_now_is_not_told_as_none) {
  EXPECT_THAT(fault_of(kUnsaid), ::testing::HasSubstr("cannot say whether there is a group"));
  EXPECT_THAT(fault_of(kUnsaid), ::testing::HasSubstr(std::strerror(EIO)));
  EXPECT_EQ(fault_of("no-such-group"), "--control-group: there is no group 'no-such-group'");
}

}  // namespace
}  // namespace stag::cli
