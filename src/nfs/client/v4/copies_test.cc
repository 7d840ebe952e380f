// Copies that a server goes on with after it has answered COPY (RFC 7862 sections 15.2, 15.8, 15.9,
// 16.1): our own, and one that the test tells what to say.
#include <gtest/gtest.h>

#include "base/task_group.h"
#include "nfs/client/v4/callback_service.h"
#include "testing/nfs/cut_back_channel.h"
#include "testing/nfs/told_server.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::client {
namespace {

using namespace std::chrono_literals;
using nfs4::CallbackService;
using testing::Accident;
using testing::answer_calling_back;
using testing::CutBackChannel;
using testing::LoopbackChannel;
using vfs::testing::Called;
using vfs::testing::Point;

constexpr std::uint64_t kOneStep = 1 << 20;
constexpr std::uint64_t kWholeFile = 6 * kOneStep;

// A copy that goes on while the test does something else.
struct FollowedCopy {
  Task<void> run(FileSystem& files, Handle from, Handle to, std::uint64_t size) {
    CopyWatch watch;
    watch.progress = [this](std::uint64_t bytes) { told.push_back(bytes); };
    watch.cancel = cancel;
    outcome = co_await files.copy_range(from, {0, size}, to, 0, std::move(watch));
  }
  CancelSource cancel;
  std::vector<std::uint64_t> told;
  std::optional<Outcome<std::uint64_t>> outcome;
};

// Our server copies in pieces of a MiB; each but the first waits until the test lets it go on.
struct CopyWorld : testing::Nfs4ClientWorld {
  CopyWorld() : Nfs4ClientWorld(2) {
    channel.server->nfs4.start_callbacks(loop);
    options.calls.cancel = everything;
    connect();
    serve_slowly();
    protocol = *run(nfs4::Nfs4::connect(channel, options.calls, {&service, nullptr, nullptr}));
    const Handle top = run(protocol->root({"find the root", {}}))->handle;
    FileSystem all(protocol, top, "/", options);
    files.emplace(protocol, run(all.walk("data"))->handle, "/data", options);
    from = run(files->create(files->root(), "from", {.mode = 0644}))->handle;
    to = run(files->create(files->root(), "to", {.mode = 0644}))->handle;
    const std::string text(kWholeFile, 'x');
    EXPECT_TRUE(run(files->write_from(from, 0, bytes_of(text))).ok());
  }
  // A connection with a reverse direction.
  void connect() {
    reverse = std::make_shared<CutBackChannel>(loop, service.service(), back);
    connection = std::make_shared<rpc::Connection>();
    channel.server->channel.origin().reverse = reverse;
    channel.server->channel.origin().connection = connection;
  }
  // It ends with what it carries, and the client has another one.
  void cut() {
    connection->end();
    connect();
  }
  void end() {
    go_on_to_the_end();
    EXPECT_EQ(tasks.running(), 0u);
    run(closed());
    channel.server->nfs4.stop_callbacks();
  }
  void serve_slowly() {
    held = std::make_shared<vfs::testing::HeldSteps>([this](Point point) {
      return point.operation == Called::Read && point.when == Point::When::Begin && reads++ > 0;
    });
    const auto without_copy = std::make_shared<vfs::testing::SteppedStore>(
        store,
        std::make_shared<vfs::testing::FailingSteps>([](Point point) -> std::optional<vfs::Status> {
          if (point.operation == Called::Copy) return vfs::Status::NotSupported;
          return std::nullopt;
        }));
    nfs::ExportOptions open;
    open.root_squash = false;
    nfs::Exports exports;
    const auto slow = std::make_shared<vfs::testing::SteppedStore>(without_copy, held);
    STAG_CHECK(exports.add(1, {"/data", slow, open}).ok());
    channel.server->context.exports.replace(std::move(exports));
  }
  void begin() {
    tasks.add(copy.run(*files, from, to, kWholeFile));
    loop.drain();
    EXPECT_FALSE(copy.outcome);
  }
  void go_on() {
    ASSERT_FALSE(held->waiting.empty());
    held->release(0);
    loop.drain();
  }
  void go_on_to_the_end() {
    while (!held->waiting.empty()) go_on();
  }
  std::uint64_t size_there() { return run(files->getattr(to))->size; }

  CancelSource everything;
  CallbackService service;
  CutBackChannel::Plan back;
  std::shared_ptr<CutBackChannel> reverse;
  std::shared_ptr<rpc::Connection> connection;
  std::shared_ptr<vfs::testing::HeldSteps> held;
  int reads = 0;
  std::optional<FileSystem> files;
  Handle from, to;
  FollowedCopy copy;
  TaskGroup tasks;
};

class Nfs4RunningCopy : public ::testing::Test, public CopyWorld {
 protected:
  void TearDown() override { end(); }
};

TEST_F(Nfs4RunningCopy, goes_on_until_the_server_tells_of_its_end) {
  begin();
  const int calls = channel.calls;
  const TimePoint begun = loop.now();
  go_on_to_the_end();
  ASSERT_TRUE(copy.outcome);
  ASSERT_TRUE(copy.outcome->ok()) << copy.outcome->error().sentence;
  EXPECT_EQ(**copy.outcome, kWholeFile);
  EXPECT_EQ(copy.told, std::vector<std::uint64_t>{kWholeFile});
  EXPECT_EQ(loop.now(), begun);
  EXPECT_LE(channel.calls - calls, 1) << "COMMIT, and nobody has asked how far it is";
  EXPECT_EQ(size_there(), kWholeFile);
}

TEST_F(Nfs4RunningCopy, shows_its_progress) {
  begin();
  for (int i = 0; i < 3; ++i) {
    go_on();
    loop.pass(1s);
  }
  EXPECT_EQ(copy.told, (std::vector<std::uint64_t>{2 * kOneStep, 3 * kOneStep, 4 * kOneStep}));
  go_on_to_the_end();
  ASSERT_TRUE(copy.outcome && copy.outcome->ok());
  EXPECT_EQ(copy.told.back(), kWholeFile);
}

TEST_F(Nfs4RunningCopy, goes_on_until_it_is_cancelled_which_the_server_hears) {
  begin();
  copy.cancel.cancel();
  loop.pass(10s);
  EXPECT_FALSE(copy.outcome) << "a piece is being written";
  go_on();
  loop.pass(5s);
  ASSERT_TRUE(copy.outcome);
  ASSERT_FALSE(copy.outcome->ok());
  EXPECT_TRUE(copy.outcome->error().cancelled());
  EXPECT_TRUE(held->waiting.empty()) << "no piece follows the one that was being copied";
  EXPECT_LT(size_there(), kWholeFile);
}

// What is written from then on would be overwritten.
TEST_F(Nfs4RunningCopy, counts_as_running_until_the_server_has_answered_that_it_is_cancelled) {
  begin();
  channel.fall_silent();
  copy.cancel.cancel();
  loop.pass(options.calls.timeout - 1s);
  EXPECT_FALSE(copy.outcome);
  loop.pass(2s);
  ASSERT_TRUE(copy.outcome && !copy.outcome->ok());
  EXPECT_TRUE(copy.outcome->error().cancelled());
  channel.accident = Accident::None;
}

TEST_F(Nfs4RunningCopy, keeps_no_client_that_ends_while_the_server_is_silent) {
  begin();
  channel.fall_silent();
  copy.cancel.cancel();
  loop.pass(10s);
  EXPECT_FALSE(copy.outcome);
  everything.cancel();
  loop.pass(3s);
  ASSERT_TRUE(copy.outcome && !copy.outcome->ok());
  EXPECT_TRUE(copy.outcome->error().cancelled());
  channel.accident = Accident::None;
}

TEST_F(Nfs4RunningCopy, ends_with_its_client) {
  begin();
  everything.cancel();
  loop.pass(3s);
  ASSERT_TRUE(copy.outcome && !copy.outcome->ok());
  go_on();
  EXPECT_TRUE(held->waiting.empty());
}

TEST_F(Nfs4RunningCopy, has_its_end_found_where_no_callback_comes) {
  begin();
  back.lost = true;
  go_on_to_the_end();
  EXPECT_FALSE(copy.outcome);
  loop.pass(2s);
  ASSERT_TRUE(copy.outcome);
  ASSERT_TRUE(copy.outcome->ok()) << copy.outcome->error().sentence;
  EXPECT_EQ(**copy.outcome, kWholeFile);
}

TEST_F(Nfs4RunningCopy, has_ended_with_the_first_piece_where_it_is_short) {
  tasks.add(copy.run(*files, from, to, kOneStep));
  loop.drain();
  ASSERT_TRUE(copy.outcome && copy.outcome->ok()) << "the first piece";
}

// A copy of which a second goes by for each piece: the client asks how far it is.
class CopyLife : public CopyWorld {
 public:
  ~CopyLife() { end(); }
  std::string live() {
    begin();
    for (int i = 0; i < 100 && !copy.outcome; ++i) {
      if (!held->waiting.empty()) go_on();
      loop.pass(1s);
    }
    if (!copy.outcome) return "it does not end";
    if (!copy.outcome->ok()) return copy.outcome->error().sentence;
    if (**copy.outcome != kWholeFile || size_there() != kWholeFile) return "less was copied";
    return "";
  }
};

TEST(Nfs4CopyAccidents, a_copy_comes_to_its_end_wherever_the_connection_is_cut) {
  CopyLife undisturbed;
  const int from = undisturbed.channel.calls + 1;
  ASSERT_EQ(undisturbed.live(), "");
  ASSERT_GE(undisturbed.channel.calls, from + 5) << "nobody has asked";
  for (const Accident accident : {Accident::CutBefore, Accident::CutAfter}) {
    for (int at = from; at <= undisturbed.channel.calls; ++at) {
      CopyLife world;
      world.channel.accident = accident;
      world.channel.at = at;
      world.channel.on_accident = [&world] { world.cut(); };
      EXPECT_EQ(world.live(), "") << "accident " << static_cast<int>(accident) << ", call " << at;
    }
  }
}

TEST(Nfs4CopyAccidents, its_end_is_found_wherever_the_callback_is_cut) {
  CopyLife undisturbed;
  const int from = undisturbed.back.calls + 1;
  ASSERT_EQ(undisturbed.live(), "");
  ASSERT_GE(undisturbed.back.calls, from) << "there was no CB_OFFLOAD";
  for (const Accident accident : {Accident::CutBefore, Accident::CutAfter}) {
    for (int at = from; at <= undisturbed.back.calls; ++at) {
      CopyLife world;
      world.back.accident = accident;
      world.back.at = at;
      world.back.on_cut = [&world] { world.cut(); };
      EXPECT_EQ(world.live(), "") << "accident " << static_cast<int>(accident) << ", call " << at;
    }
  }
}

v4::stateid4 copy_named(std::uint32_t number) {
  v4::stateid4 stateid{1, {}};
  store_be(stateid.other.data(), number);
  return stateid;
}

// A server that says of a copy what the test says.
class CopyingServer : public ::testing::Test {
 protected:
  CopyingServer() {
    server.add<v4::NFSPROC4_COMPOUND>([this](rpc::CallContext& call, v4::COMPOUND4args args) {
      return answered(call, std::move(args));
    });
    options.calls.version = 4;
    options.calls.minor = 2;
    auto connected =
        loop.run(nfs4::Nfs4::connect(channel, options.calls, {&service, nullptr, nullptr}));
    STAG_CHECK(connected && connected->ok());
    files.emplace(**connected, file("root"), "/", options);
    client = **connected;
  }
  ~CopyingServer() override {
    tasks.add(client->close());
    for (int i = 0; i < 10 && tasks.running() > 0; ++i) loop.pass(1s);
    EXPECT_EQ(tasks.running(), 0u);
  }
  static Handle file(std::string_view name) { return *Handle::from(bytes_of(name)); }
  Task<v4::COMPOUND4res> answered(rpc::CallContext& call, v4::COMPOUND4args args) {
    co_await sleep_for(call.loop(), 1ms);
    v4::COMPOUND4res results{};
    for (const v4::nfs_argop4& asked : args.argarray) {
      v4::nfs_resop4& result = results.resarray.emplace_back();
      answer_calling_back(asked, result);
      if (asked.argop == v4::OP_COPY) results.status = answer(asked.opcopy(), result.opcopy());
      if (asked.argop == v4::OP_COPY && before_answer) co_await before_answer();
      if (asked.argop == v4::OP_OFFLOAD_STATUS)
        results.status = result.opoffload_status().osr_status = look(result.opoffload_status());
      if (asked.argop == v4::OP_OFFLOAD_CANCEL)
        cancelled.push_back(asked.opoffload_cancel().oca_stateid);
      if (asked.argop == v4::OP_COMMIT) store_be(verifier_of(result).data(), starts);
      if (results.status != v4::NFS4_OK) break;
    }
    co_return results;
  }
  static v4::verifier4& verifier_of(v4::nfs_resop4& commit) {
    return commit.opcommit().resok4().writeverf;
  }
  v4::nfsstat4 answer(const v4::COPY4args& asked, v4::COPY4res& result) {
    copies.push_back(asked);
    if (asked.ca_synchronous && never_at_once) {
      result.cr_requirements() = {true, false};
      return result.cr_status = v4::NFS4ERR_OFFLOAD_NO_REQS;
    }
    v4::write_response4& begun = result.cr_resok4().cr_response;
    begun.wr_callback_id.push_back(copy_named(static_cast<std::uint32_t>(copies.size())));
    store_be(begun.wr_writeverf.data(), starts);
    return v4::NFS4_OK;
  }
  v4::offload_info4 done(std::uint64_t count) const {
    v4::offload_info4 info;
    info.coa_resok4().wr_count = count;
    info.coa_resok4().wr_committed = v4::UNSTABLE4;
    store_be(info.coa_resok4().wr_writeverf.data(), starts);
    return info;
  }
  // CB_OFFLOAD; yields what the client says.
  Task<v4::nfsstat4> tell(std::uint32_t number, v4::offload_info4 info) {
    v4::CB_COMPOUND4args args;
    args.minorversion = 2;
    v4::CB_SEQUENCE4args sequence;
    sequence.csa_sessionid.fill(std::byte{5});
    sequence.csa_sequenceid = ++callbacks;
    args.argarray.emplace_back().argop = v4::OP_CB_SEQUENCE;
    args.argarray.back().opcbsequence() = sequence;
    args.argarray.emplace_back().argop = v4::OP_CB_OFFLOAD;
    args.argarray.back().opcboffload() = {v4::nfs_fh4(file("to").bytes()), copy_named(number),
                                          info};
    rpc::Client caller(back, {}, rpc::Credentials::sys("server", 0, 0));
    const auto came = co_await caller.call<v4::CB_COMPOUND>(args);
    STAG_CHECK(came.ok());
    co_return came->status;
  }
  v4::nfsstat4 told(std::uint32_t number, v4::offload_info4 info) {
    const auto status = loop.run(tell(number, std::move(info)));
    STAG_CHECK(status.has_value());
    return *status;
  }
  void begin() {
    tasks.add(copy.run(*files, file("from"), file("to"), kWholeFile));
    loop.pass(10ms);
  }
  Error error() {
    loop.pass(10ms);
    if (copy.outcome && !copy.outcome->ok()) return copy.outcome->error();
    ADD_FAILURE() << (copy.outcome ? "it was believed" : "it still goes on");
    return {};
  }

  testing::ManualLoop loop;
  rpc::Server server;
  LoopbackChannel channel{loop, server};
  CallbackService service;
  LoopbackChannel back{loop, service.service()};
  FileSystemOptions options;
  std::shared_ptr<nfs4::Nfs4> client;
  std::optional<FileSystem> files;
  std::vector<v4::COPY4args> copies;
  std::vector<v4::stateid4> cancelled;
  std::function<Task<void>()> before_answer;
  std::function<v4::nfsstat4(v4::OFFLOAD_STATUS4res&)> look = [](v4::OFFLOAD_STATUS4res&) {
    return v4::NFS4ERR_NOTSUPP;
  };
  bool never_at_once = false;
  std::uint64_t starts = 1;
  std::uint32_t callbacks = 0;
  FollowedCopy copy;
  TaskGroup tasks;
};

TEST_F(CopyingServer, that_tells_of_the_end_before_it_has_answered_is_asked_to_come_again) {
  v4::nfsstat4 first = v4::NFS4_OK;
  before_answer = [this, &first]() -> Task<void> { first = co_await tell(1, done(kWholeFile)); };
  begin();
  EXPECT_EQ(first, v4::NFS4ERR_DELAY);
  EXPECT_EQ(told(1, done(kWholeFile)), v4::NFS4_OK);
  loop.pass(10ms);
  ASSERT_TRUE(copy.outcome && copy.outcome->ok());
  EXPECT_EQ(**copy.outcome, kWholeFile);
}

// Else it would overwrite what is written from then on.
TEST_F(CopyingServer, that_begins_what_was_cancelled_meanwhile_is_waited_for_and_hears_of_it) {
  before_answer = [this]() -> Task<void> {
    copy.cancel.cancel();
    co_await sleep_for(loop, 1s);
  };
  begin();
  loop.pass(900ms);
  EXPECT_FALSE(copy.outcome) << "nobody knows yet what there is to cancel";
  loop.pass(1s);
  EXPECT_TRUE(error().cancelled());
  EXPECT_EQ(cancelled, std::vector<v4::stateid4>{copy_named(1)});
}

TEST_F(CopyingServer, that_tells_of_an_unknown_copy_is_told_so) {
  EXPECT_EQ(told(1, done(kWholeFile)), v4::NFS4ERR_BAD_STATEID);
  begin();
  EXPECT_EQ(told(7, done(kWholeFile)), v4::NFS4ERR_BAD_STATEID);
  EXPECT_FALSE(copy.outcome);
  EXPECT_EQ(told(1, done(kWholeFile)), v4::NFS4_OK);
  loop.pass(10ms);
  EXPECT_TRUE(copy.outcome && copy.outcome->ok());
  EXPECT_EQ(told(1, done(kWholeFile)), v4::NFS4ERR_BAD_STATEID);
}

TEST_F(CopyingServer, that_has_copied_more_than_there_is_is_not_believed) {
  begin();
  EXPECT_EQ(told(1, done(kWholeFile + 1)), v4::NFS4_OK);
  EXPECT_EQ(error().kind, Error::Kind::Protocol);
}

TEST_F(CopyingServer, that_says_so_when_it_is_asked_is_not_believed_either) {
  look = [](v4::OFFLOAD_STATUS4res& result) {
    result.osr_resok4().osr_count = kWholeFile + 1;
    return v4::NFS4_OK;
  };
  begin();
  loop.pass(2s);
  EXPECT_EQ(error().kind, Error::Kind::Protocol);
  EXPECT_EQ(cancelled, std::vector<v4::stateid4>{copy_named(1)});
}

TEST_F(CopyingServer, that_never_tells_of_the_end_is_given_up_after_the_time_of_a_call) {
  for (const auto status : {v4::NFS4ERR_NOTSUPP, v4::NFS4ERR_IO, v4::NFS4_OK}) {
    look = [status](v4::OFFLOAD_STATUS4res& result) {
      if (status == v4::NFS4_OK) result.osr_resok4().osr_count = kOneStep;
      return status;
    };
    cancelled.clear();
    copy.outcome.reset();
    begin();
    loop.pass(options.calls.timeout - 1s);
    EXPECT_FALSE(copy.outcome);
    loop.pass(5s);
    EXPECT_EQ(error().call.reason, Reason::TimedOut);
    EXPECT_EQ(cancelled.size(), 1u);
  }
}

TEST_F(CopyingServer, that_goes_on_is_waited_for) {
  std::uint64_t count = 0;
  look = [&count](v4::OFFLOAD_STATUS4res& result) {
    result.osr_resok4().osr_count = ++count;
    return v4::NFS4_OK;
  };
  begin();
  loop.pass(10 * options.calls.timeout);
  EXPECT_FALSE(copy.outcome);
  EXPECT_EQ(told(1, done(kWholeFile)), v4::NFS4_OK);
  loop.pass(10ms);
  EXPECT_TRUE(copy.outcome && copy.outcome->ok());
}

TEST_F(CopyingServer, that_forgets_every_copy_is_given_up) {
  look = [](v4::OFFLOAD_STATUS4res&) { return v4::NFS4ERR_BAD_STATEID; };
  begin();
  loop.pass(1min);
  EXPECT_EQ(error().kind, Error::Kind::Protocol);
  EXPECT_EQ(copies.size(), 3u);
}

TEST_F(CopyingServer, that_cannot_copy_at_once_may_take_its_time) {
  never_at_once = true;
  tasks.add(copy.run(*files, file("from"), file("to"), kOneStep));
  loop.pass(10ms);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_TRUE(copies[0].ca_synchronous);
  EXPECT_FALSE(copies[1].ca_synchronous);
  EXPECT_EQ(told(2, done(kOneStep)), v4::NFS4_OK);
  loop.pass(10ms);
  EXPECT_TRUE(copy.outcome && copy.outcome->ok());
}

TEST_F(CopyingServer, that_fails_later_says_why) {
  begin();
  v4::offload_info4 failed;
  failed.coa_status = v4::NFS4ERR_NOSPC;
  failed.coa_bytes_copied() = kOneStep;
  EXPECT_EQ(told(1, failed), v4::NFS4_OK);
  EXPECT_TRUE(error().is(Status::NoSpace));
  EXPECT_TRUE(cancelled.empty()) << "it has ended";
}

TEST_F(CopyingServer, that_has_restarted_before_the_COMMIT_copies_again) {
  begin();
  EXPECT_EQ(told(1, done(kWholeFile)), v4::NFS4_OK);
  starts = 2;
  loop.pass(10ms);
  EXPECT_FALSE(copy.outcome);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(told(2, done(kWholeFile)), v4::NFS4_OK);
  loop.pass(10ms);
  EXPECT_TRUE(copy.outcome && copy.outcome->ok());
}

TEST_F(CopyingServer, that_is_asked_to_stop_is_waited_for_no_longer) {
  begin();
  copy.cancel.cancel();
  loop.pass(10ms);
  EXPECT_TRUE(error().cancelled());
  EXPECT_EQ(cancelled, std::vector<v4::stateid4>{copy_named(1)});
}

}  // namespace
}  // namespace stag::nfs::client
