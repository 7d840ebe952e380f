// Files against a list of facts: all interleavings to a bounded depth, and random steps.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "testing/nfs/state_model.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::Model;

struct Step {
  enum What {
    Open,
    Downgrade,
    Close,
    Lock,
    Unlock,
    Free,
    Lapse,
    Return,
    End,
    Complete,
    Restart,
    GraceEnds,
    Change,      // `exclusive`: of data
    ChangeEnds,  // the oldest
    Stop,        // or what was stopped goes on
  } what = Open;
  int client = 0, owner = 0, file = 0;
  std::uint32_t access = 0, deny = 0;
  int lock_owner = 0;
  Range range{};
  bool exclusive = false;
  bool reclaim = false;
};

constexpr int kClients = 3, kOwners = 2, kFiles = 2;
constexpr std::uint64_t kFileBytes = 8;
constexpr std::array<const char*, kOwners> kNames{"one", "two"};
constexpr Duration kGrace = std::chrono::seconds(90);
constexpr Stateid kUnknown{5, {std::byte{9}}};

// The real things, which a server keeps from its start on.
struct Real {
  std::shared_ptr<GracePeriod> grace = std::make_shared<GracePeriod>();
  Clients clients{{.epoch = 1, .lease = kGrace, .limits = {}}};
  Files files{{.epoch = 1, .key = {}, .limits = {}, .grace = grace}};
};

// The real thing and the model, side by side. It also does what the protocol layer does with the
// records of clients. Of the clients the last one is of version 4.0.
class Pair {
 public:
  explicit Pair(Real& real) : real_(real), files_(real.files) {
    model_.without_sessions = {kClients - 1};
    for (int client = 0; client < kClients; ++client) begin(client, true);
    for (FileKey& file : keys_) file = testing::World::file(next_file_++);
    while (taken_for_each_other()) keys_[1] = testing::World::file(next_file_++);
  }
  ~Pair() {
    for (const LifePtr& life : lives_) life->phase = Life::Phase::Ended;
    for (const LifePtr& life : lives_) files_.release(*life);
    for (const LifePtr& life : unreleased_) files_.release(*life);
    real_.grace->end_by_administrator(now_);
  }

  void perform(const Step& step) {
    switch (step.what) {
      case Step::Open:
        return open(step);
      case Step::Downgrade:
        return downgrade(step);
      case Step::Close:
        return close(step);
      case Step::Lock:
        return lock(step);
      case Step::Unlock:
        return unlock(step);
      case Step::Free:
        return free(step);
      case Step::Lapse:
        life(step.client).phase = Life::Phase::Lapsed;
        return;
      case Step::Return:
        life(step.client).phase = Life::Phase::Active;
        return;
      case Step::End:
        return end(step.client, step.exclusive);
      case Step::Complete:
        return complete(step.client);
      case Step::Restart:
        return restart();
      case Step::GraceEnds:
        return grace_ends();
      case Step::Change:
        return change(step);
      case Step::ChangeEnds:
        return change_ends();
      case Step::Stop:
        return stop_or_go_on(step.file);
    }
  }

  // All that can be asked.
  void compare() {
    std::uint32_t states = 0;
    EXPECT_EQ(files_.grace(), model_.grace);
    for (int client = 0; client < kClients; ++client) {
      for (int file = 0; file < kFiles; ++file) compare(client, file);
      states += life(client).states.load();
      for (const bool reclaim : {false, true})
        EXPECT_EQ(files_.may_claim(reclaim, life(client)), model_.claim(client, reclaim));
      EXPECT_EQ(files_.list(life(client).clientid, 1000).size(), held_by(client));
    }
    EXPECT_EQ(states, model_.opens.size() + model_.locks.size() + ranges());
  }
  const std::set<Status>& refusals() const { return refusals_; }

 private:
  // Where one is changed: they share a ChangeSlot.
  bool taken_for_each_other() {
    const StoppedChanges stopped = files_.stop_changes(keys_[0]);
    return !files_.access(keys_[1], Touch::Write).granted();
  }
  Life& life(int client) { return *lives_[static_cast<std::size_t>(client)]; }
  const LifePtr& life_ptr(int client) { return lives_[static_cast<std::size_t>(client)]; }
  const FileKey& key(int file) { return keys_[static_cast<std::size_t>(file)]; }
  static Bytes name(int owner) { return bytes_of(kNames[static_cast<std::size_t>(owner)]); }

  static void same(Status is, Status expected) { EXPECT_EQ(is, expected); }

  // `complete`: it has said that it reclaims nothing.
  void begin(int client, bool complete) {
    LifePtr& life = lives_[static_cast<std::size_t>(client)];
    life = std::make_shared<Life>(next_client_++);
    life->without_sessions = model_.without_sessions.contains(client);
    life->may_reclaim = model_.former.contains(client);
    if (!complete || life->without_sessions) return;
    life->reclaim_complete = true;
    model_.complete.insert(client);
  }
  void complete(int client) {
    if (life(client).without_sessions) return;
    const bool again = model_.complete.contains(client);
    EXPECT_EQ(real_.clients.reclaim_complete(life(client)),
              again ? Status::CompleteAlready : Status::Ok);
    if (!again && model_.completed(client)) real_.grace->nobody_left(now_);
  }
  // What was in memory is gone.
  void restart() {
    for (const LifePtr& life : lives_) {
      life->phase = Life::Phase::Ended;
      files_.release(*life);
    }
    real_.grace->end_by_administrator(now_);
    model_.restarted();
    if (model_.grace) real_.grace->begin(now_ + kGrace, model_.full_time);
    for (int client = 0; client < kClients; ++client) begin(client, false);
  }
  void grace_ends() {
    now_ += kGrace;
    EXPECT_EQ(real_.grace->active(now_ - Duration(1)), model_.grace);
    EXPECT_FALSE(real_.grace->active(now_));
    model_.grace_is_over();
  }
  void end(int client, bool released) {
    life(client).phase = Life::Phase::Ended;
    if (released)
      files_.release(life(client));
    else
      unreleased_.push_back(life_ptr(client));
    if (model_.ended(client)) real_.grace->nobody_left(now_);
    begin(client, !model_.grace);
  }

  // True when the facts about restarts refuse it; the status is what they say.
  bool may_not_claim(int client, bool reclaim, const Verdict& verdict) {
    const Status expected = model_.claim(client, reclaim);
    if (expected == Status::Ok) return false;
    EXPECT_FALSE(verdict.granted());
    EXPECT_EQ(verdict.status, expected);
    refusals_.insert(verdict.status);
    return true;
  }

  // The verdict is one of those that the facts allow; who lapsed and was named is ended.
  bool judge(const Verdict& verdict, const std::set<int>& in_the_way, Status status) {
    if (in_the_way.empty()) {
      EXPECT_TRUE(verdict.granted()) << static_cast<int>(verdict.status);
      return verdict.granted();
    }
    EXPECT_FALSE(verdict.granted());
    bool named = false;
    for (const int client : in_the_way) {
      const bool lapsed = life(client).lapsed();
      if (verdict.kind == Verdict::Kind::Lapsed && verdict.who == life(client).clientid) {
        EXPECT_TRUE(lapsed);
        named = true;
        if (ends_lapsed) end(client, true);
        break;
      }
      if (verdict.kind == Verdict::Kind::Refused && !lapsed) named = verdict.status == status;
    }
    if (verdict.kind == Verdict::Kind::Refused) refusals_.insert(verdict.status);
    EXPECT_TRUE(named);
    return false;
  }

  void open(const Step& step) {
    const auto before = model_.find_open(step.client, step.owner, step.file);
    const std::uint32_t seqid = before == nullptr ? 1 : before->stateid.seqid + 1;
    const auto in_the_way = model_.in_the_way(step.file, step.access, step.deny);
    const OpenResult result =
        files_.open({key(step.file), name(step.owner), step.access, step.deny, step.reclaim},
                    life_ptr(step.client));
    const bool may_deny = model_.may_deny(step.file, step.deny, step.reclaim);
    if (may_not_claim(step.client, step.reclaim, result.verdict)) return;
    const Status denied = step.reclaim ? Status::ReclaimConflict : Status::ShareDenied;
    if (in_the_way.empty() && !may_deny) return expect_changing(result);
    EXPECT_FALSE(result.changing);
    if (!judge(result.verdict, in_the_way, denied)) return;
    EXPECT_EQ(result.stateid.seqid, seqid);
    if (before != nullptr) {
      EXPECT_EQ(result.stateid.other, before->stateid.other);
    }
    model_.opened(step.client, step.owner, step.file, step.access, step.deny, result.stateid);
  }

  void expect_changing(const OpenResult& result) {
    EXPECT_TRUE(result.changing);
    EXPECT_EQ(result.verdict.status, Status::Delay);
    refusals_.insert(result.verdict.status);
  }

  // One that comes without a stateid.
  void change(const Step& step) {
    const Touch touch = step.exclusive ? Touch::Write : Touch::Attributes;
    const auto in_the_way =
        step.exclusive ? model_.in_the_way(step.file, kShareWrite, 0) : std::set<int>();
    Permit permit = files_.access(key(step.file), touch);
    if (step.exclusive && is_stopped(step.file, permit)) return;
    if (!judge(permit, in_the_way, Status::Locked)) return;
    (step.exclusive ? model_.data_changing : model_.attributes_changing).insert(step.file);
    changes_.push_back({step.file, step.exclusive, std::move(permit.change)});
  }
  void change_ends() {
    if (changes_.empty()) return;
    const int file = changes_.front().file;
    const bool of_data = changes_.front().of_data;
    auto& changing = of_data ? model_.data_changing : model_.attributes_changing;
    changing.erase(changing.find(file));
    const bool at_rest = of_data && !model_.data_changing.contains(file);
    const std::size_t told = told_of_rest_[file] + (at_rest ? waiting_for_rest_.erase(file) : 0);
    changes_.pop_front();
    EXPECT_EQ(told_of_rest_[file], told);
  }
  void stop_or_go_on(int file) {
    if (model_.stopped.erase(file) > 0) {
      stops_.erase(file);
      waiting_for_rest_.erase(file);
      return;
    }
    model_.stopped.insert(file);
    stops_.emplace(file, files_.stop_changes(key(file)));
    Waiting wait = files_.wait_for_changes(key(file), [this, file] { ++told_of_rest_[file]; });
    EXPECT_EQ(wait.how, model_.data_changing.contains(file) ? Wait::Begun : Wait::NoNeed);
    if (wait.how == Wait::Begun) waiting_for_rest_.insert(file);
    waits_.push_back(std::move(wait));
  }
  // Then whatever else would be in the way does not matter.
  bool is_stopped(int file, const Verdict& verdict) {
    const bool stopped = model_.stopped.contains(file);
    EXPECT_EQ(verdict.kind == Verdict::Kind::Recall, stopped);
    return stopped;
  }

  void downgrade(const Step& step) {
    Model::Open* const open = model_.find_open(step.client, step.owner, step.file);
    const StateidResult result =
        files_.open_downgrade(key(step.file), open == nullptr ? kUnknown : open->stateid,
                              step.access, step.deny, life(step.client));
    if (open == nullptr) return same(result.status, Status::BadStateid);
    if (!Model::may_downgrade(*open, step.access, step.deny))
      return same(result.status, Status::Inval);
    EXPECT_EQ(result.status, Status::Ok);
    EXPECT_EQ(result.stateid.seqid, open->stateid.seqid + 1);
    open->stateid = result.stateid;
    Model::downgraded(*open, step.access, step.deny);
  }

  void close(const Step& step) {
    const Model::Open* const open = model_.find_open(step.client, step.owner, step.file);
    const Status status =
        files_.close(key(step.file), open == nullptr ? kUnknown : open->stateid, life(step.client))
            .status;
    EXPECT_EQ(status, open == nullptr ? Status::BadStateid : Status::Ok);
    if (open != nullptr) model_.closed(step.client, step.owner, step.file);
  }

  void lock(const Step& step) {
    const Model::Open* const open = model_.find_open(step.client, step.owner, step.file);
    Model::Lock* const known =
        model_.find_lock(step.client, step.lock_owner, step.file, step.owner);
    // Every other lock by the stateid that there is.
    const bool by_open = known == nullptr || step.range.first % 2 == 0;
    LockArgs args{key(step.file), step.range, step.exclusive,       step.reclaim,
                  by_open,        kUnknown,   name(step.lock_owner)};
    if (open != nullptr) args.stateid = by_open ? open->stateid : known->stateid;
    const auto in_the_way =
        model_.in_the_way(step.client, step.lock_owner, step.file, step.range, step.exclusive);
    const LockResult result = files_.lock(args, life_ptr(step.client));
    if (may_not_claim(step.client, step.reclaim, result.verdict)) return;
    if (open == nullptr) return same(result.verdict.status, Status::BadStateid);
    if ((open->access & (step.exclusive ? kShareWrite : kShareRead)) == 0)
      return same(result.verdict.status, Status::Openmode);
    const Status denied = step.reclaim ? Status::ReclaimConflict : Status::Denied;
    if (!judge(result.verdict, in_the_way, denied)) return;
    EXPECT_EQ(result.stateid.seqid, known == nullptr ? 1 : known->stateid.seqid + 1);
    if (known != nullptr) {
      EXPECT_EQ(result.stateid.other, known->stateid.other);
    }
    model_.locked({step.client, step.lock_owner, step.file, step.owner, result.stateid}, step.range,
                  step.exclusive);
  }

  void unlock(const Step& step) {
    Model::Lock* const lock = model_.find_lock(step.client, step.lock_owner, step.file, step.owner);
    const StateidResult result = files_.unlock(
        key(step.file), lock == nullptr ? kUnknown : lock->stateid, step.range, life(step.client));
    if (lock == nullptr) return same(result.status, Status::BadStateid);
    EXPECT_EQ(result.status, Status::Ok);
    EXPECT_EQ(result.stateid.seqid, lock->stateid.seqid + 1);
    lock->stateid = result.stateid;
    model_.unlocked(step.client, step.lock_owner, step.file, step.range);
  }

  void free(const Step& step) {
    const Model::Lock* const lock =
        model_.find_lock(step.client, step.lock_owner, step.file, step.owner);
    const Status status =
        files_.free_stateid(lock == nullptr ? kUnknown : lock->stateid, life(step.client));
    if (lock == nullptr) return same(status, Status::BadStateid);
    if (model_.holds_bytes(*lock)) return same(status, Status::LocksHeld);
    EXPECT_EQ(status, Status::Ok);
    model_.locks.erase(model_.locks.begin() + (lock - model_.locks.data()));
  }

  void compare(int client, int file) {
    const bool ending = std::exchange(ends_lapsed, false);
    for (const auto& [touch, bits] :
         {std::pair(Touch::Read, kShareRead), std::pair(Touch::Write, kShareWrite)}) {
      if (touch == Touch::Write && is_stopped(file, files_.access(key(file), touch))) continue;
      const auto in_the_way = model_.in_the_way(file, bits, 0);
      judge(files_.access(key(file), touch), in_the_way, Status::Locked);
      const Verdict anonymous = files_.check(key(file), kAnonymousStateid, life(client), touch);
      if (model_.grace)
        EXPECT_EQ(anonymous.status, Status::Grace);
      else
        judge(anonymous, in_the_way, Status::Locked);
      for (const Model::Open& open : model_.opens) check(client, file, open, touch, bits);
    }
    for (const Model::Lock& lock : model_.locks)
      EXPECT_EQ(files_.test_stateid(lock.stateid, life(client)),
                lock.client == client ? Status::Ok : Status::BadStateid);
    for (std::uint64_t byte = 0; byte < kFileBytes; ++byte)
      for (int owner = 0; owner < kOwners; ++owner)
        for (const bool exclusive : {false, true})
          ask_for_lock(client, owner, file, {byte, byte}, exclusive);
    ends_lapsed = ending;
  }
  void ask_for_lock(int client, int owner, int file, Range range, bool exclusive) {
    const Verdict verdict =
        files_.test_lock(key(file), range, exclusive, name(owner), life(client)).verdict;
    if (model_.grace) return same(verdict.status, Status::Grace);
    judge(verdict, model_.in_the_way(client, owner, file, range, exclusive), Status::Denied);
  }
  void check(int client, int file, const Model::Open& open, Touch touch, std::uint32_t bits) {
    const Verdict verdict = files_.check(key(file), open.stateid, life(client), touch);
    if (open.client != client || open.file != file) {
      EXPECT_EQ(verdict.status, Status::BadStateid);
    } else if ((open.access & bits) != 0) {
      EXPECT_TRUE(verdict.granted());
    } else if (touch == Touch::Write) {
      EXPECT_EQ(verdict.status, Status::Openmode);
    } else {
      judge(verdict, model_.in_the_way(file, bits, 0, &open), Status::Locked);
    }
  }

  std::size_t held_by(int client) const {
    std::size_t count = 0;
    for (const auto& open : model_.opens) count += open.client == client;
    for (const auto& lock : model_.locks) count += lock.client == client;
    return count;
  }
  // Neighbouring bytes of one owner, mode and open are one range.
  std::size_t ranges() const {
    std::size_t count = 0;
    for (const Model::Byte& byte : model_.bytes)
      count += std::none_of(model_.bytes.begin(), model_.bytes.end(), [&](const Model::Byte& b) {
        return b.client == byte.client && b.owner == byte.owner && b.file == byte.file &&
               b.open_owner == byte.open_owner && b.exclusive == byte.exclusive &&
               b.byte + 1 == byte.byte;
      });
    return count;
  }

  struct Change {
    int file = 0;
    bool of_data = false;
    FileChange change;
  };
  std::map<int, std::size_t> told_of_rest_;
  std::set<int> waiting_for_rest_;
  std::vector<Waiting> waits_;
  std::map<int, StoppedChanges> stops_;
  std::deque<Change> changes_;

  static inline std::uint64_t next_file_ = 1;
  static inline ClientId next_client_ = 1;
  bool ends_lapsed = true;
  Real& real_;
  Files& files_;
  TimePoint now_ = TimePoint() + std::chrono::hours(1);
  std::set<Status> refusals_;  // that came
  Model model_;
  std::array<LifePtr, kClients> lives_;
  std::array<FileKey, kFiles> keys_;
  std::vector<LifePtr> unreleased_;
};

// Performs every sequence of `depth` of these steps, each from the beginning. Which client and
// owner take the first step does not matter: the first `first` of the steps are client 0's and
// owner 0's.
void perform_all(const std::vector<Step>& before, const std::vector<Step>& steps, std::size_t first,
                 int depth) {
  Real real;
  std::vector<std::size_t> at(static_cast<std::size_t>(depth), 0);
  for (bool more = true; more && !::testing::Test::HasFailure();) {
    {
      Pair pair(real);
      for (const Step& step : before) pair.perform(step);
      for (const std::size_t i : at) pair.perform(steps[i]);
      if (at.back() == 0) pair.compare();
    }
    more = false;
    for (std::size_t digit = at.size(); digit-- > 0 && !more;) {
      more = ++at[digit] < (digit == 0 ? first : steps.size());
      if (!more) at[digit] = 0;
    }
  }
  EXPECT_EQ(real.files.states(), 0u);
}

TEST(Nfs4StateModel, agrees_on_all_interleavings_of_opens) {
  std::vector<Step> steps;
  for (int client = 0; client < 2; ++client) {
    for (int owner = 0; owner < 2; ++owner) {
      steps.push_back({.client = client, .owner = owner, .access = kShareRead});
      steps.push_back({.client = client, .owner = owner, .access = kShareBoth, .deny = 2});
      steps.push_back(
          {.what = Step::Downgrade, .client = client, .owner = owner, .access = kShareRead});
      steps.push_back({.what = Step::Close, .client = client, .owner = owner});
    }
    steps.push_back({.what = Step::Lapse, .client = client});
    steps.push_back({.what = Step::End, .client = client});
  }
  perform_all({}, steps, 4, testing::depth_or(4));
}

TEST(Nfs4StateModel, agrees_on_all_interleavings_of_changes) {
  std::vector<Step> steps;
  for (int client = 0; client < 2; ++client) {
    steps.push_back({.client = client, .access = kShareRead, .deny = kShareWrite});
    steps.push_back({.client = client, .access = kShareBoth});
    steps.push_back({.what = Step::Close, .client = client});
  }
  steps.push_back({.what = Step::Change, .exclusive = true});
  steps.push_back({.what = Step::Change});
  steps.push_back({.what = Step::ChangeEnds});
  steps.push_back({.what = Step::Stop});
  perform_all({}, steps, steps.size(), testing::depth_or(4));
}

TEST(Nfs4StateModel, agrees_on_all_interleavings_of_locks) {
  std::vector<Step> before, steps;
  const std::array<Range, 3> ranges{Range{0, 1}, Range{1, 2}, Range{0, 3}};
  for (int client = 0; client < 2; ++client) {
    before.push_back({.client = client, .access = kShareBoth});
    for (int owner = 0; owner < 2; ++owner)
      for (const Range& range : ranges) {
        Step step{.what = Step::Lock, .client = client, .lock_owner = owner, .range = range};
        steps.push_back(step);
        step.exclusive = true;
        steps.push_back(step);
        step.what = Step::Unlock;
        steps.push_back(step);
      }
  }
  perform_all(before, steps, 9, testing::depth_or(3));
}

// Both clients have a file open and locked, and then the server starts again.
TEST(Nfs4StateModel, agrees_on_all_interleavings_of_reclaims) {
  for (const int other : {1, kClients - 1}) {
    std::vector<Step> before, steps{{.what = Step::Restart}, {.what = Step::GraceEnds}};
    for (const int client : {0, other}) {
      Step opening{.client = client, .access = kShareBoth};
      Step locking{.what = Step::Lock, .client = client, .range = {0, 1}, .exclusive = client == 0};
      before.push_back(opening);
      for (Step* const step : {&opening, &locking})
        for (const bool reclaim : {true, false}) {
          step->reclaim = reclaim;
          steps.push_back(*step);
        }
      steps.push_back({.client = client, .access = kShareRead, .deny = 2, .reclaim = true});
      for (const Step::What what : {Step::Complete, Step::End})
        steps.push_back({.what = what, .client = client, .exclusive = true});
    }
    perform_all(before, steps, 1, testing::depth_or(5));
  }
}

// The rare ones.
std::optional<Step::What> random_turn(std::mt19937& random) {
  const unsigned dice = random() % 1000;
  if (dice < 3) return Step::Restart;
  if (dice < 15) return Step::GraceEnds;
  if (dice < 60) return Step::Complete;
  if (dice < 90) return Step::Change;
  if (dice < 125) return Step::ChangeEnds;
  if (dice < 130) return Step::Stop;
  return std::nullopt;
}

Step random_step(std::mt19937& random) {
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  Step step;
  const int dice = below(100);
  step.what = dice < 25   ? Step::Open
              : dice < 33 ? Step::Downgrade
              : dice < 43 ? Step::Close
              : dice < 73 ? Step::Lock
              : dice < 88 ? Step::Unlock
              : dice < 93 ? Step::Free
              : dice < 95 ? Step::Lapse
              : dice < 99 ? Step::Return
                          : Step::End;
  if (const auto turn = random_turn(random)) step.what = *turn;
  step.client = below(kClients);
  step.owner = below(kOwners);
  step.file = below(kFiles);
  step.access = static_cast<std::uint32_t>(1 + below(3));
  step.deny = below(4) == 0 ? static_cast<std::uint32_t>(below(4)) : 0;
  step.lock_owner = below(kOwners);
  step.range.first = static_cast<std::uint64_t>(below(kFileBytes));
  step.range.last = step.range.first + static_cast<std::uint64_t>(
                                           below(static_cast<int>(kFileBytes - step.range.first)));
  step.exclusive = below(2) == 0;
  step.reclaim = below(3) == 0;
  return step;
}

TEST(Nfs4StateModel, agrees_after_many_random_steps) {
  const int steps = testing::random_steps();
  Real real;
  std::mt19937 random(8881);
  {
    Pair pair(real);
    for (int i = 0; i < steps && !HasFailure(); ++i) {
      pair.perform(random_step(random));
      if (i % 64 == 0) pair.compare();
      EXPECT_FALSE(HasFailure()) << "step " << i;
    }
    for (const Status status :
         {Status::Grace, Status::NoGrace, Status::ReclaimBad, Status::ReclaimConflict,
          Status::ShareDenied, Status::Denied, Status::Delay})
      EXPECT_TRUE(pair.refusals().contains(status)) << static_cast<int>(status);
  }
  EXPECT_EQ(real.files.states(), 0u);
}

}  // namespace
}  // namespace stag::nfs::state
