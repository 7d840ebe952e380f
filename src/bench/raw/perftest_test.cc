#include "bench/raw/perftest.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/check.h"

namespace stag::bench {
namespace {

const Figure kRoundTrip{"null_rtt", Figure::Kind::RoundTrip};
const Figure kRead{"read_1m", Figure::Kind::Bandwidth, Operation::Read, 1 << 20, 4};
const Figure kWrite{"write_1m", Figure::Kind::Bandwidth, Operation::Write, 1 << 20, 4};

// Programs of perftest's names that do as they are told, instead of those that may be installed.
class PerftestTest : public ::testing::Test {
 protected:
  PerftestTest() {
    STAG_CHECK(::mkdtemp(folder_.data()) != nullptr);
    ::setenv("PATH", (folder_ + ":/usr/bin:/bin").c_str(), 1);
  }
  ~PerftestTest() override {
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

  // `client`: what a shell does when it has a server's address; a server waits for its end.
  void provide(const std::string& name, const std::string& client) {
    const std::filesystem::path file = std::filesystem::path(folder_) / name;
    std::ofstream(file) << "#!/bin/sh\ncd " << folder_ << "\ncase \"$*\" in\n*192.0.2.1) " << client
                        << ";;\n*) exec tail -f /dev/null;;\nesac\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  std::string words_of_client() const {
    std::ifstream file(folder_ + "/words");
    std::string words;
    std::getline(file, words);
    return words;
  }

  const std::string path_ = std::getenv("PATH");
  std::string folder_ = ::testing::TempDir() + "stag-perftest-XXXXXX";
  const Perftest perftest_{"192.0.2.1"};
  const Sampling sampling_{2, 0.5};
};

TEST_F(PerftestTest, tells_a_round_trip_where_the_program_tells_half_of_it) {
  provide("ib_send_lat", "echo \"$*\" >words; echo 2.50");
  const auto measured = perftest_.measure(kRoundTrip, sampling_, 10);
  ASSERT_TRUE(measured) << measured.error();
  EXPECT_DOUBLE_EQ(measured->value, 5.0);
  EXPECT_NE(words_of_client().find("-s 128 -n 50000 "), std::string::npos) << words_of_client();
}

TEST_F(PerftestTest, compares_a_READ_with_RDMA_Writes_and_a_WRITE_with_RDMA_Reads) {
  provide("ib_write_bw", "echo \"$*\" >words; echo ' 1000.00'");
  provide("ib_read_bw", "echo 500");
  const auto read = perftest_.measure(kRead, sampling_, 1.048576);
  const auto write = perftest_.measure(kWrite, sampling_, 1.048576);
  ASSERT_TRUE(read.ok() && write.ok());
  EXPECT_DOUBLE_EQ(read->value, 1.048576);
  EXPECT_DOUBLE_EQ(write->value, 0.524288);
  EXPECT_NE(words_of_client().find("-s 1048576 -n 500 "), std::string::npos) << words_of_client();
}

TEST_F(PerftestTest, tries_again_until_the_server_listens) {
  provide("ib_send_lat", "if [ -e asked ]; then echo 1; else touch asked; exit 1; fi");
  const auto measured = perftest_.measure(kRoundTrip, sampling_, 10);
  ASSERT_TRUE(measured) << measured.error();
  EXPECT_DOUBLE_EQ(measured->value, 2.0);
}

TEST_F(PerftestTest, names_the_package_of_a_program_that_is_not_installed) {
  ::setenv("PATH", folder_.c_str(), 1);
  const auto measured = perftest_.measure(kRoundTrip, sampling_, 10);
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error(), "cannot run ib_send_lat (on Debian it is in the package perftest)");
}

TEST_F(PerftestTest, has_no_reference_for_figures_that_none_of_its_programs_measures) {
  EXPECT_TRUE(Perftest::compares_with(kRoundTrip));
  EXPECT_TRUE(Perftest::compares_with(kRead));
  EXPECT_FALSE(Perftest::compares_with({"getattr_rate_32", Figure::Kind::Rate}));
}

}  // namespace
}  // namespace stag::bench
