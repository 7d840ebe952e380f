#include "nfs/client/protocol/retrying_client.h"

#include "nfs/client/v3/values.h"
#include "testing/nfs/client_harness.h"

namespace stag::nfs::client {
namespace {

using v3::NFSPROC3_GETATTR;

constexpr v3::nfsstat3 kStatuses[] = {
    v3::NFS3ERR_PERM,      v3::NFS3ERR_NOENT,       v3::NFS3ERR_IO,         v3::NFS3ERR_NXIO,
    v3::NFS3ERR_ACCES,     v3::NFS3ERR_EXIST,       v3::NFS3ERR_XDEV,       v3::NFS3ERR_NODEV,
    v3::NFS3ERR_NOTDIR,    v3::NFS3ERR_ISDIR,       v3::NFS3ERR_INVAL,      v3::NFS3ERR_FBIG,
    v3::NFS3ERR_NOSPC,     v3::NFS3ERR_ROFS,        v3::NFS3ERR_MLINK,      v3::NFS3ERR_NAMETOOLONG,
    v3::NFS3ERR_NOTEMPTY,  v3::NFS3ERR_DQUOT,       v3::NFS3ERR_STALE,      v3::NFS3ERR_REMOTE,
    v3::NFS3ERR_BADHANDLE, v3::NFS3ERR_NOT_SYNC,    v3::NFS3ERR_BAD_COOKIE, v3::NFS3ERR_NOTSUPP,
    v3::NFS3ERR_TOOSMALL,  v3::NFS3ERR_SERVERFAULT, v3::NFS3ERR_BADTYPE,    v3::NFS3ERR_JUKEBOX,
};

// Answers GETATTR with JUKEBOX so many times.
struct Jukebox {
  explicit Jukebox(int busy, FileSystemOptions options = {}) : world(options), left(busy) {
    world.on<NFSPROC3_GETATTR>([this](const auto&, v3::GETATTR3res& res) {
      ++calls;
      if (left-- > 0)
        res.status = v3::NFS3ERR_JUKEBOX;
      else
        res.resok() = {};
    });
  }
  Scripted world;
  int left;
  int calls = 0;
};

TEST(RetryingClientTest, turns_every_status_into_an_error_with_a_sentence_of_its_own) {
  FileSystemOptions options;
  options.calls.jukebox_for = Duration::zero();
  Scripted world(options);
  v3::nfsstat3 next = v3::NFS3_OK;
  world.on<NFSPROC3_GETATTR>([&](const auto&, v3::GETATTR3res& res) { res.status = next; });
  std::vector<std::string> sentences;
  for (const v3::nfsstat3 status : kStatuses) {
    next = status;
    const auto outcome = world.run(world.files.getattr(world.files.root()));
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().kind, Error::Kind::Nfs);
    EXPECT_TRUE(outcome.error().is(nfs3::to_status(static_cast<std::uint32_t>(status))));
    EXPECT_EQ(outcome.error().sentence.find("cannot read the attributes: "), 0u);
    EXPECT_EQ(outcome.error().sentence.find("unknown"), std::string::npos);
    sentences.push_back(outcome.error().sentence);
  }
  std::sort(sentences.begin(), sentences.end());
  EXPECT_EQ(std::unique(sentences.begin(), sentences.end()), sentences.end());
}

TEST(RetryingClientTest, names_what_the_operation_was_about) {
  Scripted world;
  world.on<v3::NFSPROC3_MKDIR>(
      [](const auto&, v3::MKDIR3res& res) { res.status = v3::NFS3ERR_EXIST, res.resfail() = {}; });
  const auto outcome = world.run(world.files.mkdir(world.files.root(), "sub", {}));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().sentence, "cannot create the directory 'sub': it exists already");
}

TEST(RetryingClientTest, reports_a_server_that_does_not_serve_NFS_as_a_failed_call) {
  Scripted world;
  const auto outcome = world.run(world.files.ping());
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, Error::Kind::Call);
  EXPECT_EQ(outcome.error().call.kind, rpc::CallError::Kind::Answered);
  EXPECT_NE(outcome.error().sentence.find("does not serve this program"), std::string::npos);
}

TEST(RetryingClientTest, waits_until_a_jukebox_is_ready_with_pauses_that_double) {
  Jukebox jukebox(4);
  const TimePoint start = jukebox.world.loop.now();
  const auto outcome = jukebox.world.run(jukebox.world.files.getattr(jukebox.world.files.root()));
  ASSERT_TRUE(outcome.ok()) << outcome.error().sentence;
  EXPECT_EQ(jukebox.calls, 5);
  EXPECT_EQ(jukebox.world.loop.now() - start, std::chrono::milliseconds(100 + 200 + 400 + 800 + 5));
}

TEST(RetryingClientTest, gives_up_on_a_jukebox_after_the_time_allowed) {
  FileSystemOptions options;
  options.calls.jukebox_for = std::chrono::seconds(10);
  Jukebox jukebox(1'000'000, options);
  const TimePoint start = jukebox.world.loop.now();
  const auto outcome = jukebox.world.run(jukebox.world.files.getattr(jukebox.world.files.root()));
  ASSERT_FALSE(outcome.ok());
  EXPECT_TRUE(outcome.error().is(Status::Delay));
  EXPECT_EQ(jukebox.world.loop.now() - start, std::chrono::milliseconds(10'001));
}

TEST(RetryingClientTest, waits_for_a_jukebox_no_longer_than_for_an_answer) {
  FileSystemOptions options;
  options.calls.timeout = std::chrono::seconds(3);
  Jukebox jukebox(1'000'000, options);
  const TimePoint start = jukebox.world.loop.now();
  const auto outcome = jukebox.world.run(jukebox.world.files.getattr(jukebox.world.files.root()));
  ASSERT_FALSE(outcome.ok());
  EXPECT_TRUE(outcome.error().is(Status::Delay));
  EXPECT_EQ(jukebox.world.loop.now() - start, std::chrono::milliseconds(3'001));
}

// For a server that has restarted: a lease unless its administrator says so.
TEST(RetryingClientTest, waits_longer_than_a_grace_period_unless_told_otherwise) {
  Jukebox jukebox(1'000'000);
  const TimePoint start = jukebox.world.loop.now();
  const auto outcome = jukebox.world.run(jukebox.world.files.getattr(jukebox.world.files.root()));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(jukebox.world.loop.now() - start, std::chrono::milliseconds(120'001));
}

TEST(RetryingClientTest, waits_for_the_grace_period_of_a_server_with_a_long_lease) {
  using std::chrono::seconds;
  const auto limit = [](const ProtocolOptions& options) {
    testing::ManualLoop loop;
    const JukeboxRetry retry(loop, options, seconds(300));
    const TimePoint start = loop.now();
    while (retry.left()) loop.pass(seconds(1));
    return loop.now() - start;
  };
  EXPECT_EQ(limit({}), seconds(330));
  EXPECT_EQ(limit({.jukebox_for = seconds(20)}), seconds(20));
  EXPECT_EQ(limit({.timeout = seconds(20)}), seconds(20));
}

TEST(RetryingClientTest, stops_waiting_for_a_jukebox_when_cancelled) {
  CancelSource cancel;
  FileSystemOptions options;
  options.calls.cancel = cancel;
  Jukebox jukebox(1'000'000, options);
  const TimePoint start = jukebox.world.loop.now();
  const Timer pull =
      jukebox.world.loop.after(std::chrono::milliseconds(150), [&] { cancel.cancel(); });
  const auto outcome = jukebox.world.run(jukebox.world.files.getattr(jukebox.world.files.root()));
  EXPECT_FALSE(outcome.ok());
  EXPECT_LE(jukebox.world.loop.now() - start, std::chrono::milliseconds(152));
}

// A Channel whose every call fails in the transport.
class Broken final : public rpc::Channel {
 public:
  explicit Broken(Loop& loop) : Channel(1), loop_(loop) {}
  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage&) override {
    ++calls;
    co_return Failure{rpc::CallError::transport(Reason::RdmaPeerRefusedChunks, where())};
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return loop_; }
  rpc::TransportKind kind() const override { return rpc::TransportKind::Rdma; }
  std::string where() const override { return "rdma server:20049"; }
  int calls = 0;

 private:
  Loop& loop_;
};

TEST(RetryingClientTest, surfaces_transport_errors_of_calls_that_may_have_run_and_repeats_none) {
  PROVES("R8267-4-f");
  testing::ManualLoop loop;
  Broken channel(loop);
  FileSystem files(channel, handle_of("root"), "/data");
  const auto outcome = run_on(loop, files.rename(files.root(), "a", files.root(), "b"));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, Error::Kind::Call);
  EXPECT_EQ(outcome.error().call.reason, Reason::RdmaPeerRefusedChunks);
  EXPECT_EQ(outcome.error().sentence.find("cannot rename 'a': rdma server:20049: "), 0u);
  EXPECT_EQ(channel.calls, 1);
}

}  // namespace
}  // namespace stag::nfs::client
