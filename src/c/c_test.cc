#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <future>
#include <numeric>
#include <thread>

#include "c/support.h"
#include "endpoint/listener.h"
#include "rpc/server.h"
#include "testing/store_service.h"

namespace stag::c {
namespace {

enum Procedure : std::uint32_t { PUT = 1, GET = 2, ADD = 3, LATER = 4, PUT_LATER = 5 };

template <class T>
T sized(T value = {}) {
  value.size = sizeof value;
  return value;
}

// Slots of bytes: PUT(slot, data) and GET(slot) -> data; ADD(number) runs once for each Call; those
// that are LATER wait for the test.
class CApi : public ::testing::TestWithParam<stag_transport> {
 protected:
  CApi() {
    procedures_ = {{sizeof(stag_procedure), PUT, STAG_ARGUMENTS_BULK, 4, 0},
                   {sizeof(stag_procedure), GET, STAG_RESULTS_BULK, 0, 4},
                   {sizeof(stag_procedure), ADD, STAG_ONCE, 0, 0},
                   {sizeof(stag_procedure), LATER, 0, 0, 0},
                   {sizeof(stag_procedure), PUT_LATER, STAG_ARGUMENTS_BULK, 4, 0}};
    program_ = {sizeof program_, 0x2000'00aa, 1, procedures_.data(), procedures_.size()};
  }
  ~CApi() override {
    EXPECT_EQ(stag_disconnect(client_), STAG_OK);
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      for (stag_request* each : unanswered_) stag_refuse(each, STAG_SYSTEM_ERR);
    }
    EXPECT_EQ(stag_stop(server_), STAG_OK);
  }

  void serve() {
    stag_serve_options options = sized(stag_serve_options{});
    options.transport = GetParam();
    ASSERT_EQ(stag_serve("127.0.0.1", 0, &program_, handler, this, &options, &server_, &error_),
              STAG_OK)
        << error_.text;
  }
  void connect() {
    serve();
    stag_connect_options options = sized(stag_connect_options{});
    options.transport = GetParam();
    options.auth_sys = 1;
    options.uid = 1234;
    ASSERT_EQ(stag_connect("127.0.0.1", stag_server_port(server_), &program_, &options, &client_,
                           &error_),
              STAG_OK)
        << error_.text;
  }

  static void handler(void* context, stag_request* request) {
    auto& self = *static_cast<CApi*>(context);
    ++self.requests_;
    std::size_t length = 0;
    const void* arguments = stag_request_arguments(request, &length);
    std::uint32_t word = 0;
    if (length != sizeof word) {
      EXPECT_EQ(stag_refuse(request, STAG_GARBAGE_ARGS), STAG_OK);
      return;
    }
    std::memcpy(&word, arguments, sizeof word);
    self.serve_one(request, word);
  }

  void serve_one(stag_request* request, std::uint32_t word) {
    const std::uint32_t procedure = stag_request_procedure(request);
    stag_results results = sized(stag_results{});
    results.results = &word;
    results.results_length = sizeof word;
    if (procedure == PUT) {
      std::size_t length = 0;
      const auto* data = static_cast<const std::byte*>(stag_request_bulk(request, &length));
      slots_[word].assign(data, data + length);
    } else if (procedure == GET) {
      const auto slot = slots_.find(word);
      if (slot != slots_.end()) {
        results.bulk = slot->second.data();
        results.bulk_length = slot->second.size();
        results.release = [](void* at) { ++*static_cast<std::atomic<int>*>(at); };
        results.release_context = &released_;
      }
    } else if (procedure == LATER || procedure == PUT_LATER) {
      return keep(request);
    }
    EXPECT_EQ(stag_reply(request, &results), STAG_OK);
  }

  // For request(), or the end of the test.
  void keep(stag_request* request) {
    const std::lock_guard lock(mutex_);
    if (over_) {
      stag_refuse(request, STAG_SYSTEM_ERR);
    } else {
      unanswered_.push_back(request);
      arrived_.notify_all();
    }
  }
  // The next one of those.
  stag_request* request() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !unanswered_.empty(); });
    stag_request* const first = unanswered_.back();
    unanswered_.pop_back();
    return first;
  }

  stag_call call_of(Procedure procedure, const std::uint32_t& argument) {
    stag_call call = sized(stag_call{});
    call.procedure = procedure;
    call.arguments = &argument;
    call.arguments_length = sizeof argument;
    call.results = &result_;
    call.results_capacity = sizeof result_;
    return call;
  }

  std::vector<stag_procedure> procedures_;
  stag_program program_{};
  stag_error error_ = sized(stag_error{});
  stag_server* server_ = nullptr;
  stag_client* client_ = nullptr;
  std::map<std::uint32_t, std::vector<std::byte>> slots_;
  std::atomic<int> released_{0};
  std::atomic<int> requests_{0};
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<stag_request*> unanswered_;
  bool over_ = false;
  std::uint32_t result_ = 0;
};

TEST_P(CApi, moves_bulk_of_every_size_both_ways) {
  connect();
  const std::uint32_t slot = 7;
  int gets = 0;
  for (const std::size_t size : {0u, 1u, 5u, 1000u, 70'001u, 1u << 20}) {
    const std::vector<std::byte> data(size + 1, std::byte{0x5a});
    stag_call put = call_of(PUT, slot);
    put.bulk = data.data();
    put.bulk_length = size;
    ASSERT_EQ(stag_call_wait(client_, &put, &error_), STAG_OK) << error_.text;
    EXPECT_EQ(put.results_length, 4u);
    // An empty vector has no address, and would be no bulk at all.
    if (size == 0) continue;
    std::vector<std::byte> memory(size);
    stag_call get = call_of(GET, slot);
    get.results_bulk = memory.data();
    get.results_bulk_capacity = size;
    ASSERT_EQ(stag_call_wait(client_, &get, &error_), STAG_OK) << error_.text;
    EXPECT_EQ(result_, slot);
    ASSERT_EQ(get.results_bulk_length, size);
    EXPECT_TRUE(std::equal(memory.begin(), memory.end(), data.begin()));
    ++gets;
  }
  EXPECT_EQ(stag_disconnect(std::exchange(client_, nullptr)), STAG_OK);
  EXPECT_EQ(stag_stop(std::exchange(server_, nullptr)), STAG_OK);
  EXPECT_EQ(released_, gets) << "what was lent is given back";
}

TEST_P(CApi, results_may_come_without_their_bulk) {
  connect();
  const std::uint32_t slot = 9;
  std::array<std::byte, 16> memory{};
  stag_call get = call_of(GET, slot);
  get.results_bulk = memory.data();
  get.results_bulk_capacity = memory.size();
  get.results_bulk_length = 77;
  ASSERT_EQ(stag_call_wait(client_, &get, &error_), STAG_OK) << error_.text;
  EXPECT_EQ(get.results_length, 4u);
  EXPECT_EQ(get.results_bulk_length, 0u);
}

TEST_P(CApi, results_longer_than_their_memory_are_an_error_that_says_so) {
  connect();
  const std::uint32_t number = 1;
  stag_call add = call_of(ADD, number);
  add.results_capacity = 0;
  EXPECT_EQ(stag_call_wait(client_, &add, &error_), STAG_TOO_LONG);
  EXPECT_EQ(add.results_length, 4u);
  EXPECT_EQ(stag_ping(client_, &error_), STAG_OK);
}

TEST_P(CApi, a_call_that_was_begun_ends_on_the_clients_thread_where_nothing_may_block) {
  connect();
  struct Seen {
    stag_client* client;
    std::promise<std::thread::id> where;
    int blocked = STAG_OK;
  } seen{client_, {}};
  const std::uint32_t number = 3;
  stag_call add = call_of(ADD, number);
  const auto done = [](void* context, stag_call* call, const stag_error* error) {
    auto& told = *static_cast<Seen*>(context);
    EXPECT_EQ(error->status, STAG_OK) << error->text;
    told.blocked = stag_call_wait(told.client, call, nullptr);
    EXPECT_EQ(stag_disconnect(told.client), STAG_WRONG_THREAD);
    told.where.set_value(std::this_thread::get_id());
  };
  ASSERT_EQ(stag_call_begin(client_, &add, done, &seen, &error_), STAG_OK);
  EXPECT_NE(seen.where.get_future().get(), std::this_thread::get_id());
  EXPECT_EQ(seen.blocked, STAG_WRONG_THREAD);
  EXPECT_EQ(result_, number);
}

// What a handler got from functions that block.
struct Tried {
  const stag_program* program = nullptr;
  stag_client* client = nullptr;
  stag_server* server = nullptr;
  std::vector<int> statuses{};
};

void try_all(void* context, stag_request* request) {
  auto& tried = *static_cast<Tried*>(context);
  stag_call call = sized(stag_call{});
  call.procedure = stag_request_procedure(request);
  stag_client* client = nullptr;
  stag_server* server = nullptr;
  tried.statuses = {
      stag_call_wait(tried.client, &call, nullptr),
      stag_ping(tried.client, nullptr),
      stag_disconnect(tried.client),
      stag_stop(tried.server),
      stag_connect("127.0.0.1", 1, tried.program, nullptr, &client, nullptr),
      stag_serve("127.0.0.1", 0, tried.program, try_all, nullptr, nullptr, &server, nullptr)};
  EXPECT_EQ(stag_refuse(request, STAG_SYSTEM_ERR), STAG_OK);
}

TEST_P(CApi, a_handler_may_not_block_on_whatever_client_or_server) {
  connect();
  Tried tried;
  tried.program = &program_;
  stag_serve_options serving = sized(stag_serve_options{});
  serving.transport = GetParam();
  stag_connect_options connecting = sized(stag_connect_options{});
  connecting.transport = GetParam();
  stag_server* other = nullptr;
  ASSERT_EQ(stag_serve("127.0.0.1", 0, &program_, try_all, &tried, &serving, &other, &error_),
            STAG_OK);
  // A client of that server, and another server than the one that the handler is of.
  ASSERT_EQ(stag_connect("127.0.0.1", stag_server_port(other), &program_, &connecting,
                         &tried.client, &error_),
            STAG_OK);
  tried.server = server_;
  const std::uint32_t number = 3;
  stag_call call = call_of(ADD, number);
  EXPECT_EQ(stag_call_wait(tried.client, &call, &error_), STAG_REFUSED);
  EXPECT_EQ(tried.statuses, std::vector<int>(6, STAG_WRONG_THREAD));
  EXPECT_EQ(stag_disconnect(tried.client), STAG_OK);
  EXPECT_EQ(stag_stop(other), STAG_OK);
}

TEST_P(CApi, disconnecting_ends_what_was_begun) {
  connect();
  const std::uint32_t number = 3;
  stag_call call = call_of(LATER, number);
  std::int32_t status = STAG_OK;
  const auto done = [](void* context, stag_call*, const stag_error* error) {
    *static_cast<std::int32_t*>(context) = error->status;
  };
  ASSERT_EQ(stag_call_begin(client_, &call, done, &status, &error_), STAG_OK);
  stag_request* const unanswered = request();
  EXPECT_EQ(stag_disconnect(std::exchange(client_, nullptr)), STAG_OK);
  EXPECT_EQ(status, STAG_CANCELLED);
  EXPECT_EQ(stag_refuse(unanswered, STAG_SYSTEM_ERR), STAG_OK) << "its connection is gone";
}

std::string caller_of(const stag_request* request) {
  stag_caller caller = sized(stag_caller{});
  EXPECT_EQ(stag_request_caller(request, &caller), STAG_OK);
  return caller.address;
}

TEST_P(CApi, a_call_that_ends_while_its_handler_runs_takes_no_connection_along) {
  connect();
  const std::uint32_t number = 3;
  const std::vector<std::byte> bulk(2 << 20);
  std::array<std::promise<std::int32_t>, 2> ended;
  const auto done = [](void* context, stag_call*, const stag_error* error) {
    static_cast<std::promise<std::int32_t>*>(context)->set_value(error->status);
  };
  stag_call put = call_of(PUT_LATER, number);
  put.bulk = bulk.data();
  put.bulk_length = bulk.size();
  ASSERT_EQ(stag_call_begin(client_, &put, done, &ended[0], &error_), STAG_OK);
  stag_request* const first = request();
  EXPECT_EQ(stag_call_cancel(client_, &put), STAG_OK);
  EXPECT_EQ(ended[0].get_future().get(), STAG_CANCELLED);
  stag_call later = call_of(LATER, number);
  ASSERT_EQ(stag_call_begin(client_, &later, done, &ended[1], &error_), STAG_OK);
  stag_request* const second = request();
  EXPECT_EQ(caller_of(second), caller_of(first)) << "another connection has another port";
  for (stag_request* each : {first, second}) EXPECT_EQ(stag_refuse(each, STAG_SYSTEM_ERR), STAG_OK);
  EXPECT_EQ(ended[1].get_future().get(), STAG_REFUSED);
}

// Over RDMA a server grants so many calls at a time; over TCP all are sent.
TEST_P(CApi, a_call_that_was_not_sent_in_time_is_told_from_one_that_was) {
  connect();
  const std::uint32_t number = 3;
  std::vector<stag_call> calls(300, call_of(LATER, number));
  std::array<std::atomic<int>, STAG_FAILED + 1> ended{};
  const auto done = [](void* context, stag_call*, const stag_error* error) {
    EXPECT_STREQ(error->reason, "TimedOut");
    ++(*static_cast<decltype(ended)*>(context))[static_cast<std::size_t>(error->status)];
  };
  for (stag_call& each : calls) {
    each.timeout_ms = 500;
    ASSERT_EQ(stag_call_begin(client_, &each, done, &ended, &error_), STAG_OK);
  }
  const auto all = [&] { return std::accumulate(ended.begin(), ended.end(), 0); };
  while (all() < static_cast<int>(calls.size())) std::this_thread::yield();
  EXPECT_EQ(ended[STAG_UNREACHABLE] > 0, GetParam() == STAG_RDMA);
  EXPECT_LE(requests_, ended[STAG_TIMED_OUT]) << "none of those that were not sent has come";
}

TEST_P(CApi, a_completion_that_comes_of_disconnecting_begins_nothing) {
  connect();
  struct Again {
    stag_client* client;
    stag_completion* done;
    std::int32_t begun = STAG_OK;
  } again{client_, [](void* context, stag_call* call, const stag_error*) {
            Again& self = *static_cast<Again*>(context);
            self.begun = stag_call_begin(self.client, call, self.done, context, nullptr);
          }};
  const std::uint32_t number = 3;
  stag_call call = call_of(LATER, number);
  ASSERT_EQ(stag_call_begin(client_, &call, again.done, &again, &error_), STAG_OK);
  stag_request* const unanswered = request();
  EXPECT_EQ(stag_disconnect(std::exchange(client_, nullptr)), STAG_OK);
  EXPECT_EQ(again.begun, STAG_CANCELLED);
  EXPECT_EQ(stag_refuse(unanswered, STAG_SYSTEM_ERR), STAG_OK) << "its connection is gone";
}

TEST_P(CApi, a_request_is_replied_to_later_and_on_another_thread) {
  connect();
  std::thread replier([this] {
    stag_request* const waiting = request();
    stag_caller caller = sized(stag_caller{});
    EXPECT_EQ(stag_request_caller(waiting, &caller), STAG_OK);
    EXPECT_EQ(caller.flavor, 1u);
    EXPECT_EQ(caller.uid, 1234u);
    EXPECT_TRUE(std::string_view(caller.address).starts_with("127.0.0.1:"));
    const std::array<std::uint32_t, 2> words{5, 6};
    stag_results results = sized(stag_results{});
    results.results = words.data();
    results.results_length = 3;
    EXPECT_EQ(stag_reply(waiting, &results), STAG_INVALID) << "no multiple of 4";
    results.results_length = sizeof words;
    EXPECT_EQ(stag_reply(waiting, &results), STAG_OK);
  });
  const std::uint32_t number = 3;
  std::array<std::uint32_t, 2> back{};
  stag_call call = call_of(LATER, number);
  call.results = back.data();
  call.results_capacity = sizeof back;
  EXPECT_EQ(stag_call_wait(client_, &call, &error_), STAG_OK) << error_.text;
  EXPECT_EQ(back, (std::array<std::uint32_t, 2>{5, 6}));
  replier.join();
}

TEST_P(CApi, a_refusal_and_a_time_out_have_codes_and_texts) {
  connect();
  stag_call call = sized(stag_call{});
  call.procedure = ADD;  // wants an argument
  EXPECT_EQ(stag_call_wait(client_, &call, &error_), STAG_REFUSED);
  EXPECT_EQ(error_.accept_stat, static_cast<std::uint32_t>(STAG_GARBAGE_ARGS));
  EXPECT_NE(std::string_view(error_.text), "");
  const std::uint32_t number = 3;
  stag_call later = call_of(LATER, number);
  later.timeout_ms = 1;
  EXPECT_EQ(stag_call_wait(client_, &later, &error_), STAG_TIMED_OUT);
  EXPECT_STREQ(error_.reason, "TimedOut");
}

TEST_P(CApi, wrong_arguments_are_told_apart_before_anything_is_sent) {
  connect();
  const std::uint32_t number = 3;
  stag_call call = call_of(ADD, number);
  call.procedure = 17;
  EXPECT_EQ(stag_call_wait(client_, &call, &error_), STAG_INVALID);
  call = call_of(ADD, number);
  call.arguments_length = 3;
  EXPECT_EQ(stag_call_wait(client_, &call, &error_), STAG_INVALID);
  call = call_of(ADD, number);
  call.bulk = &number;
  call.bulk_length = sizeof number;
  EXPECT_EQ(stag_call_wait(client_, &call, &error_), STAG_INVALID);
  EXPECT_STREQ(error_.text, "the procedure's arguments have no bulk");
  call = call_of(ADD, number);
  call.size = 8;
  EXPECT_EQ(stag_call_wait(client_, &call, nullptr), STAG_INVALID) << "a null error is allowed";
  EXPECT_EQ(stag_call_wait(nullptr, &call, nullptr), STAG_INVALID);
  EXPECT_EQ(requests_, 0);
}

TEST_P(CApi, a_reply_with_a_mistake_is_refused_and_the_request_still_wants_one) {
  connect();
  std::thread replier([this] {
    stag_request* const waiting = request();
    const std::uint32_t word = 5;
    const auto reply = [waiting](const stag_results& with) { return stag_reply(waiting, &with); };
    stag_results results = sized(stag_results{});
    results.results = &word;
    results.results_length = sizeof word;
    stag_results wrong = results;
    wrong.size = 0;
    EXPECT_EQ(reply(wrong), STAG_INVALID) << "its size is not set";
    wrong = results;
    wrong.results = nullptr;
    EXPECT_EQ(reply(wrong), STAG_INVALID) << "4 bytes at null";
    wrong = results;
    wrong.bulk_length = 5;
    EXPECT_EQ(reply(wrong), STAG_INVALID) << "5 bytes of bulk at null";
    EXPECT_EQ(reply(results), STAG_OK);
  });
  const std::uint32_t number = 3;
  stag_call call = call_of(LATER, number);
  EXPECT_EQ(stag_call_wait(client_, &call, &error_), STAG_OK) << error_.text;
  EXPECT_EQ(call.results_length, sizeof result_);
  EXPECT_EQ(result_, 5u);
  replier.join();
}

TEST_P(CApi, a_caller_whose_size_is_not_set_is_refused) {
  connect();
  std::thread replier([this] {
    stag_request* const waiting = request();
    stag_caller caller{};
    EXPECT_EQ(stag_request_caller(waiting, &caller), STAG_INVALID);
    EXPECT_EQ(stag_refuse(waiting, STAG_SYSTEM_ERR), STAG_OK);
  });
  const std::uint32_t number = 3;
  stag_call call = call_of(LATER, number);
  EXPECT_EQ(stag_call_wait(client_, &call, &error_), STAG_REFUSED);
  replier.join();
}

TEST_P(CApi, talks_to_programs_of_the_cpp_api) {
  // The store program of the tests: INCREMENT(unsigned) and PUT with its data at the end.
  rpc::Server server;
  testing::store::State state;
  server.add(testing::store::make_program(state));
  endpoint::ListenOptions options;
  if (GetParam() == STAG_TCP) options.transport = endpoint::Transport::Tcp;
  auto listener = endpoint::listen(server, {"127.0.0.1", 0}, options);
  ASSERT_TRUE(listener.ok());
  const stag_procedure increment{sizeof increment, testing::store::INCREMENT::number, 0, 0, 0};
  const stag_program program{sizeof program, testing::store::kProgram, testing::store::kVersion,
                             &increment, 1};
  stag_connect_options how = sized(stag_connect_options{});
  how.transport = GetParam();
  ASSERT_EQ(stag_connect("127.0.0.1", listener->address().port, &program, &how, &client_, &error_),
            STAG_OK)
      << error_.text;
  const std::uint32_t number = big_endian(41u);
  stag_call call = call_of(static_cast<Procedure>(increment.number), number);
  ASSERT_EQ(stag_call_wait(client_, &call, &error_), STAG_OK) << error_.text;
  EXPECT_EQ(big_endian(result_), 42u);
  EXPECT_EQ(stag_disconnect(std::exchange(client_, nullptr)), STAG_OK);
}

INSTANTIATE_TEST_SUITE_P(Transports, CApi, ::testing::Values(STAG_RDMA, STAG_TCP),
                         [](const auto& of) { return of.param == STAG_TCP ? "Tcp" : "Rdma"; });

// A struct that has grown since its callers were compiled.
struct Grown {
  std::size_t size;
  std::uint32_t first;
  std::uint32_t added;
};

TEST(CStructs, count_as_zero_where_an_older_callers_end_and_are_not_written_beyond) {
  Grown theirs{offsetof(Grown, added), 1, 99};
  EXPECT_EQ(known(&theirs).first, 1u);
  EXPECT_EQ(known(&theirs).added, 0u);
  give(Grown{sizeof theirs, 2, 3}, &theirs);
  EXPECT_EQ(theirs.first, 2u);
  EXPECT_EQ(theirs.added, 99u);
  stag_error error{};
  error.size = offsetof(stag_error, reason);
  std::memset(error.reason, 'x', sizeof error.reason);
  stag_client* client = nullptr;
  EXPECT_EQ(stag_connect(nullptr, 1, nullptr, nullptr, &client, &error), STAG_INVALID);
  EXPECT_EQ(error.status, STAG_INVALID);
  EXPECT_EQ(error.reason[0], 'x');
}

TEST(CServer, listens_nowhere_if_its_host_is_empty) {
  const auto ignored = [](void*, stag_request*) {};
  const stag_procedure procedure{sizeof procedure, 1, 0, 0, 0};
  const stag_program program{sizeof program, 0x2000'00aa, 1, &procedure, 1};
  stag_server* server = nullptr;
  stag_error error = sized(stag_error{});
  EXPECT_EQ(stag_serve("", 0, &program, ignored, nullptr, nullptr, &server, &error), STAG_INVALID);
  EXPECT_STREQ(error.text, "host is empty");
  EXPECT_EQ(server, nullptr);
}

TEST(CStructs, whose_size_is_not_set_are_refused) {
  const auto ignored = [](void*, stag_request*) {};
  stag_procedure procedure{sizeof procedure, 1, 0, 0, 0};
  stag_program program{sizeof program, 0x2000'00aa, 1, &procedure, 1};
  stag_connect_options connecting{};
  stag_serve_options serving{};
  stag_client* client = nullptr;
  stag_server* server = nullptr;
  const auto connect = [&] {
    stag_error error = sized(stag_error{});
    EXPECT_NE(stag_connect("127.0.0.1", 1, &program, &connecting, &client, &error), STAG_OK);
    return std::string(error.text);
  };
  EXPECT_EQ(connect(), "the options' size is not set");
  EXPECT_EQ(stag_serve("127.0.0.1", 0, &program, ignored, nullptr, &serving, &server, nullptr),
            STAG_INVALID);
  connecting = sized(connecting);
  procedure.size = 0;
  EXPECT_EQ(connect(), "a procedure's size is not set");
  program.size = 0;
  EXPECT_EQ(connect(), "the program's size is not set");
}

TEST(CPrograms, that_make_no_sense_are_refused) {
  const auto status_with = [](std::vector<stag_procedure> procedures) {
    const stag_program program{sizeof program, 0x2000'00aa, 1, procedures.data(),
                               procedures.size()};
    stag_client* client = nullptr;
    return stag_connect("127.0.0.1", 1, &program, nullptr, &client, nullptr);
  };
  const std::size_t size = sizeof(stag_procedure);
  EXPECT_EQ(status_with({{size, 0, 0, 0, 0}}), STAG_INVALID) << "NULL is there already";
  EXPECT_EQ(status_with({{size, 4096, 0, 0, 0}}), STAG_INVALID);
  EXPECT_EQ(status_with({{size, 1, 0, 0, 0}, {size, 1, 0, 0, 0}}), STAG_INVALID);
  EXPECT_EQ(status_with({{size, 1, 128, 0, 0}}), STAG_INVALID);
  EXPECT_EQ(status_with({{size, 1, STAG_ARGUMENTS_BULK, 3, 0}}), STAG_INVALID);
  EXPECT_EQ(status_with({}), STAG_INVALID);
  EXPECT_EQ(status_with({{size, 1, 0, 0, 0}}), STAG_UNREACHABLE);
}

}  // namespace
}  // namespace stag::c
