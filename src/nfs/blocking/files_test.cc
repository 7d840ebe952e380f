#include <thread>

#include "endpoint/connector.h"
#include "testing/nfs/blocking_fixture.h"
#include "testing/scarce.h"

namespace stag::nfs::blocking {
namespace {

using client::FileSystem;
using client::Status;
using client::Url;
namespace access = client::access;

TEST_F(BlockingFiles, are_made_written_read_listed_and_removed) {
  for (const auto transport : {endpoint::Transport::Tcp, endpoint::Transport::Rdma}) {
    Outcome<Files> files = opened(transport);
    ASSERT_TRUE(files) << files.error().sentence;
    ASSERT_TRUE(files->mkdir("dir"));
    const auto made = files->create("dir/file");
    ASSERT_TRUE(made) << made.error().sentence;
    const std::string text(3'000'000, 'x');
    EXPECT_TRUE(files->write(made->file, 5, bytes_of(text)));
    EXPECT_TRUE(files->close(made->file));
    EXPECT_EQ(files->find("dir/file")->attributes.size, text.size() + 5);
    const auto opened = files->open("/dir/file", access::kRead);
    ASSERT_TRUE(opened);
    std::string back(text.size() + 100, '?');
    const auto read = files->read(opened->file, 5, std::as_writable_bytes(std::span(back)));
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, text.size());
    EXPECT_TRUE(back.starts_with(text));
    EXPECT_TRUE(files->close(opened->file));
    EXPECT_TRUE(files->rename("dir/file", "dir/moved"));
    const auto entries = files->list("dir");
    ASSERT_TRUE(entries);
    ASSERT_EQ(entries->size(), 1u);
    EXPECT_EQ(entries->front().name, "moved");
    EXPECT_TRUE(files->rmdir("dir").error().is(Status::NotEmpty));
    EXPECT_TRUE(files->remove("dir/moved"));
    EXPECT_TRUE(files->rmdir("dir/"));
    EXPECT_TRUE(files->find("dir").error().is(Status::NoEntry));
  }
}

TEST_F(BlockingFiles, have_paths_below_that_of_the_URL) {
  {
    Outcome<Files> top = opened(endpoint::Transport::Tcp);
    ASSERT_TRUE(top && top->mkdir("a") && top->mkdir("a/b"));
  }
  Outcome<Files> files = opened(endpoint::Transport::Tcp, "/data/a");
  ASSERT_TRUE(files) << files.error().sentence;
  EXPECT_TRUE(files->find("b"));
  EXPECT_EQ(files->list("")->size(), 1u);
}

TEST_F(BlockingFiles, run_whatever_else_the_FileSystem_has) {
  Outcome<Files> files = opened(endpoint::Transport::Tcp);
  ASSERT_TRUE(files) << files.error().sentence;
  const auto usage = files->run([](FileSystem& f) { return f.usage(); });
  ASSERT_TRUE(usage) << usage.error().sentence;
}

TEST_F(BlockingFiles, are_used_by_many_threads) {
  Outcome<Files> files = opened(endpoint::Transport::Tcp);
  ASSERT_TRUE(files) << files.error().sentence;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&files, i] {
      for (int k = 0; k < 20; ++k)
        EXPECT_TRUE(files->mkdir(std::to_string(i) + "-" + std::to_string(k)));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(files->list("")->size(), 80u);
}

TEST_F(BlockingFiles, are_delegated_by_version_4_0_where_the_URL_says_where_to_call_back) {
  endpoint::Loops loops;
  auto to_clients = endpoint::make_connector(loops.at(0), {.transport = endpoint::Transport::Tcp});
  endpoint::run_on(loops.at(0), [&] { nfs4.start_callbacks(loops.at(0), to_clients.get()); });
  options.files.calls.delegations = true;
  {
    Outcome<Files> files =
        opened(endpoint::Transport::Tcp, "/data", "version=4.0&callback=127.0.0.1");
    ASSERT_TRUE(files) << files.error().sentence;
    ASSERT_TRUE(files->close(files->create("file")->file));
    // Not before the server has reached this client.
    for (int i = 0; i < 100'000 && delegations() == 0; ++i)
      ASSERT_TRUE(files->close(files->open("file", access::kRead)->file));
    EXPECT_EQ(delegations(), 1u);
  }
  listener.reset();
  std::promise<void> ended;
  endpoint::run_on(loops.at(0), [&] { nfs4.wind_up([&ended] { ended.set_value(); }); });
  ended.get_future().get();
  endpoint::run_on(loops.at(0), [&] {
    nfs4.stop_callbacks();
    to_clients = nullptr;
  });
}

TEST_F(BlockingFiles, say_why_a_server_cannot_be_reached) {
  const Outcome<Files> files = Files::open(*Url::parse("nfs://127.0.0.1:1/data?proto=tcp"));
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().kind, client::Error::Kind::Call);
}

TEST_F(BlockingFiles, say_what_the_system_has_no_more_of) {
  if (testing::sanitizer_needs_descriptors()) GTEST_SKIP() << "the sanitizer needs descriptors";
  const testing::FewFiles few(1);
  const Outcome<Files> files = Files::open(*Url::parse("nfs://127.0.0.1:1/data?proto=tcp"));
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().kind, client::Error::Kind::Call);
  EXPECT_EQ(files.error().call.reason, Reason::TooManyOpenFiles);
}

}  // namespace
}  // namespace stag::nfs::blocking
