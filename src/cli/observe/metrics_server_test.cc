#include "cli/observe/metrics_server.h"

#include <gtest/gtest.h>
#include <prometheus/metric_family.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "net/listener.h"
#include "net/socket_address.h"

namespace stag::cli {
namespace {

class Scraper {
 public:
  explicit Scraper(const net::SocketAddress& at) : fd_(::socket(at.family(), SOCK_STREAM, 0)) {
    EXPECT_EQ(::connect(fd_.fd(), at.data(), at.size()), 0);
  }
  void say(std::string_view text) {
    EXPECT_EQ(::send(fd_.fd(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // All that comes until the server ends the connection.
  std::string hear() {
    std::string all;
    char part[512];
    for (ssize_t length; (length = ::read(fd_.fd(), part, sizeof part)) > 0;)
      all.append(part, static_cast<std::size_t>(length));
    return all;
  }

 private:
  UniqueFd fd_;
};

// As many as may be there at a time.
constexpr int kMost = 8;
constexpr std::string_view kRequest = "GET /metrics HTTP/1.1\r\n\r\n";

TEST(MetricsServer, answers_HEAD_with_the_head_alone_and_says_what_is_allowed) {
  auto server =
      MetricsServer::open("127.0.0.1:0", [] { return std::vector<prometheus::MetricFamily>(1); });
  ASSERT_TRUE(server.ok());
  const auto at = net::numeric_address({"127.0.0.1", (*server)->at().port});
  const auto answer_to = [&](std::string_view request) {
    Scraper scraper(*at);
    scraper.say(request);
    return scraper.hear();
  };
  const std::string whole = answer_to(kRequest);
  EXPECT_EQ(answer_to("HEAD /metrics HTTP/1.1\r\n\r\n"),
            whole.substr(0, whole.find("\r\n\r\n") + 4));
  EXPECT_TRUE(answer_to("HEAD / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  const std::string refused = answer_to("POST /metrics HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 405 ")) << refused;
  EXPECT_NE(refused.find("\r\nAllow: GET, HEAD\r\n"), std::string::npos) << refused;
}

TEST(MetricsServer, will_have_an_address_that_is_given_up_and_no_other_with_its_port) {
  const auto taken = net::listening_socket({"127.0.0.1", 0});
  ASSERT_TRUE(taken.ok());
  const Address at = net::SocketAddress::local_of(taken->fd()).address();
  const std::string text = to_string(at);
  EXPECT_TRUE(MetricsServer::rehearse(text, at).ok());
  EXPECT_TRUE(MetricsServer::rehearse(text, {"::", at.port}).ok());
  EXPECT_FALSE(MetricsServer::rehearse(text, {"127.0.0.2", at.port}).ok());
  EXPECT_FALSE(MetricsServer::rehearse(text, {}).ok());
}

TEST(MetricsServer, lets_the_oldest_go_that_asks_for_nothing_when_another_comes) {
  auto server =
      MetricsServer::open("127.0.0.1:0", [] { return std::vector<prometheus::MetricFamily>(); });
  ASSERT_TRUE(server.ok());
  const std::string url = (*server)->url();
  const std::string port = url.substr(url.rfind(':') + 1, url.rfind('/') - url.rfind(':') - 1);
  const auto at = net::numeric_address({"127.0.0.1", static_cast<std::uint16_t>(std::stoi(port))});
  std::vector<Scraper> silent;
  silent.reserve(kMost);
  for (int i = 0; i < kMost; ++i) silent.emplace_back(*at);
  silent[0].say(kRequest.substr(0, 10));
  for (int i = 0; i < 3; ++i) {
    Scraper prometheus(*at);
    prometheus.say(kRequest);
    EXPECT_TRUE(prometheus.hear().starts_with("HTTP/1.1 200 OK"));
  }
  EXPECT_EQ(silent[0].hear(), "");
}

}  // namespace
}  // namespace stag::cli
