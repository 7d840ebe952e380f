#include "cli/observe/process_usage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace stag::cli {
namespace {

TEST(ProcessUsage, counts_descriptors_as_they_come_and_go) {
  const ProcessUsageSource source;
  const std::uint64_t before = source.usage().open_files;
  {
    const UniqueFd more(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
    EXPECT_EQ(source.usage().open_files, before + 1);
  }
  EXPECT_EQ(source.usage().open_files, before);
}

TEST(ProcessUsage, is_known_where_there_is_no_descriptor_left) {
  const ProcessUsageSource source;
  const std::uint64_t before = source.usage().open_files;
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit less = limit;
  less.rlim_cur = static_cast<rlim_t>(UniqueFd(fcntl(STDIN_FILENO, F_DUPFD, 0)).fd());
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &less), 0);
  const ProcessUsage usage = source.usage();
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(usage.open_files, before);
  EXPECT_EQ(usage.max_files, less.rlim_cur);
  EXPECT_GT(usage.memory_bytes, 0u);
}

}  // namespace
}  // namespace stag::cli
