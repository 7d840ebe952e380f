// Arguments and results that are longer than something takes.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "c/stag.h"

namespace stag::c {
namespace {

template <class T>
T with_size(T value = {}) {
  value.size = sizeof value;
  return value;
}

// Memory that is there to be pointed at.
class Zeros {
 public:
  explicit Zeros(std::size_t size)
      : size_(size),
        at_(mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    EXPECT_NE(at_, MAP_FAILED);
  }
  ~Zeros() { munmap(at_, size_); }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  const void* data() const { return at_; }

 private:
  std::size_t size_;
  void* at_;
};

// PUT(bulk) and RAW(words) answer nothing, GET() as much bulk, and WORDS() as many words, as is
// set.
class CLimits : public ::testing::TestWithParam<stag_transport> {
 protected:
  CLimits() {
    stag_serve_options serve = with_size(stag_serve_options{});
    serve.transport = GetParam();
    EXPECT_EQ(stag_serve("127.0.0.1", 0, &program_, handler, this, &serve, &server_, &error_), 0);
    stag_connect_options connect = with_size(stag_connect_options{});
    connect.transport = GetParam();
    EXPECT_EQ(stag_connect("127.0.0.1", stag_server_port(server_), &program_, &connect, &client_,
                           &error_),
              STAG_OK)
        << error_.text;
  }
  ~CLimits() override {
    stag_disconnect(client_);
    stag_stop(server_);
  }
  static void handler(void* context, stag_request* request) {
    const auto& answer = static_cast<const CLimits*>(context)->answer_;
    stag_results results = with_size(stag_results{});
    if (stag_request_procedure(request) == GET) {
      results.bulk = answer.data();
      results.bulk_length = answer.size();
    } else if (stag_request_procedure(request) == WORDS) {
      results.results = answer.data();
      results.results_length = answer.size();
    }
    EXPECT_EQ(stag_reply(request, &results), STAG_OK);
  }
  // Results of so many bytes, where there is room for 1000.
  stag_call call_for(std::uint32_t procedure, std::size_t answer) {
    answer_.resize(answer);
    stag_call call = with_size(stag_call{});
    call.procedure = procedure;
    call.results = call.results_bulk = room_.data();
    call.results_capacity = call.results_bulk_capacity = room_.size();
    call.results_length = call.results_bulk_length = 7;
    return call;
  }

  enum Procedure : std::uint32_t { PUT = 1, RAW = 2, GET = 3, WORDS = 4 };
  const std::array<stag_procedure, 4> procedures_{
      {{sizeof(stag_procedure), PUT, STAG_ARGUMENTS_BULK, 0, 0},
       {sizeof(stag_procedure), RAW, 0, 0, 0},
       {sizeof(stag_procedure), GET, STAG_RESULTS_BULK, 0, 0},
       {sizeof(stag_procedure), WORDS, 0, 0, 0}}};
  std::vector<std::byte> answer_;
  std::array<std::byte, 1000> room_{};
  const stag_program program_{sizeof program_, 0x2000'00ab, 1, procedures_.data(),
                              procedures_.size()};
  stag_error error_ = with_size(stag_error{});
  stag_server* server_ = nullptr;
  stag_client* client_ = nullptr;
};

TEST_P(CLimits, arguments_that_no_message_can_hold_are_refused) {
  const Zeros memory(std::size_t{4} << 30);
  stag_call call = with_size(stag_call{});
  call.procedure = PUT;
  call.bulk = memory.data();
  call.bulk_length = 0xffff'fff0u;
  EXPECT_EQ(stag_call_wait(client_, &call, &error_), STAG_INVALID);
  call = with_size(stag_call{});
  call.procedure = RAW;
  call.arguments = memory.data();
  call.arguments_length = 0xffff'fff0u;
  EXPECT_EQ(stag_call_wait(client_, &call, &error_), STAG_INVALID);
}

TEST_P(CLimits, arguments_longer_than_the_server_takes_are_an_error_that_says_so) {
  const Zeros memory(std::size_t{2} << 30);
  for (const std::size_t length : {std::size_t{17} << 20, std::size_t{0x7fff'fff0}}) {
    stag_call call = with_size(stag_call{});
    call.procedure = PUT;
    call.bulk = memory.data();
    call.bulk_length = length;
    EXPECT_EQ(stag_call_wait(client_, &call, &error_), STAG_TOO_LONG) << error_.text;
    EXPECT_STREQ(error_.reason,
                 GetParam() == STAG_TCP ? "RpcCallTooLong" : "RdmaPeerRefusedChunks");
    EXPECT_EQ(stag_ping(client_, &error_), STAG_OK);
  }
}

TEST_P(CLimits, results_longer_than_their_memory_are_an_error_that_says_so) {
  for (const std::uint32_t procedure : {GET, WORDS})
    for (const std::size_t length : {100u << 10, 5u << 20}) {
      stag_call call = call_for(procedure, length);
      EXPECT_EQ(stag_call_wait(client_, &call, &error_), STAG_TOO_LONG) << error_.text;
      const bool came = GetParam() == STAG_TCP && length < 4u << 20;
      EXPECT_EQ(call.results_length + call.results_bulk_length, came ? length : 0u);
      EXPECT_EQ(stag_ping(client_, &error_), STAG_OK);
    }
}

INSTANTIATE_TEST_SUITE_P(Transports, CLimits, ::testing::Values(STAG_RDMA, STAG_TCP),
                         [](const auto& of) { return of.param == STAG_TCP ? "Tcp" : "Rdma"; });

}  // namespace
}  // namespace stag::c
