// Delegations from four threads at once: given, used, recalled by conflicting opens and by versions
// 2 and 3, given back, revoked, and lost with their clients and leases. The thread sanitizer looks
// on. A thread that waits for a delegation to go really waits: a wake-up that is lost ends in a
// standstill.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "nfs/state/gate.h"
#include "nfs/state/listing.h"
#include "testing/nfs/state_threads.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::kThreads;
using testing::on_threads;
using testing::World;
using VerdictKind = Verdict::Kind;

constexpr int kSteps = 1500;  // of each thread
constexpr std::uint64_t kFiles = 3;
constexpr std::size_t kActors = 6;  // more than can be busy at the same time: others lapse

// What became of every delegation that was given, and recalls that are to be answered.
class Ledger {
 public:
  struct Fate {
    ClientId clientid = 0;  // 0: it was not given
    int recalled = 0;       // how often its holder was told
    int ended = 0;          // how often it was given back, or freed after it was revoked
  };
  using Key = std::array<std::byte, 12>;

  // A thread that conflicts with a delegation may be faster than the one that has just got it: the
  // delegation may have been recalled and have ended already.
  void given(const Stateid& stateid, ClientId clientid) {
    const std::lock_guard lock(mutex_);
    ClientId& known = fates_[stateid.other].clientid;
    EXPECT_EQ(known, 0u) << "another delegation had this stateid";
    known = clientid;
    held_.push_back(stateid);
  }
  void ended(const Stateid& stateid) {
    const std::lock_guard lock(mutex_);
    ++fates_[stateid.other].ended;
  }
  void recalled(const Recall& recall) {
    const std::lock_guard lock(mutex_);
    ++fates_[recall.stateid.other].recalled;
    unanswered_.push_back(recall);
    changed_.notify_all();
  }
  // One that was given, and has perhaps ended since.
  std::optional<Stateid> any(unsigned number) {
    const std::lock_guard lock(mutex_);
    if (held_.empty()) return std::nullopt;
    return held_[held_.size() - 1 - number % std::min<std::size_t>(held_.size(), 16)];
  }
  // One who was begun with begin_wait().
  struct Waiter {
    bool told = false, gave_up = false;
  };
  using Told = std::shared_ptr<Waiter>;
  Told begin_wait() {
    const std::lock_guard lock(mutex_);
    ++waiting_;
    return std::make_shared<Waiter>();
  }
  void tell(const Told& waiter) {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(waiter->told) << "a waiter was told twice";
    waiter->told = true;
    if (!waiter->gave_up) --waiting_;
    changed_.notify_all();
  }
  // Another thread may tell the waiter in the same moment.
  void give_up(const Told& waiter) {
    const std::lock_guard lock(mutex_);
    waiter->gave_up = !waiter->told;
    if (waiter->gave_up) --waiting_;
  }
  void never_began() {
    const std::lock_guard lock(mutex_);
    --waiting_;
  }
  // Waits until either can be had.
  std::optional<Recall> next_recall_or(const Told& told) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return told->told || !unanswered_.empty(); });
    return told->told ? std::nullopt : take();
  }
  std::optional<Recall> next_recall() {
    const std::lock_guard lock(mutex_);
    return take();
  }

  // When the threads are gone.
  int waiting() const { return waiting_; }
  const std::map<Key, Fate>& fates() const { return fates_; }

 private:
  std::optional<Recall> take() {
    if (unanswered_.empty()) return std::nullopt;
    const Recall first = unanswered_.front();
    unanswered_.pop_front();
    return first;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Fate> fates_;
  std::vector<Stateid> held_;
  std::deque<Recall> unanswered_;
  int waiting_ = 0;
};

// One incarnation of a client, for whom every thread has a slot.
struct Actor {
  testing::Client client;
  std::array<SequenceId, kThreads> sent{};
};
using ActorPtr = std::shared_ptr<Actor>;

class Stage {
 public:
  Stage() {
    world.files.on_recall([this](const Recall& recall) { ledger.recalled(recall); });
    gate.guard(world.files, [this](ClientId clientid) { end(clientid, true); });
    for (std::size_t i = 0; i < kActors; ++i) replace(i, nullptr);
  }

  ActorPtr actor(std::size_t number) {
    const std::lock_guard lock(mutex_);
    return actors_[number];
  }
  // Another incarnation, unless another thread was faster.
  void replace(std::size_t number, const ActorPtr& former) {
    const std::lock_guard lock(mutex_);
    ActorPtr& now = actors_[number];
    if (now != former) return;
    CreateSessionResult session;
    ClientId clientid = 0;
    do {
      // Before it has a session it may be taken for one that never comes back.
      const ExchangeIdResult id = world.exchange_id(std::to_string(number), ++incarnations_);
      clientid = id.clientid;
      session = world.create_session(id.clientid, id.sequenceid);
    } while (session.status != Status::Ok);
    if (session.ended != nullptr) world.files.release(*session.ended);
    world.clients.reclaim_complete(*session.life);
    now = std::make_shared<Actor>(Actor{{clientid, session.sessionid, session.life}, {}});
    lives_.push_back(session.life);
  }
  void end(ClientId clientid, bool lapsed_only) {
    if (const LifePtr ended = world.clients.end(clientid, lapsed_only)) world.files.release(*ended);
  }
  void leases_run_out() {
    std::vector<LifePtr> lapsed;
    for (const LifePtr& ended : world.clients.expire(world.now + 2 * World::lease, &lapsed))
      world.files.release(*ended);
    if (!lapsed.empty()) world.files.tell_of_lapse();
  }
  // Of all incarnations.
  const std::vector<LifePtr>& lives() const { return lives_; }

  World world;
  Ledger ledger;
  Gate gate;

 private:
  std::mutex mutex_;
  std::array<ActorPtr, kActors> actors_;
  std::vector<LifePtr> lives_;
  int incarnations_ = 0;
};

// What one thread does.
class Player {
 public:
  Player(Stage& stage, int thread)
      : stage_(stage),
        files_(stage.world.files),
        thread_(static_cast<std::size_t>(thread)),
        random_(static_cast<unsigned>(thread)) {}

  void play() {
    for (int i = 0; i < kSteps; ++i) step();
  }
  // What nobody else is going to answer.
  void answer_the_rest() {
    while (const auto recall = stage_.ledger.next_recall()) answer(*recall);
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  void step() {
    const std::uint64_t dice = below(100);
    if (dice < 12) return touch_without_state();
    if (dice < 15) return stage_.leases_run_out();
    if (dice < 20) return look_at_holders();
    if (dice < 25) return want_one_back();
    if (dice < 35) {
      if (const auto recall = stage_.ledger.next_recall()) answer(*recall);
      return;
    }
    act(below(kActors));
  }

  void act(std::size_t number) {
    const ActorPtr actor = stage_.actor(number);
    World& world = stage_.world;
    const Sequenced request =
        world.sequence(actor->client.session, thread_, ++actor->sent[thread_]);
    if (request.kind != Sequenced::Kind::Run) return stage_.replace(number, actor);
    const std::uint64_t dice = below(8);
    if (dice < 2)
      use_any(actor->client);
    else if (dice == 2)  // of a file that it has closed meanwhile
      delegate(actor->client, World::file(below(kFiles)), below(2) == 0);
    else
      open_and_use(*actor);
    world.finish(request);
    if (below(60) == 0) stage_.end(actor->client.id, false);
  }

  void open_and_use(Actor& actor) {
    const testing::Client& client = actor.client;
    const std::uint64_t number = below(kFiles);
    const FileKey file = World::file(number);
    const bool writes = below(3) == 0;
    const std::uint32_t deny = below(16) == 0 ? kShareWrite : 0;
    const std::string owner = std::to_string(thread_);
    Stateid open;
    const Verdict verdict = settled(file, [&] {
      const OpenResult result =
          stage_.world.open(client, number, writes ? kShareBoth : kShareRead, deny, owner);
      open = result.stateid;
      return result.verdict;
    });
    if (!verdict.granted()) return;
    const StateidResult given = delegate(client, file, writes);
    read_or_write(client, file, open, writes);
    lock_some(client, number, open, writes);
    if (below(2) == 0) files_.close(file, {0, open.other}, *client.life);
    if (given.status == Status::Ok && below(4) == 0) give_back(file, given.stateid, *client.life);
  }
  StateidResult delegate(const testing::Client& client, const FileKey& file, bool to_write) {
    const DelegationType type = to_write ? DelegationType::Write : DelegationType::Read;
    const StateidResult given = files_.delegate({file, type, {}}, client.life);
    if (given.status == Status::Ok) stage_.ledger.given(given.stateid, client.id);
    return given;
  }
  void read_or_write(const testing::Client& client, const FileKey& file, const Stateid& stateid,
                     bool writes) {
    const Permit permit =
        files_.check(file, {0, stateid.other}, *client.life, writes ? Touch::Write : Touch::Read);
    if (!writes || !permit.granted()) return;
    for (std::size_t i = 0; i < kActors; ++i) {
      const ActorPtr other = stage_.actor(i);
      if (other->client.id == client.id) continue;
      EXPECT_FALSE(files_.delegation_of(file, *other->client.life))
          << "while somebody else changes the file";
    }
  }
  void lock_some(const testing::Client& client, std::uint64_t number, const Stateid& open,
                 bool exclusive) {
    const std::uint64_t first = below(50);
    const std::string owner = std::to_string(thread_);
    const LockResult lock =
        stage_.world.lock(client, number, {0, open.other}, {first, first + 9}, exclusive, owner);
    if (lock.verdict.granted() && below(2) == 0)
      files_.unlock(World::file(number), {0, lock.stateid.other}, {first, first + 3}, *client.life);
  }
  // A delegation that may be anybody's.
  void use_any(const testing::Client& client) {
    const FileKey file = World::file(below(kFiles));
    const auto stateid = stage_.ledger.any(static_cast<unsigned>(random_()));
    if (!stateid) return;
    if (below(2) == 0) return give_back(file, *stateid, *client.life);
    const Touch touch = below(2) == 0 ? Touch::Read : Touch::Write;
    const Permit permit = files_.check(file, *stateid, *client.life, touch);
    files_.check_delegation(file, *stateid, *client.life);
    files_.is_delegated(*stateid);
  }
  void give_back(const FileKey& file, const Stateid& stateid, const Life& life) {
    const Status status = files_.return_delegation(file, stateid, life);
    if (status == Status::Ok) return stage_.ledger.ended(stateid);
    if (status == Status::DelegRevoked) free_revoked(stateid, life);
  }
  void free_revoked(const Stateid& stateid, const Life& life) {
    if (files_.free_stateid(stateid, life) == Status::Ok) stage_.ledger.ended(stateid);
  }

  // As versions 2 and 3 do: a change through the gate, while nobody may have a delegation.
  void touch_without_state() {
    constexpr std::array kTouches{Touch::Read, Touch::Write, Touch::Attributes, Touch::Unlink};
    const Touch touch = kTouches[below(kTouches.size())];
    const FileKey file = World::file(below(kFiles));
    if (!stage_.gate.guarded()) return;
    std::optional<Permit> permit;
    const Verdict verdict = settled(file, [&]() -> Verdict {
      permit.reset();
      permit.emplace(stage_.gate.access(file, touch));
      if (permit->kind == VerdictKind::Recall) stage_.gate.recall(file, touch);
      return *permit;
    });
    const bool changes = touch == Touch::Write || touch == Touch::Attributes;
    if (!verdict.granted() || !changes) return;
    const ActorPtr actor = stage_.actor(below(kActors));
    EXPECT_NE(delegate(actor->client, file, false).status, Status::Ok) << "it is being changed";
    EXPECT_EQ(files_.wait(file, [] {}).how, Wait::NoNeed)
        << "a delegation of what is being changed";
  }

  // Of each file: a delegation to write is the only one, and nobody else has opened it.
  void look_at_holders() {
    StateCursor at;
    StatePage page;
    for (bool more = true; more;) {
      more = files_.list(at, {}, page);
      for (const StateInfo& holder : page.rows())
        for (const StateInfo& other : page.rows()) EXPECT_FALSE(conflict(holder, other));
    }
  }
  static bool conflict(const StateInfo& holder, const StateInfo& other) {
    using Type = StateInfo::Type;
    if (holder.type != Type::Delegation || holder.revoked != Status::Ok) return false;
    if (other.revoked != Status::Ok || other.type == Type::Lock) return false;
    if (other.file != holder.file || other.clientid == holder.clientid) return false;
    const bool writes = holder.delegation_type == DelegationType::Write;
    if (other.type == Type::Delegation)
      return writes || other.delegation_type == DelegationType::Write;
    return writes || (other.share_access & kShareWrite) != 0;
  }

  void want_one_back() {
    if (const auto stateid = stage_.ledger.any(static_cast<unsigned>(random_())))
      files_.recall(*stateid);
  }
  // As the client does, or as the server where that does not answer.
  void answer(const Recall& recall) {
    const LifePtr life = stage_.world.clients.life(recall.clientid);
    if (life == nullptr) return;  // The thread that ended the client releases what it held.
    const std::uint64_t dice = below(10);
    if (dice == 0) return stage_.end(recall.clientid, false);
    if (dice < 3) {
      files_.revoke_delegation(recall.stateid);
      return free_revoked(recall.stateid, *life);
    }
    give_back(recall.file, recall.stateid, *life);
  }

  // Asks until there is an answer other than to wait. Between two askings it waits until a
  // delegation has gone, and answers recalls meanwhile: all other threads may be waiting, too.
  template <class Ask>
  Verdict settled(const FileKey& file, Ask ask) {
    for (;;) {
      Verdict verdict = ended_lapsed(ask);
      if (verdict.kind != VerdictKind::Recall) return verdict;
      const Ledger::Told told = stage_.ledger.begin_wait();
      const Waiting wait =
          files_.wait(file, [&ledger = stage_.ledger, told] { ledger.tell(told); });
      EXPECT_NE(wait.how, Wait::TooMany);
      if (wait.how != Wait::Begun) {
        stage_.ledger.never_began();
        continue;
      }
      // The delegation may be another one by now, which nobody was asked for.
      verdict = ended_lapsed(ask);
      if (verdict.kind != VerdictKind::Recall) {
        stage_.ledger.give_up(told);
        return verdict;
      }
      while (const auto recall = stage_.ledger.next_recall_or(told)) answer(*recall);
    }
  }
  template <class Ask>
  Verdict ended_lapsed(Ask& ask) {
    for (;;) {
      const Verdict verdict = ask();
      if (verdict.kind != VerdictKind::Lapsed) return verdict;
      stage_.gate.end_lapsed(verdict.who);
    }
  }

  Stage& stage_;
  Files& files_;
  const std::uint32_t thread_;
  std::mt19937 random_;
};

TEST(Nfs4StateDelegationThreads, have_no_two_conflicting_holders_and_leave_nobody_waiting) {
  Stage stage;
  on_threads([&](int thread) { Player(stage, thread).play(); });
  Player(stage, kThreads).answer_the_rest();
  int recalled = 0, ended = 0;
  for (const auto& [stateid, fate] : stage.ledger.fates()) {
    EXPECT_LE(fate.recalled, 1) << "somebody was asked twice";
    EXPECT_LE(fate.ended, 1) << "it was given back twice";
    const bool answered = fate.ended == 1 || stage.world.clients.life(fate.clientid) == nullptr;
    EXPECT_TRUE(fate.recalled == 0 || answered);
    EXPECT_NE(fate.clientid, 0u);
    recalled += fate.recalled;
    ended += fate.ended;
  }
  EXPECT_GT(recalled, 0);
  EXPECT_GT(ended, 0);
  for (const LifePtr& life : stage.lives()) stage.end(life->clientid, false);
  EXPECT_EQ(stage.ledger.waiting(), 0);
  for (const LifePtr& life : stage.lives()) {
    EXPECT_TRUE(life->ended());
    EXPECT_EQ(life->delegations.load(), 0u);
    EXPECT_EQ(life->states.load(), 0u);
    EXPECT_EQ(life->recallable_revoked.load(), 0u);
    EXPECT_EQ(life->running.load(), 0u);
  }
  EXPECT_EQ(stage.world.files.states(), 0u);
  EXPECT_FALSE(stage.world.files.guarded());
}

}  // namespace
}  // namespace stag::nfs::state
