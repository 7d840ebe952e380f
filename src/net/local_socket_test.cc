// Unix sockets with a path: who may be replaced, who may connect, and who does.
#include "net/local_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "net/socket_address.h"

namespace stag::net {
namespace {

class LocalSocket : public ::testing::Test {
 protected:
  LocalSocket() {
    char name[] = "/tmp/stag-local-XXXXXX";
    folder = mkdtemp(name);
    options.path = folder + "/control";
  }
  ~LocalSocket() override { std::filesystem::remove_all(folder); }

  UniqueFd connect() const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = numeric_address({options.path, 0});
    const bool done = ::connect(fd.fd(), address->data(), address->size()) == 0;
    return done ? std::move(fd) : UniqueFd();
  }
  mode_t mode() const {
    struct stat found {};
    EXPECT_EQ(lstat(options.path.c_str(), &found), 0);
    return found.st_mode & 07777;
  }

  std::string folder;
  LocalListenOptions options;
};

TEST_F(LocalSocket, is_open_to_its_own_user_whatever_the_umask) {
  const mode_t before = umask(0);
  const auto listening = listen_locally(options);
  umask(before);
  ASSERT_TRUE(listening) << listening.error();
  EXPECT_EQ(mode(), 0600u);
}

TEST_F(LocalSocket, is_open_to_a_group_that_was_named) {
  options.group = getgid();
  const auto listening = listen_locally(options);
  ASSERT_TRUE(listening) << listening.error();
  EXPECT_EQ(mode(), 0660u);
}

TEST_F(LocalSocket, is_replaced_when_its_server_is_gone) {
  { ASSERT_TRUE(listen_locally(options)); }  // Its file stays.
  ASSERT_TRUE(std::filesystem::exists(options.path));
  EXPECT_FALSE(connect());
  const auto listening = listen_locally(options);
  ASSERT_TRUE(listening) << listening.error();
  EXPECT_TRUE(connect());
}

TEST_F(LocalSocket, is_left_alone_while_its_server_listens) {
  options.backlog = 1;
  const auto listening = listen_locally(options);
  ASSERT_TRUE(listening);
  EXPECT_EQ(listen_locally(options).error(), "another server listens there");
  // Also when so many wait that it takes no more.
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(listen_locally(options).error(), "another server listens there");
  EXPECT_TRUE(std::filesystem::exists(options.path));
}

TEST_F(LocalSocket, does_not_take_the_place_of_another_file) {
  std::ofstream(options.path) << "precious";
  EXPECT_EQ(listen_locally(options).error(), "there is a file that is no socket");
  EXPECT_EQ(std::filesystem::file_size(options.path), 8u);
}

TEST_F(LocalSocket, has_a_path_that_fits_and_a_folder_that_is_there) {
  options.path = folder + "/" + std::string(120, 'x');
  EXPECT_NE(listen_locally(options).error().find("107 bytes"), std::string::npos);
  options.path = "control";
  EXPECT_NE(listen_locally(options).error().find("begin with /"), std::string::npos);
  options.path = folder + "/no/control";
  EXPECT_EQ(listen_locally(options).error(), "No such file or directory");
}

TEST_F(LocalSocket, is_tried_without_a_trace) {
  EXPECT_TRUE(may_listen_locally(options.path));
  EXPECT_FALSE(std::filesystem::exists(options.path));
  {
    const auto listening = listen_locally(options);
    EXPECT_EQ(may_listen_locally(options.path).error(), "another server listens there");
  }
  EXPECT_TRUE(may_listen_locally(options.path)) << "the server is gone";
  EXPECT_TRUE(std::filesystem::exists(options.path));
  const std::string file = folder + "/file", longest = folder + "/" + std::string(120, 'x');
  std::ofstream(file) << "precious";
  EXPECT_EQ(may_listen_locally(file).error(), "there is a file that is no socket");
  EXPECT_NE(may_listen_locally(longest).error().find("107 bytes"), std::string::npos);
}

TEST_F(LocalSocket, tells_who_connected) {
  const auto listening = listen_locally(options);
  ASSERT_TRUE(listening);
  const UniqueFd client = connect();
  const UniqueFd accepted(accept4(listening->fd(), nullptr, nullptr, SOCK_CLOEXEC));
  const auto who = peer_credentials(accepted.fd());
  ASSERT_TRUE(who);
  EXPECT_EQ(who->uid, geteuid());
  EXPECT_EQ(who->pid, getpid());
  const UniqueFd tcp(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(peer_credentials(tcp.fd()));
}

}  // namespace
}  // namespace stag::net
