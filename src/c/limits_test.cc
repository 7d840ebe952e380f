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

// PUT(bulk) answers nothing; RAW the same without bulk.
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
  static void handler(void*, stag_request* request) {
    const stag_results results = with_size(stag_results{});
    EXPECT_EQ(stag_reply(request, &results), STAG_OK);
  }

  enum Procedure : std::uint32_t { PUT = 1, RAW = 2 };
  const std::array<stag_procedure, 2> procedures_{
      {{sizeof(stag_procedure), PUT, STAG_ARGUMENTS_BULK, 0, 0},
       {sizeof(stag_procedure), RAW, 0, 0, 0}}};
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

TEST_P(CLimits, arguments_longer_than_a_record_are_an_error) {
  const Zeros memory(std::size_t{2} << 30);
  stag_call call = with_size(stag_call{});
  call.procedure = PUT;
  call.bulk = memory.data();
  call.bulk_length = 0x7fff'fff0u;
  EXPECT_NE(stag_call_wait(client_, &call, &error_), STAG_OK);
  if (GetParam() == STAG_TCP) {
    EXPECT_STREQ(error_.reason, "RpcCallTooLong");
  }
  EXPECT_EQ(stag_ping(client_, &error_), STAG_OK);
}

INSTANTIATE_TEST_SUITE_P(Transports, CLimits, ::testing::Values(STAG_RDMA, STAG_TCP),
                         [](const auto& of) { return of.param == STAG_TCP ? "Tcp" : "Rdma"; });

}  // namespace
}  // namespace stag::c
