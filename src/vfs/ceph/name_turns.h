// NameTurns: operations on names run together, but for renames. libcephfs 16.2 crashes when the
// answer to a rename finds that the answer to something else has taken its entry away meanwhile,
// and waits for ever for an entry whose rename failed because it had gone.
//
// An operation lasts as long as the cluster takes for it: a minute or more where another client of
// the cluster, which has died, has rights in what it names. So nobody waits for a turn for longer
// than the patience, and a rename that has waited in vain is not followed at once by another that
// keeps others out. Thread: any that may block.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

namespace stag::vfs::ceph {

class NameTurns {
 public:
  using Duration = std::chrono::milliseconds;
  // `rest`: how long renames keep nobody out once one has waited in vain.
  explicit NameTurns(Duration patience = std::chrono::seconds(1),
                     Duration rest = std::chrono::seconds(10))
      : patience_(patience), rest_(rest) {}

  class Turn {
   public:
    Turn(NameTurns& turns, bool alone) : turns_(&turns), alone_(alone) {}
    Turn(Turn&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)), alone_(other.alone_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->end(alone_);
    }

   private:
    NameTurns* turns_;
    bool alone_;
  };
  // Nullopt: it was waited for long enough.
  std::optional<Turn> together();
  std::optional<Turn> alone();

 private:
  using Clock = std::chrono::steady_clock;

  void end(bool alone);

  const Duration patience_;
  const Duration rest_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t together_ = 0;
  bool alone_ = false;
  std::size_t renames_ = 0;  // that wait, and behind which others wait
  Clock::time_point rests_until_{};
};

}  // namespace stag::vfs::ceph
