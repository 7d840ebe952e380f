// Ranges of memory that their owner keeps registered for many calls (decision 0078). A provider for
// which a registration is dear makes one of each range, and uses it for whatever is exposed or sent
// from there. What a peer may reach, and for how long, is what it is without: each call exposes its
// own part of a range under a handle of its own.
//
// Thread: each has its own table, which is that of the loop it runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/reason.h"

namespace stag::fabric {

// `memory` stays mapped as long as the range is in a table.
struct KeptRange {
  MutableBytes memory;
  bool writable = false;  // peers may be let write there

  bool covers(const std::byte* part, std::size_t size) const {
    const auto at = reinterpret_cast<std::uintptr_t>(part);
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
    return at >= begin && at - begin <= memory.size() && size <= memory.size() - (at - begin);
  }
};

class KeptRanges {
 public:
  // A user of ranges, which registers them.
  class User {
   public:
    // There is a range now, until on_given_up(); None, or why it cannot be registered: then there
    // is none.
    virtual Reason on_kept(const KeptRange& range) = 0;
    virtual void on_given_up(const KeptRange& range) noexcept = 0;

   protected:
    ~User() = default;
  };

  static const std::shared_ptr<KeptRanges>& of_this_thread() {
    thread_local const auto table = std::make_shared<KeptRanges>();
    return table;
  }

  // `range` stays where it is until give_up(). What a User says who cannot register it is returned,
  // and nobody has it then.
  Reason keep(const KeptRange& range) {
    ranges_.push_back(&range);
    Reason reason = Reason::None;
    try {
      for (std::size_t i = 0; i < users_.size() && reason == Reason::None; ++i)
        reason = users_[i]->on_kept(range);
    } catch (...) {
      give_up(range);
      throw;
    }
    if (reason != Reason::None) give_up(range);
    return reason;
  }
  void give_up(const KeptRange& range) noexcept {
    std::erase(ranges_, &range);
    for (User* each : users_) each->on_given_up(range);
  }

  void add(User& user) { users_.push_back(&user); }
  void remove(User& user) noexcept { std::erase(users_, &user); }

  const std::vector<const KeptRange*>& all() const { return ranges_; }
  // Whether peers may be let write to `part` because it lies in a range.
  bool has_sink(MutableBytes part) const {
    return std::any_of(ranges_.begin(), ranges_.end(), [part](const KeptRange* range) {
      return range->writable && range->covers(part.data(), part.size());
    });
  }

 private:
  std::vector<const KeptRange*> ranges_;
  std::vector<User*> users_;
};

}  // namespace stag::fabric
