// What the system has no more of is an error of the function that wanted it.
#include <gtest/gtest.h>

#include <array>

#include "c/stag.h"
#include "testing/scarce.h"

namespace stag::c {
namespace {

using testing::FewFiles;
using testing::NoThreads;

class CResources : public ::testing::TestWithParam<stag_transport> {
 protected:
  CResources() {
    EXPECT_EQ(serve(&server_), STAG_OK);
    EXPECT_EQ(connect(), STAG_OK) << "with enough of everything";
  }
  ~CResources() override { EXPECT_EQ(stag_stop(server_), STAG_OK); }

  int serve(stag_server** server, std::uint32_t connections = 0, std::uint32_t per_client = 0) {
    stag_serve_options options{};
    options.max_connections = connections;
    options.max_connections_per_client = per_client;
    options.size = sizeof options;
    options.transport = GetParam();
    options.threads = 2;
    const auto refuse = [](void*, stag_request* request) { stag_refuse(request, STAG_SYSTEM_ERR); };
    return stag_serve("127.0.0.1", 0, &program_, refuse, nullptr, &options, server, &error_);
  }
  // And disconnects again.
  int connect() {
    stag_connect_options options{};
    options.size = sizeof options;
    options.transport = GetParam();
    stag_client* client = nullptr;
    const int status =
        stag_connect("127.0.0.1", stag_server_port(server_), &program_, &options, &client, &error_);
    EXPECT_EQ(stag_disconnect(client), STAG_OK);
    return status;
  }

  const stag_procedure procedure_{sizeof procedure_, 1, 0, 0, 0};
  const stag_program program_{sizeof program_, 0x2000'00ac, 1, &procedure_, 1};
  stag_error error_{sizeof error_, 0, 0, {}, {}};
  stag_server* server_ = nullptr;
};

TEST_P(CResources, descriptors_that_run_out_are_an_error_of_the_function_that_needs_them) {
  if (testing::sanitizer_needs_descriptors()) GTEST_SKIP() << "the sanitizer needs descriptors";
  stag_server* second = nullptr;
  // A loop has two, and each connection or listener one.
  for (rlim_t spare = 0; spare < 3; ++spare) {
    const FewFiles few(spare);
    EXPECT_EQ(connect(), STAG_UNREACHABLE);
    EXPECT_STREQ(error_.reason, "TooManyOpenFiles") << spare;
  }
  for (rlim_t spare = 0; spare < 5; ++spare) {
    const FewFiles few(spare);
    EXPECT_EQ(serve(&second), STAG_UNREACHABLE);
    EXPECT_STREQ(error_.reason, "TooManyOpenFiles") << spare;
  }
  EXPECT_EQ(connect(), STAG_OK) << error_.text;
}

TEST_P(CResources, threads_that_run_out_are_an_error_of_the_function_that_needs_them) {
  {
    const NoThreads none;
    stag_server* second = nullptr;
    EXPECT_EQ(connect(), STAG_UNREACHABLE);
    EXPECT_STREQ(error_.reason, "TooManyThreads");
    EXPECT_EQ(serve(&second), STAG_UNREACHABLE);
    EXPECT_STREQ(error_.reason, "TooManyThreads");
  }
  EXPECT_EQ(connect(), STAG_OK) << error_.text;
}

// Whether a client beyond the first one is served.
class CConnections : public CResources {
 protected:
  bool serves_another(std::uint32_t connections, std::uint32_t per_client) {
    stag_server* server = nullptr;
    std::array<stag_client*, 2> clients{};
    EXPECT_EQ(serve(&server, connections, per_client), STAG_OK);
    stag_connect_options options{};
    options.size = sizeof options;
    options.transport = GetParam();
    bool served = true;
    for (stag_client*& each : clients) {
      EXPECT_TRUE(served) << "the first one";
      served = stag_connect("127.0.0.1", stag_server_port(server), &program_, &options, &each,
                            &error_) == STAG_OK &&
               stag_ping(each, &error_) == STAG_OK;
    }
    for (stag_client* each : clients) EXPECT_EQ(stag_disconnect(each), STAG_OK);
    EXPECT_EQ(stag_stop(server), STAG_OK);
    return served;
  }
};

TEST_P(CConnections, are_as_many_as_the_program_says) {
  EXPECT_TRUE(serves_another(0, 0));
  EXPECT_TRUE(serves_another(2, 2));
  EXPECT_FALSE(serves_another(1, 0));
  EXPECT_FALSE(serves_another(2, 1));
}

INSTANTIATE_TEST_SUITE_P(Transports, CConnections, ::testing::Values(STAG_RDMA, STAG_TCP),
                         [](const auto& of) { return of.param == STAG_TCP ? "Tcp" : "Rdma"; });
INSTANTIATE_TEST_SUITE_P(Transports, CResources, ::testing::Values(STAG_RDMA, STAG_TCP),
                         [](const auto& of) { return of.param == STAG_TCP ? "Tcp" : "Rdma"; });

}  // namespace
}  // namespace stag::c
