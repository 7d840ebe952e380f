// Registered memory, calls that are cancelled, and servers that are stopped in time.
#include "c/memory.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

namespace stag::c::registered {
namespace {

constexpr std::size_t kSize = 1 << 20;

template <class T>
T sized(T value = {}) {
  value.size = sizeof value;
  return value;
}

enum Procedure : std::uint32_t { PUT = 1, GET = 2, HOLD = 3 };
constexpr std::uint32_t kProgram = 0x2000'00ad;

// PUT(data) keeps the data, GET() -> data is answered from the first half of memory_, and
// HOLD(data) waits for held().
class CMemory : public ::testing::TestWithParam<stag_transport> {
 protected:
  CMemory() {
    stag_serve_options serving = sized(stag_serve_options{});
    serving.transport = GetParam();
    EXPECT_EQ(stag_serve("127.0.0.1", 0, &program_, handler, this, &serving, &server_, &error_),
              STAG_OK);
    client_ = connected();
  }
  ~CMemory() override {
    EXPECT_EQ(stag_disconnect(client_), STAG_OK);
    EXPECT_EQ(stag_stop(server_), STAG_OK);
  }
  stag_client* connected() {
    stag_connect_options connecting = sized(stag_connect_options{});
    connecting.transport = GetParam();
    stag_client* client = nullptr;
    EXPECT_EQ(stag_connect("127.0.0.1", stag_server_port(server_), &program_, &connecting, &client,
                           &error_),
              STAG_OK)
        << error_.text;
    return client;
  }

  static void handler(void* context, stag_request* request) {
    static_cast<CMemory*>(context)->serve(request);
  }
  void serve(stag_request* request) {
    stag_results results = sized(stag_results{});
    if (stag_request_procedure(request) == HOLD) {
      const std::lock_guard lock(mutex_);
      held_.push_back(request);
      return arrived_.notify_all();
    }
    if (stag_request_procedure(request) == PUT) {
      std::size_t length = 0;
      const auto* data = static_cast<const std::byte*>(stag_request_bulk(request, &length));
      put_.assign(data, data + length);
    } else {
      results.bulk = memory_.data();
      results.bulk_length = answer_;
      results.memory = reply_memory_;
      results.release = count_released;
      results.release_context = &released_;
    }
    const int before = released_;
    EXPECT_EQ(stag_reply(request, &results), STAG_OK);
    EXPECT_EQ(released_, before) << "released while the loop is in the handler";
    ++replied_;
    replied_.notify_all();
  }
  static void count_released(void* at) {
    auto& count = *static_cast<std::atomic<int>*>(at);
    ++count;
    count.notify_all();
  }
  // The request of HOLD.
  stag_request* held() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !held_.empty(); });
    stag_request* const last = held_.back();
    held_.pop_back();
    return last;
  }

  // The first half of memory_ is sent, the second receives.
  stag_memory* registered(std::uint32_t access = STAG_MEMORY_READ | STAG_MEMORY_WRITE) {
    stag_memory* made = nullptr;
    EXPECT_EQ(stag_memory_register(client_, memory_.data(), memory_.size(), access, &made, &error_),
              STAG_OK)
        << error_.text;
    return made;
  }
  stag_call call_of(Procedure procedure, stag_memory* memory) {
    stag_call call = sized(stag_call{});
    call.procedure = procedure;
    if (procedure == GET) {
      call.results_bulk = memory_.data() + kSize;
      call.results_bulk_capacity = kSize;
      call.results_bulk_memory = memory;
    } else {
      call.bulk = memory_.data();
      call.bulk_length = kSize;
      call.bulk_memory = memory;
    }
    return call;
  }

  const stag_procedure procedures_[3] = {
      {sizeof(stag_procedure), PUT, STAG_ARGUMENTS_BULK, 0, 0},
      {sizeof(stag_procedure), GET, STAG_RESULTS_BULK, 0, 0},
      {sizeof(stag_procedure), HOLD, STAG_ARGUMENTS_BULK | STAG_RESULTS_BULK, 0, 0}};
  const stag_program program_{sizeof program_, kProgram, 1, procedures_, 3};
  std::vector<std::byte> memory_ = std::vector<std::byte>(2 * kSize);
  std::vector<std::byte> put_;
  stag_memory* reply_memory_ = nullptr;
  std::size_t answer_ = kSize;
  std::atomic<int> replied_{0}, released_{0};
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<stag_request*> held_;
  stag_error error_ = sized(stag_error{});
  stag_server* server_ = nullptr;
  stag_client* client_ = nullptr;
};

// A call that was begun, and how it ended.
class Begun {
 public:
  Begun(stag_client* client, const stag_call& call) : call_(call) {
    EXPECT_EQ(stag_call_begin(client, &call_, done, this, nullptr), STAG_OK);
  }
  const stag_call* call() const { return &call_; }
  int ended() { return status_.get_future().get(); }

 private:
  static void done(void* context, stag_call*, const stag_error* error) {
    static_cast<Begun*>(context)->status_.set_value(error->status);
  }
  stag_call call_;
  std::promise<int> status_;
};

TEST_P(CMemory, moves_a_MiB_each_way_many_times_with_one_registration) {
  stag_memory* const memory = registered();
  EXPECT_TRUE(memory->kept) << "endpoint/registered_memory_test.cc counts what that saves";
  ASSERT_EQ(stag_server_memory_register(server_, memory_.data(), kSize, STAG_MEMORY_READ,
                                        &reply_memory_, &error_),
            STAG_OK);
  for (int i = 1; i <= 8; ++i) {
    std::fill_n(memory_.begin(), kSize, std::byte(i));
    stag_call put = call_of(PUT, memory);
    ASSERT_EQ(stag_call_wait(client_, &put, &error_), STAG_OK) << error_.text;
    EXPECT_TRUE(std::equal(put_.begin(), put_.end(), memory_.begin()));
    stag_call get = call_of(GET, memory);
    ASSERT_EQ(stag_call_wait(client_, &get, &error_), STAG_OK) << error_.text;
    EXPECT_EQ(get.results_bulk_length, kSize);
    EXPECT_TRUE(std::equal(memory_.begin(), memory_.begin() + kSize, memory_.begin() + kSize));
    released_.wait(i - 1);  // the server reads it until then
  }
  EXPECT_EQ(stag_memory_release(memory), STAG_OK);
  EXPECT_EQ(stag_disconnect(std::exchange(client_, nullptr)), STAG_OK);
  EXPECT_EQ(stag_stop(std::exchange(server_, nullptr)), STAG_OK);
  EXPECT_EQ(released_, 8);
  EXPECT_EQ(stag_memory_release(reply_memory_), STAG_OK) << "after its server";
}

TEST_P(CMemory, bulk_that_does_not_lie_there_is_refused_before_anything_is_sent) {
  stag_memory* memory = nullptr;
  std::byte* const begin = memory_.data() + 4096;
  ASSERT_EQ(stag_memory_register(client_, begin, kSize, STAG_MEMORY_READ, &memory, &error_),
            STAG_OK);
  const auto put = [&](const void* at, std::size_t length) {
    stag_call call = call_of(PUT, memory);
    call.bulk = at;
    call.bulk_length = length;
    return stag_call_wait(client_, &call, &error_);
  };
  EXPECT_EQ(put(begin, kSize), STAG_OK) << error_.text;
  EXPECT_EQ(put(begin + kSize, 0), STAG_OK) << "no bytes lie anywhere";
  EXPECT_EQ(put(begin - 1, 4), STAG_INVALID);
  EXPECT_EQ(put(begin + kSize - 3, 4), STAG_INVALID);
  EXPECT_EQ(put(begin + 1, kSize), STAG_INVALID);
  EXPECT_EQ(put(reinterpret_cast<const void*>(UINTPTR_MAX - 3), 8), STAG_INVALID);
  EXPECT_STREQ(error_.text, "the bulk does not lie in its registered memory");
  stag_call get = call_of(GET, memory);
  get.results_bulk = begin;
  EXPECT_EQ(stag_call_wait(client_, &get, &error_), STAG_INVALID);
  EXPECT_STREQ(error_.text, "the memory is not registered for that access");
  stag_client* const other = connected();
  stag_call call = call_of(PUT, memory);
  call.bulk = begin;
  EXPECT_EQ(stag_call_begin(
                other, &call, [](void*, stag_call*, const stag_error*) {}, nullptr, &error_),
            STAG_INVALID);
  EXPECT_STREQ(error_.text, "the memory is registered with another client or server");
  EXPECT_EQ(stag_disconnect(other), STAG_OK);
  EXPECT_EQ(stag_memory_release(memory), STAG_OK) << "no call that was refused uses it";
}

TEST_P(CMemory, what_cannot_be_registered_is_refused) {
  stag_memory* memory = nullptr;
  const auto status = [&](void* at, std::size_t length, std::uint32_t access) {
    return stag_memory_register(client_, at, length, access, &memory, &error_);
  };
  EXPECT_EQ(status(nullptr, 4, STAG_MEMORY_READ), STAG_INVALID);
  EXPECT_EQ(status(memory_.data(), 0, STAG_MEMORY_READ), STAG_INVALID);
  EXPECT_EQ(status(memory_.data(), SIZE_MAX, STAG_MEMORY_READ), STAG_INVALID);
  EXPECT_EQ(status(memory_.data(), 4, 0), STAG_INVALID);
  EXPECT_EQ(status(memory_.data(), 4, 4), STAG_INVALID);
  EXPECT_EQ(stag_memory_register(client_, memory_.data(), 4, STAG_MEMORY_READ, nullptr, &error_),
            STAG_INVALID);
  // Two pages of which the second is gone.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const pages =
      ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  std::byte* const part = static_cast<std::byte*>(pages) + 8;
  ASSERT_EQ(::munmap(static_cast<std::byte*>(pages) + page, page), 0);
  EXPECT_EQ(status(part, page, STAG_MEMORY_READ), STAG_INVALID);
  EXPECT_STREQ(error_.text, "the memory is not mapped");
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(status(part, page - 8, STAG_MEMORY_READ), STAG_OK) << error_.text;
  EXPECT_EQ(stag_memory_release(memory), STAG_OK);
  EXPECT_EQ(::munmap(pages, page), 0);
  EXPECT_EQ(stag_memory_release(nullptr), STAG_OK);
}

TEST(CRegistration, that_fails_says_why) {
  EXPECT_EQ(registration_error(Reason::VerbsMemlockTooLow).status, STAG_NO_MEMORY);
  EXPECT_EQ(registration_error(Reason::OutOfMemory).status, STAG_NO_MEMORY);
  const stag_error full = registration_error(Reason::VerbsDeviceFull);
  EXPECT_EQ(full.status, STAG_FAILED);
  EXPECT_STREQ(full.reason, "VerbsDeviceFull");
  EXPECT_EQ(full.text, info(Reason::VerbsDeviceFull).text);
}

TEST_P(CMemory, is_not_that_of_a_later_client_at_the_same_address) {
  stag_memory* const memory = registered();
  const stag_client* const gone = client_;
  EXPECT_EQ(stag_disconnect(client_), STAG_OK);
  client_ = connected();
  std::vector<stag_client*> elsewhere;
  while (client_ != gone && elsewhere.size() < 20) {
    elsewhere.push_back(client_);
    client_ = connected();
  }
  stag_call call = call_of(PUT, memory);
  EXPECT_EQ(stag_call_wait(client_, &call, &error_), STAG_INVALID);
  EXPECT_STREQ(error_.text, "the memory is registered with another client or server");
  for (stag_client* each : elsewhere) EXPECT_EQ(stag_disconnect(each), STAG_OK);
  EXPECT_EQ(stag_memory_release(memory), STAG_OK);
  if (client_ != gone) GTEST_SKIP() << "the allocator has not used the address again";
}

TEST_P(CMemory, is_not_released_while_a_call_uses_it) {
  stag_memory* const memory = registered();
  Begun call(client_, call_of(HOLD, memory));
  stag_request* const request = held();
  EXPECT_EQ(stag_memory_release(memory), STAG_BUSY);
  EXPECT_EQ(stag_refuse(request, STAG_SYSTEM_ERR), STAG_OK);
  EXPECT_EQ(call.ended(), STAG_REFUSED);
  EXPECT_EQ(stag_memory_release(memory), STAG_OK);
}

// A client that calls GET and takes nothing of the reply.
class Idle {
 public:
  explicit Idle(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in server{};
    server.sin_family = AF_INET;
    server.sin_port = htons(port);
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&server), sizeof server), 0);
    // RFC 5531 sections 9 and 11: the record's mark, XID, CALL, version 2, and AUTH_NONE twice.
    std::array<std::uint32_t, 11> call{0x8000'0000 | 40, 1, 0, 2, kProgram, 1, GET, 0, 0, 0, 0};
    for (std::uint32_t& word : call) word = htonl(word);
    EXPECT_EQ(::send(socket_, call.data(), sizeof call, 0), static_cast<ssize_t>(sizeof call));
  }
  ~Idle() { ::close(socket_); }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;

 private:
  const int socket_;
};

class CReply : public CMemory {};

TEST_P(CReply, keeps_its_registered_memory_from_being_released_until_it_has_left) {
  memory_.resize(64 * kSize);  // more than any socket holds
  ASSERT_EQ(stag_server_memory_register(server_, memory_.data(), memory_.size(), STAG_MEMORY_READ,
                                        &reply_memory_, &error_),
            STAG_OK);
  answer_ = memory_.size();
  {
    const Idle idle(stag_server_port(server_));
    replied_.wait(0);
    EXPECT_EQ(stag_memory_release(reply_memory_), STAG_BUSY);
    EXPECT_EQ(released_, 0);
  }
  released_.wait(0);
  EXPECT_EQ(stag_memory_release(reply_memory_), STAG_OK);
}

INSTANTIATE_TEST_SUITE_P(Transports, CReply, ::testing::Values(STAG_TCP),
                         [](const auto&) { return "Tcp"; });

TEST_P(CMemory, is_named_in_replies_of_its_server_with_a_release_or_refused) {
  stag_memory* const of_client = registered();
  Begun call(client_, call_of(HOLD, nullptr));
  stag_request* const request = held();
  stag_results results = sized(stag_results{});
  results.bulk = memory_.data();
  results.bulk_length = 4;
  results.memory = of_client;
  EXPECT_EQ(stag_reply(request, &results), STAG_INVALID) << "without release";
  results.release = [](void*) { ADD_FAILURE(); };
  EXPECT_EQ(stag_reply(request, &results), STAG_INVALID) << "it is the client's";
  results = sized(stag_results{});
  EXPECT_EQ(stag_reply(request, &results), STAG_OK);
  EXPECT_EQ(call.ended(), STAG_OK);
  EXPECT_EQ(stag_memory_release(of_client), STAG_OK);
}

// GET checks the same for replies in the handler.
TEST_P(CMemory, is_released_without_bytes_too_but_not_by_the_function_that_replies) {
  ASSERT_EQ(stag_server_memory_register(server_, memory_.data(), kSize, STAG_MEMORY_READ,
                                        &reply_memory_, &error_),
            STAG_OK);
  answer_ = 0;
  stag_call get = call_of(GET, nullptr);
  EXPECT_EQ(stag_call_wait(client_, &get, &error_), STAG_OK) << error_.text;
  EXPECT_EQ(get.results_bulk_length, 0u);
  Begun call(client_, call_of(HOLD, nullptr));
  stag_request* const request = held();
  std::promise<std::thread::id> released;
  stag_results results = sized(stag_results{});
  results.bulk = memory_.data();
  results.release = [](void* at) {
    static_cast<std::promise<std::thread::id>*>(at)->set_value(std::this_thread::get_id());
  };
  results.release_context = &released;
  EXPECT_EQ(stag_reply(request, &results), STAG_OK);
  EXPECT_EQ(call.ended(), STAG_OK);
  EXPECT_NE(released.get_future().get(), std::this_thread::get_id());
  EXPECT_EQ(stag_disconnect(std::exchange(client_, nullptr)), STAG_OK);
  EXPECT_EQ(stag_stop(std::exchange(server_, nullptr)), STAG_OK);
  EXPECT_EQ(released_, 1);
  EXPECT_EQ(stag_memory_release(reply_memory_), STAG_OK);
}

TEST_P(CMemory, is_registered_and_released_on_threads_that_may_block) {
  struct Tried {
    stag_client* client;
    stag_memory* memory;
    std::promise<std::pair<int, int>> statuses{};
  } tried{client_, registered()};
  stag_call call = call_of(PUT, nullptr);
  const auto done = [](void* context, stag_call* ended, const stag_error*) {
    auto& self = *static_cast<Tried*>(context);
    stag_memory* more = nullptr;
    const int made = stag_memory_register(self.client, const_cast<void*>(ended->bulk), 4,
                                          STAG_MEMORY_READ, &more, nullptr);
    self.statuses.set_value({made, stag_memory_release(self.memory)});
  };
  ASSERT_EQ(stag_call_begin(client_, &call, done, &tried, &error_), STAG_OK);
  EXPECT_EQ(tried.statuses.get_future().get(), std::pair(+STAG_WRONG_THREAD, +STAG_WRONG_THREAD));
  EXPECT_EQ(stag_memory_release(tried.memory), STAG_OK);
}

TEST_P(CMemory, may_be_released_after_its_client) {
  stag_memory* const memory = registered();
  EXPECT_EQ(stag_disconnect(std::exchange(client_, nullptr)), STAG_OK);
  EXPECT_EQ(stag_memory_release(memory), STAG_OK);
}

TEST_P(CMemory, a_call_that_is_cancelled_ends_and_leaves_the_others_alone) {
  stag_memory* const memory = registered();
  Begun cancelled(client_, call_of(HOLD, memory));
  stag_request* const first = held();
  Begun other(client_, call_of(HOLD, memory));
  stag_request* const second = held();
  EXPECT_EQ(stag_call_cancel(client_, cancelled.call()), STAG_OK);
  EXPECT_EQ(cancelled.ended(), STAG_CANCELLED);
  EXPECT_EQ(stag_memory_release(memory), STAG_BUSY) << "the other call";
  EXPECT_EQ(stag_call_cancel(client_, cancelled.call()), STAG_OK) << "it has ended: nothing";
  stag_results results = sized(stag_results{});
  EXPECT_EQ(stag_reply(second, &results), STAG_OK);
  EXPECT_EQ(other.ended(), STAG_OK);
  EXPECT_EQ(stag_memory_release(memory), STAG_OK);
  EXPECT_EQ(stag_reply(first, &results), STAG_OK) << "to nobody";
  EXPECT_EQ(stag_ping(client_, &error_), STAG_OK);
  EXPECT_EQ(stag_call_cancel(client_, nullptr), STAG_INVALID);
}

// The server answers all the same.
TEST_P(CMemory, is_written_to_by_nobody_once_a_cancelled_call_has_ended) {
  stag_memory* const memory = registered();
  stag_call call = call_of(HOLD, memory);
  call.results_bulk = memory_.data() + kSize;
  call.results_bulk_capacity = kSize;
  call.results_bulk_memory = memory;
  Begun cancelled(client_, call);
  stag_request* const request = held();
  EXPECT_EQ(stag_call_cancel(client_, cancelled.call()), STAG_OK);
  EXPECT_EQ(cancelled.ended(), STAG_CANCELLED);
  std::fill(memory_.begin(), memory_.end(), std::byte{0x5a});
  put_.assign(kSize, std::byte{0x11});
  stag_results results = sized(stag_results{});
  results.bulk = put_.data();
  results.bulk_length = put_.size();
  results.release = count_released;
  results.release_context = &released_;
  EXPECT_EQ(stag_reply(request, &results), STAG_OK);
  released_.wait(0);
  EXPECT_EQ(stag_ping(client_, &error_), STAG_OK) << "what left the server before has come";
  EXPECT_EQ(std::count(memory_.begin(), memory_.end(), std::byte{0x5a}),
            static_cast<std::ptrdiff_t>(memory_.size()));
  EXPECT_EQ(stag_memory_release(memory), STAG_OK);
}

TEST_P(CMemory, a_server_with_a_request_that_is_not_replied_to_is_stopped_later) {
  Begun call(client_, call_of(HOLD, nullptr));
  stag_request* const request = held();
  EXPECT_EQ(stag_stop_within(server_, 0), STAG_TIMED_OUT);
  EXPECT_EQ(stag_stop_within(server_, 1), STAG_TIMED_OUT);
  stag_client* late = nullptr;
  stag_connect_options options{};
  options.size = sizeof options;
  options.transport = GetParam();
  EXPECT_NE(
      stag_connect("127.0.0.1", stag_server_port(server_), &program_, &options, &late, &error_),
      STAG_OK);
  EXPECT_EQ(stag_refuse(request, STAG_SYSTEM_ERR), STAG_OK) << "its connection is gone";
  EXPECT_EQ(stag_stop_within(std::exchange(server_, nullptr), 60'000), STAG_OK);
  EXPECT_EQ(stag_disconnect(std::exchange(client_, nullptr)), STAG_OK);
  EXPECT_EQ(call.ended(), STAG_CANCELLED);
  EXPECT_EQ(stag_stop_within(nullptr, 1), STAG_OK);
}

INSTANTIATE_TEST_SUITE_P(Transports, CMemory, ::testing::Values(STAG_RDMA, STAG_TCP),
                         [](const auto& of) { return of.param == STAG_TCP ? "Tcp" : "Rdma"; });

}  // namespace
}  // namespace stag::c::registered
