// What needs memory of which any one allocation fails: a reply, whose request is refused then; a
// placement; the end of a client with calls in progress.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <semaphore>
#include <thread>
#include <vector>

#include "c/placing.h"
#include "c/stag.h"
#include "testing/failing_new.h"

namespace stag::c {
namespace {

constexpr stag_procedure kGet{sizeof kGet, 1, STAG_RESULTS_BULK, 0, 4};
constexpr stag_program kProgram{sizeof kProgram, 0x2000'00af, 1, &kGet, 1};

// A reply on a thread of its own, which keeps no memory of earlier ones, whose `n`th allocation
// fails; what the client is told of it.
class Reply {
 public:
  Reply(std::size_t n, bool lends) : n_(n), lends_(lends) {}

  // Whether there was an `n`th allocation.
  bool make() {
    stag_error error{sizeof error, 0, 0, {}, {}};
    stag_server* server = nullptr;
    stag_client* client = nullptr;
    EXPECT_EQ(stag_serve("127.0.0.1", 0, &kProgram, on_request, this, nullptr, &server, &error), 0);
    EXPECT_EQ(
        stag_connect("127.0.0.1", stag_server_port(server), &kProgram, nullptr, &client, &error),
        0);
    std::thread replier([this] { answer(arrived_.get_future().get()); });
    std::array<char, 4> word{}, bulk{};
    stag_call call{};
    call.size = sizeof call;
    call.procedure = kGet.number;
    call.results = word.data();
    call.results_capacity = word.size();
    call.results_bulk = bulk.data();
    call.results_bulk_capacity = bulk.size();
    const int status = stag_call_wait(client, &call, &error);
    replier.join();
    EXPECT_EQ(status, failed_ ? STAG_REFUSED : STAG_OK) << error.text;
    EXPECT_EQ(error.accept_stat, failed_ ? unsigned{STAG_SYSTEM_ERR} : 0u);
    EXPECT_EQ(stag_disconnect(client), STAG_OK);
    EXPECT_EQ(stag_stop(server), STAG_OK) << "which waits for every request";
    EXPECT_EQ(released_, lends_ && !failed_ ? 1 : 0);
    return failed_;
  }

 private:
  static void on_request(void* self, stag_request* request) {
    static_cast<Reply*>(self)->arrived_.set_value(request);
  }
  void answer(stag_request* request) {
    stag_results results{};
    results.size = sizeof results;
    results.results = "word";
    results.results_length = results.bulk_length = 4;
    results.bulk = "bulk";
    if (lends_) results.release = [](void* count) { ++*static_cast<std::atomic<int>*>(count); };
    results.release_context = &released_;
    testing::allocations_until_failure = n_;
    const int status = stag_reply(request, &results);
    testing::allocations_until_failure = 0;
    failed_ = status != STAG_OK;
    if (!failed_) return;
    EXPECT_EQ(status, STAG_NO_MEMORY);
    testing::allocations_until_failure = 1;
    EXPECT_EQ(stag_refuse(request, STAG_SYSTEM_ERR), STAG_OK) << "which takes no memory";
    testing::allocations_until_failure = 0;
  }

  const std::size_t n_;
  const bool lends_;
  std::promise<stag_request*> arrived_;
  std::atomic<int> released_{0};
  bool failed_ = false;
};

TEST(CReplyWithoutMemory, leaves_a_request_that_can_be_refused) {
  for (const bool lends : {false, true}) {
    std::size_t n = 1;
    while (Reply(n, lends).make() && !::testing::Test::HasFailure()) ++n;
    EXPECT_GT(n, 2u) << "the test is about something";
  }
}

// A client that disconnects while calls are in progress.
class Leaving {
 public:
  explicit Leaving(std::size_t n) : n_(n) {
    EXPECT_EQ(stag_serve("127.0.0.1", 0, &kProgram, keep, this, nullptr, &server_, nullptr), 0);
    EXPECT_EQ(
        stag_connect("127.0.0.1", stag_server_port(server_), &kProgram, nullptr, &client_, nullptr),
        0);
    for (stag_call& call : calls_) {
      call.size = sizeof call;
      call.procedure = kGet.number;
      EXPECT_EQ(stag_call_begin(client_, &call, on_end, this, nullptr), STAG_OK);
    }
    for (std::size_t i = 0; i < calls_.size(); ++i) arrived_.acquire();
  }
  ~Leaving() {
    for (stag_request* each : kept_) EXPECT_EQ(stag_refuse(each, STAG_SYSTEM_ERR), STAG_OK);
    EXPECT_EQ(stag_stop(server_), STAG_OK);
  }

  // The `n`th allocation of the thread that disconnects fails.
  bool fails_here() {
    testing::allocations_until_failure = n_;
    const int status = stag_disconnect(client_);
    const bool failed = testing::allocations_until_failure == 0;
    testing::allocations_until_failure = 0;
    expect_ended(status);
    return failed;
  }
  // That of the client's own thread does, from when a call ends that was cancelled.
  bool fails_there() {
    fail_there_ = true;
    EXPECT_EQ(stag_call_cancel(client_, calls_.data()), STAG_OK);
    expect_ended(stag_disconnect(client_));
    return failed_there_;
  }

 private:
  static void keep(void* context, stag_request* request) {
    Leaving& self = *static_cast<Leaving*>(context);
    self.kept_.push_back(request);
    self.arrived_.release();
  }
  static void on_end(void* context, stag_call* call, const stag_error* error) {
    Leaving& self = *static_cast<Leaving*>(context);
    EXPECT_NE(error->status, STAG_OK);
    ++self.ended_;
    if (!self.fail_there_) return;
    if (call == self.calls_.data())
      testing::allocations_until_failure = self.n_;
    else
      self.failed_there_ = testing::allocations_until_failure == 0;
  }
  void expect_ended(int status) const {
    EXPECT_EQ(status, STAG_OK);
    EXPECT_EQ(ended_, calls_.size()) << n_;
  }

  const std::size_t n_;
  stag_server* server_ = nullptr;
  stag_client* client_ = nullptr;
  std::array<stag_call, 3> calls_{};
  std::vector<stag_request*> kept_;
  std::counting_semaphore<> arrived_{0};
  std::size_t ended_ = 0;  // on the client's thread, until that has ended
  bool fail_there_ = false, failed_there_ = false;
};

TEST(CDisconnectingWithoutMemory, ends_all_calls_and_the_client) {
  std::size_t n = 1;
  while (Leaving(n).fails_here() && !::testing::Test::HasFailure()) ++n;
  EXPECT_GT(n, 2u) << "the test is about something";
  n = 1;
  while (Leaving(n).fails_there() && !::testing::Test::HasFailure()) ++n;
  EXPECT_GT(n, 1u);
}

TEST(CPlacingWithoutMemory, asks_the_program_for_none) {
  // On a thread that keeps no memory of earlier ones.
  std::thread([] {
    int asked = 0;
    const Placer placer([](void* count, stag_placement*) { ++*static_cast<int*>(count); }, &asked);
    const endpoint::Loops loops;
    testing::allocations_until_failure = 1;
    const Buffer given = placer.ask(1, {}, 1000, loops);
    testing::allocations_until_failure = 0;
    EXPECT_FALSE(given.owned());
    EXPECT_EQ(asked, 0);
    EXPECT_FALSE(placer.ask(1, {}, 1000, loops).owned());
    EXPECT_EQ(asked, 1);
  }).join();
}

}  // namespace
}  // namespace stag::c
