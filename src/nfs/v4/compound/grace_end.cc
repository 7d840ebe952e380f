// A grace period: who may reclaim in it, and what becomes of those who have not when it ends.
#include <new>
#include <utility>
#include <vector>

#include "nfs/v4/compound/ending.h"
#include "nfs/v4/compound/shared_state.h"

namespace stag::nfs::nfs4 {

bool SharedState::admit(state::Life& life) const {
  if (options.recovery == nullptr || !options.grace->active()) return false;
  const auto owner = owner_of(life.clientid);
  const bool may = owner && options.recovery->may_reclaim(*owner, life.clientid);
  if (may) life.may_reclaim = true;
  return may;
}

namespace {

// How soon a grace period that could not be ended is tried to be ended again.
constexpr Duration kGraceAgain = std::chrono::seconds(5);

// What they have not reclaimed is anybody's once their records are gone, and which that is nobody
// wrote down.
class CutOff final : public recovery::Recovery::GraceEnd {
 public:
  explicit CutOff(const SharedState& shared) : shared_(shared) {}

  struct Client {
    state::LifePtr life;
    recovery::ClientOwner owner;
    bool spared = false;
  };
  std::vector<Client> clients;

  void begin(const recovery::Recovery::Owners& incomplete) override {
    if (incomplete.empty()) return;
    for (std::uint32_t shard = 0; shard < state::Clients::kShards; ++shard)
      for (const state::ClientId id : shared_.clients.ids(shard)) {
        auto owner = shared_.owner_of(id);
        state::LifePtr life = shared_.clients.life(id);
        if (life != nullptr && owner && incomplete.contains(*owner))
          clients.push_back({std::move(life), *std::move(owner)});
      }
  }
  void cut_off() noexcept override {
    for (const Client& each : clients) {
      each.life->cut_off = true;
      each.life->recorded = false;
    }
  }
  void spare(const recovery::Recovery::Owners& done) noexcept override {
    for (Client& each : clients) {
      if (!done.contains(each.owner)) continue;
      SharedState::not_cut_off(*each.life);
      each.spared = true;
    }
  }

 private:
  const SharedState& shared_;
};

// Puts off the end of a grace period unless that was tried: a worker may refuse it, or take it and
// give it up, and the period would never end.
class Unfinished {
 public:
  Unfinished(state::GracePeriod& grace, std::uint64_t number, TimePoint again)
      : grace_(&grace), number_(number), again_(again) {}
  Unfinished(Unfinished&& other) noexcept
      : grace_(std::exchange(other.grace_, nullptr)),
        number_(other.number_),
        again_(other.again_) {}
  Unfinished& operator=(Unfinished&&) = delete;
  ~Unfinished() {
    if (grace_ != nullptr) grace_->put_off(number_, again_);
  }
  void tried() { grace_ = nullptr; }

 private:
  state::GracePeriod* grace_;
  std::uint64_t number_;
  TimePoint again_;
};

}  // namespace

// A client that was recorded before this start must not claim anything after the next one.
void SharedState::finish_grace(std::uint64_t number, TimePoint now) {
  Unfinished unfinished(*options.grace, number, now + kGraceAgain);
  try {
    static_cast<void>(options.recovery->offload(
        [this, number, now, unfinished = std::move(unfinished)]() mutable {
          finish_recorded_grace(number, now);
          unfinished.tried();
        }));
  } catch (const std::bad_alloc&) {
    // As where the worker refuses it.
  }
}

// Blocks. A client that was done while its record was removed is recorded again, as by
// RECLAIM_COMPLETE; one that is just being ended is recorded when it comes back.
void SharedState::finish_recorded_grace(std::uint64_t number, TimePoint now) {
  CutOff told(*this);
  if (!options.recovery->finish_grace(*options.grace, number, told))
    return options.grace->put_off(number, now + kGraceAgain);
  for (CutOff::Client& each : told.clients) {
    if (!each.spared || each.life->states.load() == 0 || each.life->ending.exchange(true)) continue;
    const Ending ending(each.life);
    try {
      record_again(each.life, std::move(each.owner));
    } catch (const std::bad_alloc&) {
      // Its next open has it recorded.
    }
  }
}

}  // namespace stag::nfs::nfs4
