#include "fuse/invalidations.h"

#include <gtest/gtest.h>

#include <list>
#include <vector>

#include "base/task_group.h"
#include "testing/manual_loop.h"

namespace stag::fuse {
namespace {

// A kernel that has locked pages which it is told to drop.
class StuckThreads final : public Executor {
 public:
  bool submit(Job&& job) override {
    if (full) return false;
    jobs.push_back(std::move(job));
    return true;
  }
  void end_all() {
    for (Job& job : std::exchange(jobs, {})) {
      job.work();
      job.deliver(job.context, std::move(job.done));
    }
  }
  std::list<Job> jobs;
  bool full = false;
};

struct Kernel {
  static constexpr std::uint64_t kFile = 7, kOther = 8;
  struct Told {
    std::uint64_t number = 0;
    std::int64_t from = 0;
    friend bool operator==(const Told&, const Told&) = default;
  };

  Kernel() {
    all.set_tell(
        [this](std::uint64_t number, std::int64_t from) {
          told.push_back({number, from});
        },
        &threads);
  }
  void drop(std::uint64_t number) { tasks.add(dropped(number)); }
  Task<void> dropped(std::uint64_t number) {
    const bool told = co_await all.pages(number, 100);
    if (!told) ++untold;
    ++ended;
  }
  void go_on() {
    threads.end_all();
    loop.drain();
  }

  testing::ManualLoop loop;
  StuckThreads threads;
  Invalidations all{loop};
  std::vector<Told> told;
  int ended = 0;
  int untold = 0;
  TaskGroup tasks;
};

TEST(Invalidations, wait_for_pages_that_are_locked_before_a_thread_stands_still) {
  Kernel kernel;
  std::optional<Invalidations::Lock> before, later, other;
  before.emplace(kernel.all, kernel.kFile, [] {});
  other.emplace(kernel.all, kernel.kOther, [] {});
  kernel.drop(kernel.kFile);
  later.emplace(kernel.all, kernel.kFile, [] {});
  EXPECT_TRUE(kernel.threads.jobs.empty()) << "nobody could unmount until the server answers";
  before->end();
  EXPECT_EQ(kernel.threads.jobs.size(), 1u) << "what is read later is not what was there before";
  EXPECT_EQ(kernel.ended, 0);
  kernel.go_on();
  EXPECT_EQ(kernel.ended, 1);
  EXPECT_EQ(kernel.told, (std::vector<Kernel::Told>{{kernel.kFile, 100}}));
}

TEST(Invalidations, that_find_no_thread_leave_it_to_the_caller_to_tell_of_the_attributes) {
  Kernel kernel;
  kernel.threads.full = true;
  kernel.drop(kernel.kFile);
  EXPECT_EQ(kernel.ended, 1);
  EXPECT_EQ(kernel.untold, 1);
  EXPECT_TRUE(kernel.told.empty()) << "the caller may have been given up";
  kernel.all.attributes(kernel.kFile);
  EXPECT_EQ(kernel.told,
            (std::vector<Kernel::Told>{{kernel.kFile, Invalidations::kAttributesOnly}}));
}

// The loop would wait behind who unmounts, and that one for the thread that drops pages.
TEST(Invalidations, tell_of_attributes_that_nobody_waits_for_on_no_loop) {
  Kernel kernel;
  kernel.drop(kernel.kFile);
  kernel.tasks.add(kernel.all.attributes_left(kernel.kOther));
  EXPECT_TRUE(kernel.told.empty());
  EXPECT_EQ(kernel.threads.jobs.size(), 2u);
  int stopped = 0;
  kernel.all.stop([&] { ++stopped; });
  EXPECT_EQ(stopped, 0) << "a thread uses the device";
  kernel.go_on();
  EXPECT_EQ(stopped, 1);
  EXPECT_EQ(kernel.told, (std::vector<Kernel::Told>{
                             {kernel.kFile, 100},
                             {kernel.kOther, Invalidations::kAttributesOnly},
                         }));
  kernel.tasks.add(kernel.all.attributes_left(kernel.kOther));
  EXPECT_TRUE(kernel.threads.jobs.empty());
}

TEST(Invalidations,
     have_ended_before_the_mount_does_and_are_not_waited_for_until_the_server_answers) {
  Kernel kernel;
  kernel.drop(kernel.kFile);
  int given_up = 0, stopped = 0;
  const Invalidations::Lock reading(kernel.all, kernel.kFile, [&] { ++given_up; });
  const Invalidations::Lock other(kernel.all, kernel.kOther, [&] { ++given_up; });
  kernel.drop(kernel.kOther);
  kernel.all.stop([&] { ++stopped; });
  EXPECT_EQ(given_up, 2);
  EXPECT_EQ(stopped, 0) << "a thread uses the device";
  const Invalidations::Lock later(kernel.all, kernel.kFile, [&] { ++given_up; });
  EXPECT_EQ(given_up, 3);
  kernel.go_on();
  EXPECT_EQ(stopped, 1);
  kernel.drop(kernel.kFile);
  EXPECT_TRUE(kernel.threads.jobs.empty());
}

// One program has both mapped, and the server does not answer for the first.
TEST(Invalidations, go_on_for_other_files_where_one_waits_for_the_server) {
  Kernel kernel;
  std::optional<Invalidations::Lock> first;
  first.emplace(kernel.all, kernel.kFile, [] {});
  kernel.tasks.add(kernel.all.pages_of({kernel.kFile, kernel.kOther}));
  EXPECT_EQ(kernel.threads.jobs.size(), 1u);
  kernel.go_on();
  EXPECT_EQ(kernel.told, (std::vector<Kernel::Told>{{kernel.kOther, 0}}));
  EXPECT_EQ(kernel.tasks.running(), 1u);
  first->end();
  kernel.go_on();
  EXPECT_EQ(kernel.told, (std::vector<Kernel::Told>{{kernel.kOther, 0}, {kernel.kFile, 0}}));
  EXPECT_EQ(kernel.tasks.running(), 0u);
}

// A thread stands still for the first.
TEST(Invalidations, have_a_thread_each_for_several_files) {
  Kernel kernel;
  kernel.tasks.add(kernel.all.pages_of({kernel.kFile, kernel.kOther}));
  EXPECT_EQ(kernel.threads.jobs.size(), 2u);
  kernel.go_on();
  EXPECT_EQ(kernel.tasks.running(), 0u);
}

TEST(Invalidations, that_are_none_let_what_is_read_go_on_until_the_mount_has_ended) {
  Kernel kernel;
  int given_up = 0, stopped = 0;
  const Invalidations::Lock reading(kernel.all, kernel.kFile, [&] { ++given_up; });
  kernel.all.stop([&] { ++stopped; });
  EXPECT_EQ(given_up, 0);
  EXPECT_EQ(stopped, 1);
}

}  // namespace
}  // namespace stag::fuse
