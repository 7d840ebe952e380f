// A file that cannot be opened again yet, where the server has lost what was open: it puts off the
// OPEN, or does not answer it. Which calls wait for that, and which do not.
#include <gtest/gtest.h>

#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/pause.h"
#include "base/task_group.h"
#include "testing/nfs/lying_server.h"

namespace stag::nfs::client {
namespace {

using namespace std::chrono_literals;
using testing::Compound4Results;
using testing::LyingServer;

// Loses its clients, or single opens. An OPEN that creates is of a program, any other one a claim.
class LosingServer : public LyingServer {
 public:
  explicit LosingServer(std::uint32_t minor) : LyingServer(minor) {
    lie = [this](const v4::COMPOUND4args& args, Compound4Results& results) {
      std::string at;
      for (std::size_t i = 0; i < args.argarray.size(); ++i) {
        const v4::nfsstat4 status = answer(args.argarray[i], results.resarray[i], at);
        if (status == v4::NFS4_OK) continue;
        results.status = status;
        results.resarray.resize(i + 1);
        return;
      }
    };
  }
  // As if it had restarted, or the lease had run out.
  void lose() {
    ++clientid_;
    has_session_ = false;
  }
  void lose(const std::string& file) { lost_[file] = opens_[file]; }
  int claims(const std::string& file) { return claims_[file]; }

  std::set<std::string> put_off;  // files of which claims are answered with NFS4ERR_DELAY
  std::set<std::string> silent;   // files of which claims are not answered
  bool grace = false;             // claims of before a restart are granted
  int completed = 0, renewed = 0;
  int removed_behind = -1;  // so many claims; -1: nothing was removed
  bool swallows = false;    // what it answers just now

 private:
  v4::nfsstat4 answer(const v4::nfs_argop4& asked, v4::nfs_resop4& result, std::string& at) {
    switch (asked.argop) {
      case v4::OP_EXCHANGE_ID:
        result.opexchange_id().eir_resok4().eir_clientid = ++clientid_;
        return v4::NFS4_OK;
      case v4::OP_SETCLIENTID:
        result.opsetclientid().resok4().clientid = ++clientid_;
        return v4::NFS4_OK;
      case v4::OP_CREATE_SESSION:
        if (asked.opcreate_session().csa_clientid != clientid_)
          return result.opcreate_session().csr_status = v4::NFS4ERR_STALE_CLIENTID;
        result.opcreate_session().csr_resok4().csr_sessionid.fill(std::byte{++session_});
        has_session_ = true;
        return v4::NFS4_OK;
      case v4::OP_SEQUENCE:
        if (!has_session_ || asked.opsequence().sa_sessionid[0] != std::byte{session_})
          return result.opsequence().sr_status = v4::NFS4ERR_BADSESSION;
        return v4::NFS4_OK;
      case v4::OP_RECLAIM_COMPLETE:
        ++completed;
        return v4::NFS4_OK;
      case v4::OP_RENEW:
        ++renewed;
        return result.oprenew().status =
                   asked.oprenew().clientid == clientid_ ? v4::NFS4_OK : v4::NFS4ERR_EXPIRED;
      case v4::OP_PUTFH:
        at = text_of(asked.opputfh().object.bytes());
        return v4::NFS4_OK;
      case v4::OP_OPEN:
        return result.opopen().status = open(asked.opopen(), result, at);
      case v4::OP_GETFH:
        result.opgetfh().resok4().object = v4::nfs_fh4(bytes_of(std::string_view(at)));
        return v4::NFS4_OK;
      case v4::OP_GETATTR:
        if (at.size() == 1)
          result.opgetattr().resok4().obj_attributes = client::nfs4::type_is(FileType::Regular);
        return v4::NFS4_OK;
      case v4::OP_REMOVE:
        removed_behind = claims("a") + claims("b");
        return v4::NFS4_OK;
      case v4::OP_READ:
        result.opread().resok4().eof = true;
        return result.opread().status = read(asked.opread().stateid, at);
      default:
        return v4::NFS4_OK;
    }
  }
  v4::nfsstat4 open(const v4::OPEN4args& args, v4::nfs_resop4& result, std::string& at) {
    if (options.calls.minor == 0u && args.owner.clientid != clientid_)
      return v4::NFS4ERR_STALE_CLIENTID;
    if (args.claim.claim == v4::CLAIM_NULL) at = args.claim.file();
    if (args.openhow.opentype != v4::OPEN4_CREATE) {
      if (args.claim.claim == v4::CLAIM_PREVIOUS && !grace) return v4::NFS4ERR_NO_GRACE;
      ++claims_[at];
      swallows = silent.contains(at);
      if (put_off.contains(at)) return v4::NFS4ERR_DELAY;
    }
    v4::stateid4& stateid = result.opopen().resok4().stateid;
    stateid.seqid = 1;
    stateid.other[0] = std::byte(clientid_);
    stateid.other[1] = std::byte(++opens_[at]);
    return v4::NFS4_OK;
  }
  v4::nfsstat4 read(const v4::stateid4& by, const std::string& at) {
    if (by.other[0] != std::byte(clientid_)) return v4::NFS4ERR_EXPIRED;
    return by.other[1] > std::byte(lost_[at]) ? v4::NFS4_OK : v4::NFS4ERR_BAD_STATEID;
  }

  v4::clientid4 clientid_ = 0;
  std::uint8_t session_ = 0;
  bool has_session_ = false;
  std::map<std::string, int> opens_, lost_, claims_;
};

// Brings no answer that the server swallows.
class SwallowingChannel final : public rpc::Channel {
 public:
  explicit SwallowingChannel(LosingServer& server) : Channel(1), server_(server) {}
  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    auto reply = co_await server_.channel.call(message);
    if (!std::exchange(server_.swallows, false)) co_return reply;
    const Duration left = message.deadline ? *message.deadline - loop().now() : Duration(24h);
    co_await pause(loop(), left, message.cancel);
    const bool cancelled = message.cancel.cancelled();
    co_return Failure{
        rpc::CallError::transport(cancelled ? Reason::Cancelled : Reason::TimedOut, where())};
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return server_.loop; }
  rpc::TransportKind kind() const override { return rpc::TransportKind::Memory; }
  std::string where() const override { return "memory"; }

 private:
  LosingServer& server_;
};

struct StuckWorld {
  explicit StuckWorld(std::uint32_t minor) : server(minor) {
    protocol = *server.run(client::nfs4::Nfs4::connect(channel, server.options.calls));
    files.emplace(protocol, *Handle::from(bytes_of(std::string_view("root"))), "/", server.options);
    a = opened("a");
    b = opened("b");
  }
  ~StuckWorld() {
    server.put_off.clear();
    server.silent.clear();
    server.loop.pass(3min);
    const auto closed = [](client::nfs4::Nfs4& client) -> Task<Ok> {
      co_await client.close();
      co_return Ok{};
    };
    server.run(closed(*protocol));
  }
  struct Call {
    bool ended = false;
    std::optional<Error> error{};
    bool well() const { return ended && !error; }
  };
  template <class T>
  Call& begin(Task<Outcome<T>> task) {
    Call& call = calls.emplace_back();
    group.add(noted(std::move(task), call));
    return call;
  }
  // Without waiting for anything that takes longer than a few round trips.
  template <class T>
  bool goes(Task<Outcome<T>> task) {
    const Call& call = begin(std::move(task));
    server.loop.pass(50ms);
    return call.well();
  }
  Task<Outcome<ReadPart>> read(FileSystem& by, const File& file) { return by.read(file, 0, to); }
  Task<Outcome<ReadPart>> read(const File& file) { return read(*files, file); }
  Task<Outcome<Attributes>> look() { return files->getattr(files->root()); }
  Task<Outcome<Opened>> opens(std::string name) {
    return files->create_open(files->root(), std::move(name), {}, CreateMode::Unchecked,
                              access::kRead);
  }

  LosingServer server;
  SwallowingChannel channel{server};
  std::shared_ptr<client::nfs4::Nfs4> protocol;
  std::optional<FileSystem> files;
  std::array<std::byte, 4> to{};
  std::list<Call> calls;
  TaskGroup group;
  File a, b;

 private:
  File opened(std::string name) {
    const Outcome<Opened> made = server.run(opens(std::move(name)));
    STAG_CHECK(made.ok());
    return made->file;
  }
  template <class T>
  static Task<void> noted(Task<Outcome<T>> task, Call& to) {
    const Outcome<T> outcome = co_await std::move(task);
    if (!outcome) to.error = outcome.error();
    to.ended = true;
  }
};

class Nfs4StuckOpen : public ::testing::TestWithParam<std::uint32_t>, public StuckWorld {
 protected:
  Nfs4StuckOpen() : StuckWorld(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Minor, Nfs4StuckOpen, ::testing::Values(0u, 1u, 2u),
                         [](const auto& minor) { return "v4_" + std::to_string(minor.param); });

TEST_P(Nfs4StuckOpen, keeps_no_call_waiting_that_does_not_use_it) {
  server.put_off = {"a"};
  server.lose();
  EXPECT_TRUE(goes(look())) << "it finds out";
  const Call& stuck = begin(read(a));
  EXPECT_TRUE(goes(read(b)));
  server.loop.pass(10s);
  EXPECT_TRUE(goes(look()));
  EXPECT_TRUE(goes(read(b)));
  EXPECT_TRUE(goes(opens("c")));
  EXPECT_TRUE(goes(files->close(b)));
  EXPECT_FALSE(stuck.ended);
  server.put_off.clear();
  server.loop.pass(6s);
  EXPECT_TRUE(stuck.well());
}

// RFC 8881 8.4.2.1, 18.51.3: the server is not told that all is reclaimed.
TEST_P(Nfs4StuckOpen, keeps_opens_of_others_waiting_when_it_is_of_before_a_restart) {
  server.put_off = {"a"};
  server.grace = true;
  server.lose();
  const int completed = server.completed;
  const Call& stuck = begin(read(a));
  const Call& opening = begin(opens("c"));
  EXPECT_TRUE(goes(look()));
  EXPECT_TRUE(goes(read(b)));
  server.loop.pass(20s);
  EXPECT_FALSE(opening.ended);
  EXPECT_EQ(server.completed, completed);
  server.put_off.clear();
  server.loop.pass(6s);
  EXPECT_TRUE(stuck.well());
  EXPECT_TRUE(opening.well());
}

TEST_P(Nfs4StuckOpen, that_is_not_answered_keeps_no_call_waiting_that_does_not_use_it) {
  server.silent = {"a"};
  server.lose();
  const Call& stuck = begin(read(a));
  EXPECT_TRUE(goes(look()));
  EXPECT_TRUE(goes(read(b)));
  EXPECT_TRUE(goes(opens("c")));
  // The server answers others all the time.
  for (int i = 0; i < 150; ++i) {
    EXPECT_TRUE(goes(read(b)));
    server.loop.pass(950ms);
  }
  ASSERT_TRUE(stuck.ended);
  EXPECT_TRUE(stuck.error);
  server.silent.clear();
  server.loop.pass(2min);
  EXPECT_TRUE(goes(read(a)));
}

TEST_P(Nfs4StuckOpen, that_is_not_answered_keeps_no_other_recovery_waiting) {
  server.silent = {"a"};
  server.lose();
  begin(read(a));
  EXPECT_TRUE(goes(read(b)));
  server.lose();
  EXPECT_TRUE(goes(look()));
  EXPECT_TRUE(goes(read(b)));
}

// The longest pause is five seconds.
TEST_P(Nfs4StuckOpen, that_is_not_answered_behind_a_pause_keeps_none_waiting_that_was_put_off) {
  server.put_off = {"a", "b"};
  server.lose();
  const Call& of_a = begin(read(a));
  const Call& of_b = begin(read(b));
  server.loop.pass(20s);
  server.put_off.clear();
  server.silent = {"a"};
  server.loop.pass(6s);
  EXPECT_TRUE(of_b.well());
  EXPECT_FALSE(of_a.ended);
}

TEST_P(Nfs4StuckOpen, keeps_none_waiting_that_is_lost_meanwhile) {
  server.put_off = {"a"};
  server.lose();
  begin(read(a));
  // The pauses are long by then.
  server.loop.pass(30s);
  server.lose("b");
  EXPECT_TRUE(goes(read(b)));
}

// A file that has no name any more cannot be opened again. In version 4.0 a restart is not heard of
// by what needs no state.
class Nfs41StuckOpen : public Nfs4StuckOpen {};
INSTANTIATE_TEST_SUITE_P(Minor, Nfs41StuckOpen, ::testing::Values(1u, 2u),
                         [](const auto& minor) { return "v4_" + std::to_string(minor.param); });

TEST_P(Nfs41StuckOpen, comes_before_a_name_is_taken_away) {
  server.takes = [](const v4::COMPOUND4args&) -> Duration { return 5ms; };
  server.lose();
  EXPECT_TRUE(goes(files->remove(files->root(), "b")));
  EXPECT_EQ(server.removed_behind, 2);
}

TEST_P(Nfs41StuckOpen, comes_before_a_name_is_taken_away_for_a_few_seconds) {
  server.silent = {"a"};
  server.lose();
  const Call& removing = begin(files->remove(files->root(), "b"));
  server.loop.pass(4900ms);
  EXPECT_EQ(server.removed_behind, -1);
  server.loop.pass(200ms);
  EXPECT_TRUE(removing.well());
  EXPECT_TRUE(goes(files->remove(files->root(), "c"))) << "it was waited for before";
}

TEST_P(Nfs41StuckOpen, comes_before_a_name_is_taken_away_until_the_server_puts_it_off) {
  server.put_off = {"a"};
  server.lose();
  EXPECT_TRUE(goes(files->remove(files->root(), "b")));
  EXPECT_EQ(server.removed_behind, 2);
}

// What the server was asked for until nobody waits any more.
int claims_with_callers(std::uint32_t minor, int callers) {
  StuckWorld world(minor);
  world.server.put_off = {"a"};
  world.server.lose();
  const int before = world.server.claims("a");
  for (int i = 0; i < callers; ++i) world.begin(world.read(world.a));
  world.server.loop.pass(100s);
  const int claims = world.server.claims("a") - before;
  for (const StuckWorld::Call& call : world.calls) EXPECT_FALSE(call.ended);
  world.server.loop.pass(30s);
  for (const StuckWorld::Call& call : world.calls)
    EXPECT_TRUE(call.error && call.error->is(Status::Delay));
  return claims;
}

TEST_P(Nfs4StuckOpen, is_asked_for_as_often_by_one_caller_as_by_a_hundred) {
  const int alone = claims_with_callers(GetParam(), 1);
  EXPECT_GT(alone, 10);
  EXPECT_LT(alone, 40);
  EXPECT_EQ(claims_with_callers(GetParam(), 100), alone);
}

TEST_P(Nfs4StuckOpen, is_waited_for_no_longer_by_who_is_cancelled_and_on_by_others) {
  CancelSource cancel;
  FileSystemOptions with = server.options;
  with.calls.cancel = cancel;
  FileSystem cancelled = files->with(with);
  server.put_off = {"a"};
  server.lose();
  // The first one has found out.
  const Call& first = begin(read(cancelled, a));
  const Call& second = begin(read(a));
  const Call& third = begin(read(cancelled, a));
  server.loop.pass(10s);
  EXPECT_FALSE(first.ended || second.ended || third.ended);
  cancel.cancel();
  server.loop.drain();
  EXPECT_TRUE(first.error && first.error->cancelled());
  EXPECT_TRUE(third.error && third.error->cancelled());
  EXPECT_FALSE(second.ended);
  server.put_off.clear();
  server.loop.pass(6s);
  EXPECT_TRUE(second.well());
}

TEST_P(Nfs4StuckOpen, is_waited_for_as_long_as_the_time_of_each_caller) {
  FileSystemOptions with = server.options;
  with.calls.timeout = with.calls.jukebox_for = 7s;
  FileSystem hasty = files->with(with);
  server.lose();
  for (const bool answers : {true, false}) {
    (answers ? server.put_off : server.silent) = {"a"};
    const Call& first = begin(read(a));
    server.loop.pass(1s);
    const Call& second = begin(read(hasty, a));
    for (int i = 0; i < 65; ++i) {
      EXPECT_TRUE(goes(read(b)));
      server.loop.pass(50ms);
    }
    EXPECT_FALSE(second.ended);
    server.loop.pass(600ms);
    ASSERT_TRUE(second.error);
    EXPECT_TRUE(second.error->is(Status::Delay));
    EXPECT_FALSE(first.ended);
    server.put_off.clear();
    server.silent.clear();
    server.loop.pass(2min);
    server.lose();
  }
}

// Of the other versions each claim renews it.
TEST(Nfs40StuckOpen, puts_no_renewal_of_the_lease_off) {
  StuckWorld world(0);
  world.server.put_off = {"a"};
  world.server.lose();
  world.begin(world.read(world.a));
  world.server.loop.pass(1s);
  const int renewed = world.server.renewed;
  world.server.loop.pass(90s);
  EXPECT_EQ(world.server.renewed - renewed, 3);
}

TEST_P(Nfs4StuckOpen, is_opened_again_though_nobody_waits_for_it) {
  server.put_off = {"a"};
  server.lose();
  EXPECT_TRUE(goes(read(b)));
  server.loop.pass(10min);
  server.put_off.clear();
  server.loop.pass(35s);
  const int calls_before = server.calls;
  EXPECT_TRUE(goes(read(a)));
  EXPECT_EQ(server.calls - calls_before, 1);
}

}  // namespace
}  // namespace stag::nfs::client
