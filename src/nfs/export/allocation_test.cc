// What a call in steady state takes from the heap for its user's groups: nothing. The whole
// program's operator new counts.
#include <gtest/gtest.h>

#include <numeric>

#include "nfs/export/exports.h"
#include "nfs/export/user_groups.h"
#include "testing/counted_new.h"
#include "testing/held_executor.h"
#include "testing/manual_loop.h"

namespace stag::nfs {
namespace {

class ManyGroups final : public GroupService {
 public:
  Result<std::vector<std::uint32_t>, NoUser> groups_of(std::uint32_t) override {
    std::vector<std::uint32_t> groups(100);
    std::iota(groups.begin(), groups.end(), 1);
    return groups;
  }
};

TEST(GroupsAllocation, allocate_nothing_in_steady_state_however_many_they_are) {
  testing::ManualLoop loop;
  UserGroups groups(std::make_shared<ManyGroups>(), std::make_shared<testing::HeldExecutor>(true),
                    [&] { return loop.now(); });
  const UserGroups::Asker asker{loop, "192.0.2.1"};
  ASSERT_NE(*loop.run(groups.of(1000, asker)), nullptr);
  ASSERT_NE(groups.known(1000, asker), nullptr);
  const ExportOptions options;
  const std::size_t before = testing::heap_allocations;
  for (int i = 0; i < 1000; ++i) {
    rpc::Caller caller;
    caller.flavor = oncrpc::AuthFlavor::AUTH_SYS;
    caller.uid = 1000;
    caller.groups = groups.known(1000, asker);
    const vfs::Credentials who = acting_as(options, caller), copy = who;
    ASSERT_TRUE(copy.in_group(100));
  }
  EXPECT_EQ(testing::heap_allocations, before);
}

}  // namespace
}  // namespace stag::nfs
