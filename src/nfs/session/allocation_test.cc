// What a client keeps of its opens where memory runs out.
#include <gtest/gtest.h>

#include <new>
#include <optional>

#include "nfs/session/opens.h"
#include "testing/failing_new.h"

namespace stag::nfs::session {
namespace {

v4::stateid4 stateid(std::uint8_t which) {
  v4::stateid4 made;
  made.other[0] = std::byte{which};
  return made;
}

// For as many allocations as there are: what failed is done again.
TEST(OpensMemory, running_out_loses_no_open) {
  for (const bool restarted : {false, true}) {
    bool failed = true;
    for (std::size_t allocations = 1; failed; ++allocations) {
      Opens opens;
      opens.add(7, v4::nfs_fh4(bytes_of("file")), v4::OPEN4_SHARE_ACCESS_BOTH, stateid(1));
      if (restarted) opens.on_restart();
      const auto refuse = [&] {
        if (!restarted) return opens.on_bad_stateid(7, stateid(1));
        const std::optional<Opens::Claim> claim = opens.next_reclaim();
        if (claim) opens.on_refused(*claim);
      };
      failed = false;
      testing::allocations_until_failure = allocations;
      try {
        refuse();
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      testing::allocations_until_failure = 0;
      if (failed) refuse();
      std::optional<Opens::Claim> claim = opens.next_reopen();
      for (; claim && claim->kind == Opens::Claim::Kind::Free; claim = opens.next_reopen())
        opens.on_claimed(*claim, {});
      ASSERT_TRUE(claim && claim->kind == Opens::Claim::Kind::Reopen) << allocations;
      opens.on_claimed(*claim, stateid(9));
      EXPECT_EQ(opens.stateid(7), stateid(9));
    }
  }
}

}  // namespace
}  // namespace stag::nfs::session
