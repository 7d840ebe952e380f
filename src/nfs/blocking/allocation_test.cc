// How Files end where memory runs out.
#include "testing/failing_new.h"
#include "testing/nfs/blocking_fixture.h"

namespace stag::nfs::blocking {
namespace {

TEST_F(BlockingFiles, end_also_where_there_is_no_memory_to_begin_with) {
  for (std::size_t failing = 1; failing <= 4; ++failing) {
    Outcome<Files> opening = opened(endpoint::Transport::Tcp, "/data", "version=4.1");
    ASSERT_TRUE(opening) << opening.error().sentence;
    std::optional<Files> files(*std::move(opening));
    EXPECT_EQ(clients().size(), 1u);
    testing::allocations_until_failure = failing;
    files.reset();
    EXPECT_EQ(testing::allocations_until_failure, 0u) << "the end takes memory";
    EXPECT_TRUE(clients().empty()) << "the session is given back";
  }
}

}  // namespace
}  // namespace stag::nfs::blocking
