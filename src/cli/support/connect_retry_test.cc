#include "cli/support/connect_retry.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::Status;
using namespace std::chrono_literals;

constexpr TimePoint kBegin{};

Error failed(Reason reason) {
  return Error::of_call({"connect", {}}, rpc::CallError::transport(reason));
}

TEST(ConnectRetry, goes_on_with_a_silent_server_for_as_long_as_was_said) {
  const ConnectRetry retry(kBegin, 30s, 0s);
  for (const Reason silent : {Reason::TimedOut, Reason::ConnectTimedOut}) {
    EXPECT_TRUE(retry.goes_on(failed(silent), kBegin + 28s));
    EXPECT_FALSE(retry.goes_on(failed(silent), kBegin + 29s)) << "the time would be over by then";
  }
  EXPECT_FALSE(retry.goes_on(failed(Reason::ConnectionRefused), kBegin)) << "that is an answer";
}

TEST(ConnectRetry, goes_on_with_a_server_that_is_not_there_yet) {
  const ConnectRetry retry(kBegin, 0s, 2min);
  for (const Reason absent : {Reason::ConnectionRefused, Reason::MpaUnanswered, Reason::TimedOut,
                              Reason::NameServiceFailed, Reason::HostUnreachable}) {
    EXPECT_TRUE(retry.goes_on(failed(absent), kBegin + 119s));
    EXPECT_FALSE(retry.goes_on(failed(absent), kBegin + 2min));
  }
}

TEST(ConnectRetry, is_of_no_use_where_the_server_or_the_user_has_decided) {
  const ConnectRetry retry(kBegin, 1h, 1h);
  EXPECT_FALSE(retry.goes_on(Error::of_status({"mount", {}}, Status::Access), kBegin));
  EXPECT_FALSE(retry.goes_on(failed(Reason::Cancelled), kBegin));
  EXPECT_FALSE(retry.goes_on(failed(Reason::GssNoTicket), kBegin));
}

}  // namespace
}  // namespace stag::cli
