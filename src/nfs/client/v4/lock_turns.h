// LockTurns: the owners that ask for locks, and those of which it is not known yet what came of a
// LOCK that was given up. Such an owner asks for nothing else meanwhile: a server that executes
// that LOCK late would have it in the place of what came behind it. Of several that an owner has
// given up one is taken back at a time: the next one would find that in the books which the one
// before has not given back yet.
#pragma once

#include <set>

#include "nfs/client/v4/wait_list.h"
#include "nfs/session/opens.h"

namespace stag::nfs::client::nfs4 {

class LockTurns {
 public:
  using Owner = session::Opens::LockOwner;

  class Mark {
   public:
    Mark(LockTurns& turns, std::multiset<Owner>& owners, const Owner& owner)
        : turns_(turns), owners_(owners), at_(owners.insert(owner)) {}
    ~Mark() {
      owners_.erase(at_);
      turns_.changed_.wake_all();
    }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;

   private:
    LockTurns& turns_;
    std::multiset<Owner>& owners_;
    std::multiset<Owner>::iterator at_;
  };

  // For as long as the Mark is there.
  Mark ask(const Owner& owner) { return {*this, asking_, owner}; }
  Mark doubt(const Owner& owner) { return {*this, doubtful_, owner}; }
  Mark restore(const Owner& owner) { return {*this, restored_, owner}; }

  bool doubts(const Owner& owner) const { return doubtful_.contains(owner); }
  // Whether there is to be no other restore() yet.
  bool busy(const Owner& owner) const {
    return asking_.contains(owner) || restored_.contains(owner);
  }
  // Woken whenever one of them may have ended.
  WaitList& changed() { return changed_; }

 private:
  std::multiset<Owner> asking_, doubtful_, restored_;
  WaitList changed_;
};

}  // namespace stag::nfs::client::nfs4
