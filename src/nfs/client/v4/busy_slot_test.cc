// A call whose connection is lost while the server is at it, and that is sent again: NFS4ERR_DELAY
// of its SEQUENCE says that the first transmission is in progress (RFC 8881 2.10.6.2, 15.1.1.3).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/pause.h"
#include "base/task_group.h"
#include "testing/nfs/lying_server.h"
#include "testing/nfs/nfs4_client_world.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::client {
namespace {

using namespace std::chrono_literals;
using testing::Compound4Results;
using testing::LoopbackChannel;
using testing::LyingServer;
using testing::ManualLoop;

constexpr Duration kExecutes = 20s;

// Loses the connection soon after the next call was sent, and sends it again on another one.
class CutOnceChannel final : public rpc::Channel {
 public:
  CutOnceChannel(LoopbackChannel& inner, rpc::Service& service)
      : Channel(1), inner_(inner), service_(service) {}
  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    if (std::exchange(cuts, false)) {
      STAG_CHECK(message.begin_transmission().ok());
      rpc::IncomingCall incoming;
      incoming.origin = std::make_shared<rpc::Origin>(inner_.origin());
      incoming.payload = message.stream.without({}).flatten();
      first_.add(served(std::move(incoming)));
      ++lost_;
      co_await sleep_for(loop(), 100ms);
    }
    co_return co_await inner_.call(message);
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return inner_.loop(); }
  rpc::TransportKind kind() const override { return rpc::TransportKind::Memory; }
  std::string where() const override { return "memory"; }
  std::uint64_t connections_lost() const override { return lost_; }

  bool cuts = false;

 private:
  Task<void> served(rpc::IncomingCall incoming) {
    static_cast<void>(co_await service_.serve(incoming));
  }
  LoopbackChannel& inner_;
  rpc::Service& service_;
  std::uint64_t lost_ = 0;
  TaskGroup first_;
};

// What a server does that keeps results by slot, and knows a retry by no more than its number and
// sa_cachethis.
class SlotKeeper {
 public:
  // How long a COMPOUND takes, which this sees when it arrives.
  Duration takes(const v4::COMPOUND4args& args) {
    if (args.argarray[0].argop != v4::OP_SEQUENCE) return 1ms;
    const v4::SEQUENCE4args& sequence = args.argarray[0].opsequence();
    Slot& slot = slot_of(sequence);
    const Judged judged = judge(slot, sequence);
    judged_[&args] = judged;
    if (judged != Judged::Runs) return 1ms;
    slot.sequence = sequence.sa_sequenceid;
    slot.in_use = true;
    slot.kept = sequence.sa_cachethis;
    return target_of(args) == slow ? kExecutes : Duration(1ms);
  }
  void answer(const v4::COMPOUND4args& args, Compound4Results& results) {
    const v4::nfs_argop4& first = args.argarray[0];
    if (first.argop == v4::OP_BIND_CONN_TO_SESSION)
      std::erase(unbound, first.opbind_conn_to_session().bctsa_sessid[0]);
    if (first.argop == v4::OP_CREATE_SESSION)
      results.resarray[0].opcreate_session().csr_resok4().csr_sessionid.fill(std::byte{++sessions});
    if (first.argop != v4::OP_SEQUENCE) return;
    Slot& slot = slot_of(first.opsequence());
    switch (judged_[&args]) {
      case Judged::Runs:
        execute(args, results);
        slot.in_use = false;
        slot.results = results;
        return;
      case Judged::Busy:
        return refuse(results, busy);
      case Judged::OutOfOrder:
        return refuse(results, v4::NFS4ERR_SEQ_MISORDERED);
      case Judged::FalseRetry:
        return refuse(results, v4::NFS4ERR_SEQ_FALSE_RETRY);
      case Judged::Unbound:
        return refuse(results, v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
      case Judged::Retry:
        if (!slot.kept) return refuse(results, v4::NFS4ERR_RETRY_UNCACHED_REP);
        results = slot.results;
        return;
    }
  }
  int executed(const std::string& what) const {
    return static_cast<int>(std::ranges::count(executed_, what));
  }

  std::string slow;  // what takes long: the name that REMOVE or OPEN is for
  std::uint8_t sessions = 0;
  std::vector<std::byte> unbound;         // sessions that the connection is not bound to
  bool loses_count = false;               // the next request that arrives is out of order
  v4::nfsstat4 busy = v4::NFS4ERR_DELAY;  // of a retry whose first transmission is in progress

 private:
  enum class Judged : std::uint8_t { Runs, Busy, OutOfOrder, Retry, FalseRetry, Unbound };
  struct Slot {
    v4::sequenceid4 sequence = 0;
    bool in_use = false;
    bool kept = false;
    Compound4Results results;
  };

  Slot& slot_of(const v4::SEQUENCE4args& sequence) {
    return slots_[{sequence.sa_sessionid, sequence.sa_slotid}];
  }
  Judged judge(const Slot& slot, const v4::SEQUENCE4args& sequence) {
    if (std::ranges::count(unbound, sequence.sa_sessionid[0]) > 0) return Judged::Unbound;
    if (std::exchange(loses_count, false)) return Judged::OutOfOrder;
    const bool same = sequence.sa_sequenceid == slot.sequence;
    if (slot.in_use) return same ? Judged::Busy : Judged::OutOfOrder;
    if (same) return slot.kept == sequence.sa_cachethis ? Judged::Retry : Judged::FalseRetry;
    return sequence.sa_sequenceid == slot.sequence + 1 ? Judged::Runs : Judged::OutOfOrder;
  }
  static std::string target_of(const v4::COMPOUND4args& args) {
    for (const v4::nfs_argop4& asked : args.argarray) {
      if (asked.argop == v4::OP_REMOVE) return asked.opremove().target;
      if (asked.argop == v4::OP_OPEN) return asked.opopen().claim.file();
    }
    return {};
  }
  static void refuse(Compound4Results& results, v4::nfsstat4 status) {
    results.status = status;
    results.resarray.resize(1);
    results.resarray[0].opsequence().sr_status = status;
  }
  // A REMOVE that was executed before finds nothing; an OPEN gives the file whose handle is its
  // name.
  void execute(const v4::COMPOUND4args& args, Compound4Results& results) {
    const std::string target = target_of(args);
    for (std::size_t i = 0; i < args.argarray.size(); ++i) {
      const v4::nfs_argop4& asked = args.argarray[i];
      v4::nfs_resop4& result = results.resarray[i];
      if (asked.argop == v4::OP_CLOSE) executed_.emplace_back("CLOSE");
      if (asked.argop == v4::OP_GETFH)
        result.opgetfh().resok4().object = v4::nfs_fh4(bytes_of(std::string_view(target)));
      if (asked.argop == v4::OP_GETATTR && !target.empty())
        result.opgetattr().resok4().obj_attributes = nfs4::type_is(FileType::Regular);
      if (asked.argop == v4::OP_OPEN) executed_.push_back("OPEN " + target);
      if (asked.argop != v4::OP_REMOVE) continue;
      executed_.push_back("REMOVE " + target);
      if (executed("REMOVE " + target) == 1) continue;
      results.status = result.opremove().status = v4::NFS4ERR_NOENT;
      results.resarray.resize(i + 1);
      return;
    }
  }

  std::map<std::pair<v4::sessionid4, v4::slotid4>, Slot> slots_;
  std::map<const void*, Judged> judged_;
  std::vector<std::string> executed_;
};

struct Ended {
  bool ended = false;
  bool well = false;
  bool delayed = false;
  std::string file{};  // its handle
};

template <class T>
void note_end(const Outcome<T>& outcome, Ended& to) {
  to.ended = true;
  to.well = outcome.ok();
  to.delayed = !outcome && outcome.error().is(Status::Delay);
}
template <class T>
Task<void> ends(Task<Outcome<T>> task, Ended& to) {
  const Outcome<T> outcome = co_await std::move(task);
  note_end(outcome, to);
}
Task<void> creates(FileSystem& files, std::string name, Ended& to) {
  const Outcome<Opened> opened =
      co_await files.create_open(files.root(), name, {}, CreateMode::Unchecked, access::kModify);
  note_end(opened, to);
  if (opened) to.file = text_of(opened->file.handle.bytes());
}

class Nfs41BusySlot : public ::testing::Test {
 protected:
  Nfs41BusySlot() {
    server.options.calls.timeout = 1h;
    server.options.calls.jukebox_for = 1h;
  }
  void TearDown() override {
    if (!protocol) return;
    const auto closed = [](nfs4::Nfs4& client) -> Task<Ok> {
      co_await client.close();
      co_return Ok{};
    };
    server.run(closed(*protocol));
  }
  // Of a client whose next call is cut.
  FileSystem files() {
    server.takes = [this](const v4::COMPOUND4args& args) { return keeper.takes(args); };
    server.lie = [this](const v4::COMPOUND4args& args, Compound4Results& results) {
      keeper.answer(args, results);
    };
    protocol = *server.run(client::nfs4::Nfs4::connect(channel, server.options.calls));
    channel.cuts = true;
    return FileSystem(protocol, *Handle::from(bytes_of(std::string_view("root"))), "/",
                      server.options);
  }
  // A REMOVE that the server is slow at, of a session that the GETATTR behind it finds of no use.
  void remove_in_left_session(FileSystem& by, Ended& removed, Ended& looked) {
    keeper.slow = "a";
    group.add(ends(by.remove(by.root(), "a"), removed));
    server.loop.pass(1s);
    keeper.loses_count = true;
    group.add(ends(by.getattr(by.root()), looked));
  }

  SlotKeeper keeper;
  LyingServer server;
  CutOnceChannel channel{server.channel, server.server};
  std::shared_ptr<client::nfs4::Nfs4> protocol;
  TaskGroup group;
};

TEST_F(Nfs41BusySlot, is_left_to_the_call_and_others_go_by_another_one) {
  keeper.slow = "a";
  FileSystem by = files();
  Ended a, b, looked;
  group.add(ends(by.remove(by.root(), "a"), a));
  server.loop.pass(1s);
  group.add(ends(by.getattr(by.root()), looked));
  group.add(ends(by.remove(by.root(), "b"), b));
  server.loop.pass(10ms);
  EXPECT_TRUE(looked.well) << "it waits for nobody";
  EXPECT_TRUE(b.well);
  EXPECT_EQ(keeper.executed("REMOVE b"), 1);
  server.loop.pass(kExecutes + 1min);
  EXPECT_TRUE(a.well) << "with the results of its first transmission";
  EXPECT_EQ(keeper.executed("REMOVE a"), 1);
}

TEST_F(Nfs41BusySlot, is_left_to_the_call_where_the_server_calls_the_retry_out_of_order) {
  keeper.busy = v4::NFS4ERR_SEQ_MISORDERED;
  keeper.slow = "a";
  FileSystem by = files();
  Ended a;
  group.add(ends(by.remove(by.root(), "a"), a));
  server.loop.pass(kExecutes + 1min);
  EXPECT_TRUE(a.well) << "with the results of its first transmission";
  EXPECT_EQ(keeper.executed("REMOVE a"), 1);
  EXPECT_EQ(keeper.sessions, 1);
}

TEST_F(Nfs41BusySlot, gives_no_other_call_the_results_of_the_first_one) {
  keeper.slow = "a";
  FileSystem by = files();
  Ended a;
  std::vector<Ended> others(40);
  group.add(creates(by, "a", a));
  // Whenever the others begin, also just when the server is done.
  for (std::size_t i = 0; i < others.size(); ++i) {
    group.add(creates(by, "b" + std::to_string(i), others[i]));
    server.loop.pass(kExecutes / 32);
  }
  server.loop.pass(1min);
  EXPECT_EQ(a.file, "a");
  for (std::size_t i = 0; i < others.size(); ++i)
    EXPECT_EQ(others[i].file, "b" + std::to_string(i));
  EXPECT_EQ(keeper.executed("OPEN a"), 1);
}

TEST_F(Nfs41BusySlot, is_asked_about_in_its_session_after_that_was_left) {
  FileSystem by = files();
  Ended a, looked;
  remove_in_left_session(by, a, looked);
  server.loop.pass(kExecutes + 1min);
  EXPECT_TRUE(looked.well);
  EXPECT_EQ(keeper.sessions, 2);
  EXPECT_TRUE(a.well);
  EXPECT_EQ(keeper.executed("REMOVE a"), 1);
}

// Nor does the connection that was made anew belong to the one that was left.
TEST_F(Nfs41BusySlot, is_asked_about_by_a_connection_that_is_bound_to_its_session_first) {
  FileSystem by = files();
  Ended a, looked;
  remove_in_left_session(by, a, looked);
  server.loop.pass(1s);
  EXPECT_EQ(keeper.sessions, 2);
  keeper.unbound = {std::byte{1}};
  server.loop.pass(kExecutes + 1min);
  EXPECT_TRUE(a.well);
  EXPECT_EQ(keeper.executed("REMOVE a"), 1);
}

TEST_F(Nfs41BusySlot, is_in_doubt_when_the_time_of_the_call_is_over) {
  keeper.slow = "a";
  server.options.calls.jukebox_for = kExecutes / 2;
  FileSystem by = files();
  Ended a;
  group.add(creates(by, "a", a));
  server.loop.pass(kExecutes - 1s);
  EXPECT_TRUE(a.delayed);
  Ended b;
  group.add(creates(by, "b", b));
  server.loop.pass(10ms);
  EXPECT_EQ(b.file, "b");
  server.loop.pass(2min);
  EXPECT_EQ(keeper.executed("CLOSE"), 1) << "of what nobody has";
}

TEST_F(Nfs41BusySlot, is_in_doubt_when_the_call_is_cancelled) {
  keeper.slow = "a";
  FileSystem by = files();
  CancelSource cancel;
  FileSystemOptions with = server.options;
  with.calls.cancel = cancel;
  FileSystem cancelled = by.with(with);
  Ended a, b;
  group.add(ends(cancelled.remove(by.root(), "a"), a));
  server.loop.pass(1s);
  cancel.cancel();
  server.loop.pass(10ms);
  EXPECT_TRUE(a.ended);
  EXPECT_FALSE(a.well);
  group.add(ends(by.remove(by.root(), "b"), b));
  server.loop.pass(10ms);
  EXPECT_TRUE(b.well);
  EXPECT_EQ(keeper.executed("REMOVE b"), 1);
  server.loop.pass(1min);
}

// Our own server, whose store is long at one REMOVE.
struct HeldRemove : testing::Nfs4ClientWorld {
  HeldRemove() : Nfs4ClientWorld(1) {
    ExportOptions open;
    open.root_squash = false;
    Exports exports;
    STAG_CHECK(exports.add(1, {"/data", stepped, open}).ok());
    context.exports.replace(std::move(exports));
    nfs4.add_program(served);
    options.calls.timeout = options.calls.jukebox_for = 1h;
  }

  bool holds = false;
  int removes = 0;
  std::shared_ptr<vfs::testing::HeldSteps> steps =
      std::make_shared<vfs::testing::HeldSteps>([this](vfs::testing::Point point) {
        if (point.operation != vfs::testing::Called::Remove ||
            point.when != vfs::testing::Point::When::Begin)
          return false;
        ++removes;
        return std::exchange(holds, false);
      });
  std::shared_ptr<vfs::testing::SteppedStore> stepped =
      std::make_shared<vfs::testing::SteppedStore>(store, steps);
  ServerContext context{ServerState::ephemeral(7)};
  stag::nfs::nfs4::Nfs4Server nfs4{context, {}};
  rpc::Server served;
  LoopbackChannel inner{loop, served};
  CutOnceChannel cut{inner, served};
};

TEST(Nfs41BusySlotOfStag, is_left_to_the_call_while_the_store_hangs) {
  HeldRemove world;
  auto protocol = *world.run(client::nfs4::Nfs4::connect(world.cut, world.options.calls));
  const auto root = world.run(protocol->root({"find the root", {}}));
  FileSystem all(protocol, root->handle, "/", world.options);
  FileSystem by(protocol, world.run(all.walk("data"))->handle, "/data", world.options);
  for (const char* name : {"a", "b"})
    ASSERT_TRUE(world.run(by.create(by.root(), name, {.mode = 0640})).ok());
  TaskGroup group;
  Ended a, b, looked;
  world.holds = world.cut.cuts = true;
  group.add(ends(by.remove(by.root(), "a"), a));
  world.loop.pass(11s);
  group.add(ends(by.getattr(by.root()), looked));
  group.add(ends(by.remove(by.root(), "b"), b));
  world.loop.pass(10ms);
  EXPECT_TRUE(looked.well);
  EXPECT_TRUE(b.well);
  EXPECT_FALSE(a.ended);
  world.steps->release_all();
  world.loop.pass(1min);
  EXPECT_TRUE(a.well);
  EXPECT_EQ(world.removes, 2);
  world.protocol = protocol;
  world.run(world.closed());
}

}  // namespace
}  // namespace stag::nfs::client
