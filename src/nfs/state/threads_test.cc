// Clients and Files from four threads at once: what is counted comes to nothing in the end, and
// every slot runs each request once. The thread sanitizer looks on.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <random>
#include <string>

#include "nfs/state/copy_notices.h"
#include "testing/nfs/state_threads.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::kThreads;
using testing::on_threads;
using testing::StoredReply;
using testing::World;

TEST(Nfs4StateThreads, run_a_request_once_that_all_send_again) {
  World world;
  const auto client = world.client("owner");
  constexpr SequenceId kRequests = 300;
  std::array<std::atomic<int>, kRequests + 1> ran{};
  std::atomic<int> told{0}, waited{0};
  on_threads([&](int) {
    for (SequenceId number = 1; number <= kRequests;) {
      const Sequenced sequenced = world.sequence(client.session, 0, number);
      if (sequenced.kind == Sequenced::Kind::Run) {
        ++ran[number];
        world.finish(sequenced, std::make_shared<StoredReply>(static_cast<int>(number)));
      } else if (sequenced.kind == Sequenced::Kind::Replay) {
        EXPECT_EQ(static_cast<const StoredReply&>(*sequenced.reply).number,
                  static_cast<int>(number));
        ++number;
      } else if (sequenced.kind == Sequenced::Kind::Wait) {
        if (world.clients.wait(sequenced.slot, [&] { ++told; })) ++waited;
      } else if (sequenced.status == Status::SeqMisordered) {
        ++number;  // another thread is ahead
      }
    }
  });
  for (SequenceId number = 1; number <= kRequests; ++number) EXPECT_EQ(ran[number], 1) << number;
  EXPECT_EQ(told.load(), waited.load());
  EXPECT_EQ(client.life->running.load(), 0u);
}

// A client that opens, locks and closes what the others want, and restarts now and then.
void live(World& world, int number) {
  std::mt19937 random(static_cast<unsigned>(number));
  const std::string name = std::to_string(number);
  for (int life = 0; life < 30; ++life) {
    const ExchangeIdResult id = world.exchange_id(name, life, "root", false, "192.0.2." + name);
    const CreateSessionResult session = world.create_session(id.clientid, id.sequenceid);
    if (session.status != Status::Ok) continue;  // an administrator was faster
    if (session.ended != nullptr) world.files.release(*session.ended);
    const testing::Client client{id.clientid, session.sessionid, session.life};
    world.clients.reclaim_complete(*client.life);
    for (SequenceId request = 1; request <= 150; ++request) {
      const Sequenced sequenced = world.sequence(client.session, 0, request);
      if (sequenced.kind != Sequenced::Kind::Run) break;
      const std::uint64_t file = random() % 3;
      const std::uint32_t deny = random() % 8 == 0 ? kShareWrite : 0;
      const OpenResult open = world.open(client, file, kShareBoth, deny);
      if (open.verdict.granted()) {
        const std::uint64_t first = random() % 50;
        const LockResult lock = world.lock(client, file, open.stateid, {first, first + 9}, true);
        world.files.check(World::file(file), open.stateid, *client.life, Touch::Write);
        world.files.access(World::file(file), Touch::Write);
        if (lock.verdict.granted())
          world.files.unlock(World::file(file), lock.stateid, {first, first + 3}, *client.life);
        if (random() % 2 == 0) world.files.close(World::file(file), open.stateid, *client.life);
        if (random() % 50 == 0) world.files.revoke(open.stateid);
      }
      world.finish(sequenced);
      if (random() % 100 == 0)
        if (const LifePtr ended = world.clients.end(client.id, false)) world.files.release(*ended);
    }
  }
}

TEST(Nfs4StateThreads, leave_no_state_of_clients_when_all_have_ended) {
  World world;
  on_threads([&](int thread) {
    if (thread < kThreads - 1) return live(world, thread);
    for (int i = 0; i < 200; ++i) {
      for (const ClientInfo& info : world.clients.list(world.now)) {
        world.files.list(info.clientid, 100);
        if (i % 20 == 0)
          if (const LifePtr ended = world.clients.end(info.clientid, false))
            world.files.release(*ended);
      }
      world.clients.expire(world.now);
    }
  });
  for (const ClientInfo& info : world.clients.list(world.now)) {
    const LifePtr ended = world.clients.end(info.clientid, false);
    ASSERT_NE(ended, nullptr);
    world.files.release(*ended);
    EXPECT_EQ(ended->states.load(), 0u);
    EXPECT_EQ(ended->running.load(), 0u);
  }
  EXPECT_EQ(world.files.states(), 0u);
  for (std::uint64_t file = 0; file < 3; ++file)
    EXPECT_TRUE(world.files.access(World::file(file), Touch::Write).granted());
}

// Stateids that one thread is given, and others read by.
class SharedStateids {
 public:
  void put(const Stateid& stateid) {
    const std::lock_guard lock(mutex_);
    all_[next_++ % all_.size()] = stateid;
  }
  Stateid any(unsigned number) {
    const std::lock_guard lock(mutex_);
    return all_[number % all_.size()];
  }

 private:
  std::mutex mutex_;
  std::array<Stateid, 16> all_{};
  std::size_t next_ = 0;
};

TEST(Nfs4StateThreads, leave_no_copy_notice_when_all_have_ended) {
  World world;
  CopyNotices notices(world.files,
                      {.epoch = 1, .key = {}, .lease = World::lease, .limits = {8, 20}});
  SharedStateids given;
  on_threads([&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    for (int life = 0; life < 20; ++life) {
      const testing::Client client =
          world.client(std::to_string(thread) + "." + std::to_string(life));
      for (int i = 0; i < 100; ++i) {
        const std::uint64_t number = random() % 3;
        const FileKey file = World::file(number);
        const Stateid open = world.open(client, number).stateid;
        const StateidResult notice =
            notices.notify({file, open, random() % 4}, client.life, world.now);
        if (notice.status == Status::Ok) given.put(notice.stateid);
        notices.admits(file, given.any(random()), world.now);
        notices.cancel(file, given.any(random()), *client.life);
        if (random() % 8 == 0) world.files.close(file, {0, open.other}, *client.life);
        if (random() % 16 == 0) notices.expire(world.now + random() % 2 * World::lease);
      }
      const LifePtr ended = world.clients.end(client.id, false);
      ASSERT_NE(ended, nullptr);
      notices.release(*ended);
      world.files.release(*ended);
    }
  });
  EXPECT_EQ(notices.size(), 0u);
}

}  // namespace
}  // namespace stag::nfs::state
