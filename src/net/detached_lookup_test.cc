#include "net/detached_lookup.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "net/loop.h"

namespace stag::net {
namespace {

using namespace std::chrono_literals;

using Addresses = Result<std::vector<SocketAddress>, Reason>;

Addresses one_address() {
  return std::vector<SocketAddress>{*numeric_address({"127.0.0.1", 7})};
}

// A name service that answers when it may.
class Silent {
 public:
  ~Silent() {
    state_->may_answer.set_value();
    state_->answered.get_future().wait();
  }
  Lookup lookup() {
    return [state = state_] {
      state->asked.set_value();
      // Not for ever: then a test fails instead of standing still.
      state->may_answer.get_future().wait_for(20s);
      state->has_answered = true;
      state->answered.set_value();
      return one_address();
    };
  }
  void wait_until_asked() { state_->asked.get_future().wait(); }
  bool has_answered() const { return state_->has_answered; }

 private:
  struct State {
    std::promise<void> asked, may_answer, answered;
    std::atomic<bool> has_answered = false;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

Task<> look_up(EpollLoop* loop, Lookup lookup, Duration limit, CancelToken token,
               std::optional<Addresses>* result) {
  *result = co_await detached_lookup(*loop, std::move(lookup), limit, token);
  loop->stop();
}

void run(EpollLoop& loop, Lookup lookup, Duration limit, CancelToken token,
         std::optional<Addresses>* result) {
  loop.post([&] { detach(look_up(&loop, std::move(lookup), limit, token, result)); });
  loop.run();
}

struct NoEnd final : TaskEnd {
  void on_task_end() noexcept override {}
};

TEST(DetachedLookup, has_the_result) {
  EpollLoop loop;
  std::optional<Addresses> result;
  run(loop, &one_address, 1h, {}, &result);
  ASSERT_TRUE(result->ok());
  EXPECT_EQ((**result).front().port(), 7);
}

TEST(DetachedLookup, is_not_waited_for_when_its_time_is_over) {
  Silent service;
  std::optional<Addresses> result;
  {
    EpollLoop loop;
    run(loop, service.lookup(), 1ms, {}, &result);
    EXPECT_EQ(result->error(), Reason::ConnectTimedOut);
    service.wait_until_asked();
  }
  EXPECT_FALSE(service.has_answered());
}

TEST(DetachedLookup, is_not_waited_for_when_it_is_cancelled) {
  Silent service;
  std::optional<Addresses> result;
  {
    EpollLoop loop;
    CancelSource source;
    loop.post([&] { loop.post([&] { service.wait_until_asked(), source.cancel(); }); });
    run(loop, service.lookup(), 1h, source, &result);
    EXPECT_EQ(result->error(), Reason::Cancelled);
  }
  EXPECT_FALSE(service.has_answered());
}

TEST(DetachedLookup, ends_unheard_beside_a_loop_that_goes_on) {
  EpollLoop loop;
  std::optional<Addresses> result;
  {
    Silent service;
    run(loop, service.lookup(), 1ms, {}, &result);
  }
  EXPECT_EQ(result->error(), Reason::ConnectTimedOut);
  run(loop, &one_address, 1h, {}, &result);
  EXPECT_TRUE(result->ok());
}

TEST(DetachedLookup, may_be_under_way_when_the_loop_goes_first) {
  Silent service;
  std::optional<Addresses> result;
  std::optional<EpollLoop> loop(std::in_place);
  // Never destroyed: its timers would ask the loop.
  static TaskEnd* const nobody = new NoEnd;
  static Task<>* const unfinished = new Task<>(look_up(&*loop, service.lookup(), 1h, {}, &result));
  loop->post([] { unfinished->start(*nobody); });
  loop->post([&] { service.wait_until_asked(), loop->stop(); });
  loop->run();
  loop.reset();
  EXPECT_FALSE(service.has_answered());
}

TEST(DetachedLookup, says_that_there_was_no_memory) {
  EpollLoop loop;
  std::optional<Addresses> result;
  run(
      loop, []() -> Addresses { throw std::bad_alloc(); }, 1h, {}, &result);
  EXPECT_EQ(result->error(), Reason::OutOfMemory);
}

}  // namespace
}  // namespace stag::net
