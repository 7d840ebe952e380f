#include "rpc/far_task.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <vector>

#include "base/completion.h"
#include "testing/manual_loop.h"

namespace stag::rpc {
namespace {

using testing::ManualLoop;

// Two loops that the test turns, and what has happened.
struct TwoLoops : ::testing::Test {
  void drain() {
    for (int turn = 0; turn < 5; ++turn) {
      near.drain();
      far.drain();
    }
  }

  ManualLoop near, far;
  LoopBridge bridge{near, far};
  std::vector<std::string> happened;
};
using Happened = std::vector<std::string>;

// Ends when the test says so, or when it is cancelled.
class Awaited final : public FarTask {
 public:
  Awaited(LoopBridge& bridge, Happened& happened) : FarTask(bridge), happened_(happened) {}
  Completion<Ok> over;

 private:
  Task<Ok> run(CancelToken cancel) override {
    happened_.emplace_back("begun");
    const CancelCallback on_cancel(cancel, [this] {
      happened_.emplace_back("cancelled");
      if (!over.completed()) over.complete(Ok{});
    });
    co_await over;
    happened_.emplace_back("done");
    co_return Ok{};
  }
  Happened& happened_;
};

Task<void> await_and_tell(FarTask& task, CancelToken token, Happened& happened) {
  try {
    co_await task.ended(token);
    happened.emplace_back("ended");
  } catch (const std::exception& exception) {
    happened.emplace_back(exception.what());
  }
}

TEST_F(TwoLoops, run_a_FarTask_each_in_its_turn) {
  Awaited task(bridge, happened);
  detach(await_and_tell(task, {}, happened));
  near.drain();
  EXPECT_EQ(happened, Happened{});
  far.drain();
  EXPECT_EQ(happened, Happened{"begun"});
  task.over.complete(Ok{});
  EXPECT_EQ(happened, (Happened{"begun", "done"}));
  near.drain();
  EXPECT_EQ(happened, (Happened{"begun", "done", "ended"}));
}

TEST_F(TwoLoops, cancel_a_FarTask_that_far_has_not_begun) {
  CancelSource source;
  {
    Awaited task(bridge, happened);
    detach(await_and_tell(task, source, happened));
    source.cancel();
    near.drain();
    EXPECT_EQ(happened, Happened{});
    drain();
  }
  EXPECT_EQ(happened, (Happened{"begun", "cancelled", "done", "ended"}));
}

TEST_F(TwoLoops, cancel_a_FarTask_whose_token_was_cancelled_before) {
  CancelSource source;
  source.cancel();
  {
    Awaited task(bridge, happened);
    detach(await_and_tell(task, source, happened));
    drain();
  }
  EXPECT_EQ(happened, (Happened{"begun", "cancelled", "done", "ended"}));
}

TEST_F(TwoLoops, cancel_a_FarTask_in_progress) {
  CancelSource source;
  {
    Awaited task(bridge, happened);
    detach(await_and_tell(task, source, happened));
    drain();
    source.cancel();
    EXPECT_EQ(happened, Happened{"begun"});
    drain();
  }
  EXPECT_EQ(happened, (Happened{"begun", "cancelled", "done", "ended"}));
}

// The object is there until the cancellation has come: that is when near is told.
TEST_F(TwoLoops, let_a_FarTask_end_behind_a_cancellation_that_is_on_its_way) {
  CancelSource source;
  {
    Awaited task(bridge, happened);
    detach(await_and_tell(task, source, happened));
    drain();
    source.cancel();
    task.over.complete(Ok{});
    near.drain();
    EXPECT_EQ(happened, (Happened{"begun", "done"}));
    far.drain();
    EXPECT_EQ(happened, (Happened{"begun", "done"}));
    near.drain();
  }
  EXPECT_EQ(happened, (Happened{"begun", "done", "ended"}));
}

TEST_F(TwoLoops, send_no_cancellation_to_a_FarTask_whose_end_is_on_its_way) {
  CancelSource source;
  {
    Awaited task(bridge, happened);
    detach(await_and_tell(task, source, happened));
    drain();
    task.over.complete(Ok{});
    source.cancel();
    near.drain();
    EXPECT_EQ(happened, (Happened{"begun", "done", "ended"}));
  }
  drain();
  EXPECT_EQ(happened.size(), 3u);
}

TEST_F(TwoLoops, pass_the_exceptions_of_a_FarTask_on) {
  struct Throwing final : FarTask {
    explicit Throwing(LoopBridge& bridge) : FarTask(bridge) {}
    Task<Ok> run(CancelToken) override {
      throw std::runtime_error("no luck");
      co_return Ok{};
    }
  };
  Throwing task(bridge);
  detach(await_and_tell(task, {}, happened));
  drain();
  EXPECT_EQ(happened, Happened{"no luck"});
}

TEST_F(TwoLoops, keep_the_order_of_many_FarTasks_and_post_once_for_them) {
  struct Counting final : Loop {
    explicit Counting(ManualLoop& of) : loop(of) {}
    TimePoint now() const override { return loop.now(); }
    void post(Function function) override {
      ++posted;
      loop.post(std::move(function));
    }
    Timer after(Duration delay, Function function) override {
      return loop.after(delay, std::move(function));
    }
    void offload(Function work, Function done) override {
      loop.offload(std::move(work), std::move(done));
    }
    bool on_thread() const override { return true; }
    void cancel_timer(std::uint64_t) override {}
    ManualLoop& loop;
    int posted = 0;
  };
  struct Numbered final : FarTask {
    Numbered(LoopBridge& bridge, Happened& happened, int number)
        : FarTask(bridge), list(happened), name(std::to_string(number)) {}
    Task<Ok> run(CancelToken) override {
      list.push_back(name);
      co_return Ok{};
    }
    Happened& list;
    const std::string name;
  };
  Counting counted(far);
  LoopBridge way(near, counted);
  Numbered one(way, happened, 1), two(way, happened, 2), three(way, happened, 3);
  Happened ended;
  for (FarTask* const task :
       {static_cast<FarTask*>(&one), static_cast<FarTask*>(&two), static_cast<FarTask*>(&three)})
    detach(await_and_tell(*task, {}, ended));
  EXPECT_EQ(counted.posted, 1);
  drain();
  EXPECT_EQ(happened, (Happened{"1", "2", "3"}));
  EXPECT_EQ(ended, (Happened{"ended", "ended", "ended"}));
}

}  // namespace
}  // namespace stag::rpc
