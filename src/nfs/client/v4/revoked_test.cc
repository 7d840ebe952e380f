// What the client makes of a server that says it has revoked something (RFC 8881 18.46.3, 18.48).
#include <gtest/gtest.h>

#include "nfs/client/v4/callback_service.h"
#include "testing/nfs/nfs4_client_world.h"

namespace stag::nfs::client {
namespace {

using testing::LoopbackChannel;
using testing::Nfs4ClientWorld;

constexpr std::uint32_t kUpdating = access::kRead | access::kModify;

class Nfs4Revoked : public ::testing::Test, public Nfs4ClientWorld {
 protected:
  using Type = state::StateInfo::Type;

  Nfs4Revoked() : Nfs4ClientWorld(1) {
    options.calls.delegations = true;
    channel.server->nfs4.start_callbacks(loop);
    reverse_ = std::make_shared<LoopbackChannel>(loop, service_.service());
    connection_ = std::make_shared<rpc::Connection>();
    channel.server->channel.origin().reverse = reverse_;
    channel.server->channel.origin().connection = connection_;
    protocol = must(nfs4::Nfs4::connect(channel, options.calls, {&service_, nullptr, nullptr}));
    const Handle top = must(protocol->root({"find the root", {}})).handle;
    FileSystem all(protocol, top, "/", options);
    files_.emplace(protocol, must(all.walk("data")).handle, "/data", options);
  }
  void TearDown() override {
    run(closed());
    channel.server->nfs4.stop_callbacks();
  }
  template <class T>
  T must(Task<Outcome<T>> task) {
    Outcome<T> outcome = run(std::move(task));
    if (!outcome) ADD_FAILURE() << outcome.error().sentence;
    STAG_CHECK(outcome.ok());
    return std::move(*outcome);
  }
  FileSystem& files() { return *files_; }
  File opened(std::string name, std::uint32_t asked) {
    return must(files().create_open(files().root(), std::move(name), {.mode = 0644},
                                    CreateMode::Unchecked, asked))
        .file;
  }
  // A file that is delegated to the client, and that nobody has open.
  Handle delegated(std::string name) {
    const Handle file =
        must(files().create(files().root(), std::move(name), {.mode = 0644})).handle;
    must(files().close(must(files().open(file, access::kRead)).file));
    return file;
  }
  bool is_delegated(const Handle& file) {
    loop.drain();
    const int before = channel.calls;
    must(files().close(must(files().open(file, access::kRead)).file));
    return channel.calls == before;
  }
  Status write(const File& file) {
    const auto wrote = run(files().write(file, 0, bytes_of("text")));
    return wrote ? Status::Ok : wrote.error().status;
  }
  // A call by which the client hears of it, and what it does then.
  void hear() {
    must(files().getattr(files().root()));
    loop.drain();
  }
  std::uint64_t revoked() { return clients().front().info.revoked; }

 private:
  nfs4::CallbackService service_;
  std::shared_ptr<LoopbackChannel> reverse_;
  std::shared_ptr<rpc::Connection> connection_;
  std::optional<FileSystem> files_;
};

TEST_F(Nfs4Revoked, a_lock_is_lost_to_its_holder_and_forgotten_by_the_server) {
  const File plain = opened("plain", kUpdating);
  const File locked = opened("locked", kUpdating);
  must(files().lock(locked, LockOwner{1, 1}, {0, 10, true}));
  revoke(Type::Lock);
  EXPECT_GT(revoked(), 0u);
  hear();
  EXPECT_EQ(revoked(), 0u);
  EXPECT_EQ(write(locked), Status::StateLost);
  EXPECT_EQ(write(plain), Status::Ok);
  must(files().close(locked));
  must(files().close(plain));
}

TEST_F(Nfs4Revoked, an_open_is_made_again_before_it_is_used) {
  const File file = opened("file", kUpdating);
  revoke(std::nullopt);
  hear();
  EXPECT_EQ(revoked(), 0u);
  EXPECT_EQ(clients().front().held.opens, 1u);
  const int before = channel.calls;
  EXPECT_EQ(write(file), Status::Ok);
  EXPECT_EQ(channel.calls - before, 1);
  must(files().close(file));
}

TEST_F(Nfs4Revoked, a_delegation_is_given_up_and_others_stay) {
  const Handle one = delegated("one");
  revoke(Type::Delegation);
  const Handle other = delegated("other");
  loop.drain();
  EXPECT_EQ(revoked(), 0u);
  EXPECT_TRUE(is_delegated(other));
  EXPECT_FALSE(is_delegated(one));
}

TEST_F(Nfs4Revoked, it_asks_once_for_all_that_it_holds_and_then_no_more) {
  std::vector<File> all;
  for (int i = 0; i < 600; ++i) all.push_back(opened(std::to_string(i), kUpdating));
  revoke(Type::Open);
  const int before = channel.calls;
  hear();
  // TEST_STATEID of 256, 256 and 88; each is freed and opened again.
  EXPECT_LE(channel.calls - before, 1 + 3 + 600 + 600);
  EXPECT_EQ(revoked(), 0u);
  const int after = channel.calls;
  hear();
  EXPECT_EQ(channel.calls - after, 1);
  for (const File& file : all) must(files().close(file));
}

}  // namespace
}  // namespace stag::nfs::client
