#include "cli/serve/host_lookup.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

namespace stag::cli {
namespace {

using Texts = std::vector<std::string>;

constexpr Duration kMoment = std::chrono::milliseconds(1);
constexpr Duration kEndless = std::chrono::hours(24);

// Knows "desk"; a question for "silent" gets no answer before the end.
class NameService {
 public:
  HostLookup lookup() const {
    return [ended = ended_](const std::string& host) -> HostAnswer {
      if (host == "silent") ended.wait();
      if (host == "desk") return Texts{"192.0.2.8"};
      return Failure{std::string("no such host")};
    };
  }
  ~NameService() { end_.set_value(); }

 private:
  std::promise<void> end_;
  std::shared_future<void> ended_ = end_.get_future().share();
};

TEST(HostName, may_have_letters_digits_hyphens_dots_and_underscores) {
  for (const char* name : {"desk", "desk-2.example.com", "my_host", "_x.my_dom.example", "x1"})
    EXPECT_TRUE(is_host_name(name)) << name;
  for (const char* other : {"", "192.0.2.1", "192.0.2.0/24", "2001:db8::1", "fe80::", "*",
                            "*.my_dom", "@my_group", "my host", "my_host/24", "_", "1_2"})
    EXPECT_FALSE(is_host_name(other)) << other;
}

TEST(HostInquiry, has_an_answer_for_each_host) {
  const NameService names;
  const HostInquiry inquiry({"desk", "nowhere"}, names.lookup());
  inquiry.wait(kEndless, {});
  EXPECT_TRUE(inquiry.ended());
  const HostAnswers answers = inquiry.answers();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(*answers.at("desk"), Texts{"192.0.2.8"});
  EXPECT_EQ(answers.at("nowhere").error(), "no such host");
}

TEST(HostInquiry, has_an_answer_where_there_was_no_memory_to_ask) {
  const HostInquiry inquiry({"desk", "nowhere"}, [](const std::string& host) -> HostAnswer {
    if (host == "desk") throw std::bad_alloc();
    return Failure{std::string("no such host")};
  });
  inquiry.wait(kEndless, {});
  EXPECT_TRUE(inquiry.ended());
  EXPECT_EQ(inquiry.answers().at("desk").error(), "no memory");
}

TEST(HostInquiry, has_ended_when_it_asks_for_no_host) {
  const NameService names;
  const HostInquiry inquiry({}, names.lookup());
  inquiry.wait(kEndless, {});
  EXPECT_TRUE(inquiry.ended());
  EXPECT_TRUE(inquiry.answers().empty());
}

TEST(HostInquiry, goes_on_beside_a_name_that_gets_no_answer) {
  const NameService names;
  const HostInquiry inquiry({"a", "desk", "silent", "z"}, names.lookup());
  while (!inquiry.answers().at("desk")) inquiry.wait(kMoment, {});
  EXPECT_FALSE(inquiry.ended());
  EXPECT_EQ(inquiry.answers().at("silent").error(), "the name service does not answer");
}

TEST(HostInquiry, is_not_waited_for_once_somebody_wants_an_end) {
  const NameService names;
  const HostInquiry inquiry({"silent"}, names.lookup());
  std::stop_source ending;
  auto waiting =
      std::async(std::launch::async, [&] { inquiry.wait(kEndless, ending.get_token()); });
  ending.request_stop();
  waiting.get();
  EXPECT_FALSE(inquiry.ended());
}

}  // namespace
}  // namespace stag::cli
