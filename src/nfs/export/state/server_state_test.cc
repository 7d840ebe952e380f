#include "nfs/export/state/server_state.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/siphash.h"

namespace stag::nfs {
namespace {

// A directory name of its own for each test, removed afterwards.
class ServerStateTest : public ::testing::Test {
 protected:
  ServerStateTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::temp_directory_path() /
                 ("stag-state-" + std::to_string(::getpid()) + "-" + info->name());
    std::filesystem::remove_all(directory_);
  }
  ~ServerStateTest() override { std::filesystem::remove_all(directory_); }

  ServerState open() {
    auto state = ServerState::open(path());
    if (!state) ADD_FAILURE() << state.error().message;
    return state ? *state : ServerState{};
  }
  std::string path() const { return directory_ / "deep" / "state"; }
  void overwrite(const std::string& name, std::string_view text) {
    std::ofstream(path() + "/" + name, std::ios::trunc) << text;
  }

  std::filesystem::path directory_;
};

TEST_F(ServerStateTest, keeps_its_key_and_changes_its_verifier_from_start_to_start) {
  const ServerState first = open();
  const ServerState second = open();
  EXPECT_EQ(first.handle_key, second.handle_key);
  EXPECT_NE(first.handle_key, SipKey{});
  EXPECT_EQ(first.boot_verifier >> 32, 1u);
  EXPECT_EQ(second.boot_verifier >> 32, 2u);
}

TEST_F(ServerStateTest, draws_another_key_for_another_directory) {
  const ServerState first = open();
  std::filesystem::remove_all(path());
  EXPECT_NE(open().handle_key, first.handle_key);
}

TEST_F(ServerStateTest, shows_its_key_to_nobody_else) {
  open();
  struct stat status {};
  ASSERT_EQ(::stat((path() + "/handle.key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(ServerStateTest, refuses_a_damaged_key_instead_of_making_every_handle_stale) {
  open();
  for (const char* damaged : {"", "0123", "zz23456789abcdef0123456789abcdef\n",
                              "0123456789abcdef0123456789abcdef0123456789abcdef\n"}) {
    overwrite("handle.key", damaged);
    const auto state = ServerState::open(path());
    ASSERT_FALSE(state.ok()) << damaged;
    EXPECT_NE(state.error().message.find("handle.key is damaged"), std::string::npos);
  }
}

TEST_F(ServerStateTest, survives_a_damaged_counter) {
  const ServerState first = open();
  overwrite("starts", "many");
  const ServerState second = open();
  EXPECT_EQ(first.handle_key, second.handle_key);
  EXPECT_NE(first.boot_verifier, second.boot_verifier);
}

TEST_F(ServerStateTest, says_where_it_could_not_write) {
  std::filesystem::create_directories(directory_);
  std::ofstream(directory_ / "deep") << "a file";
  const auto state = ServerState::open(path());
  ASSERT_FALSE(state.ok());
  EXPECT_NE(state.error().message.find("deep"), std::string::npos);
}

}  // namespace
}  // namespace stag::nfs
