// Elapsed: clients of which a lease has taken what they had: two that were silent until another one
// wanted it, and one that kept a delegation which was recalled. The first case that asks makes
// them, and they are kept for the run: each takes a lease, and many operations are asked what they
// say then.
//
// Thread: the Channel's loop. end() is awaited before it is destroyed.
#pragma once

#include <memory>
#include <optional>

#include "conform/nfs4/delegation_holder.h"

namespace stag::conform::nfs4 {

class Elapsed {
 public:
  Elapsed();
  Elapsed(const Elapsed&) = delete;
  ~Elapsed();

  // Passes where opener() and locker() have lost what they had to the client of `scene`, else says
  // why not. Waits the first time.
  Task<Verdict> lapse(Scene& scene);
  // Had "f" open and denied writing, and has "new", which is open and was not confirmed (version
  // 4.0).
  Scene& opener();
  // Has "g" and "h" open, and had the lock "l" of "g".
  Scene& locker();

  // The same for holder(), which had the delegation of "f" and has "h" open. Waits once more where
  // its lease has run out.
  Task<Verdict> revoke(Scene& scene);
  // To be called now and then, so that it does not. Only what opener() and locker() had is theirs
  // no more because they are silent.
  Task<void> renew();
  Scene& holder() { return holder_->scene(); }

  Task<void> end();

 private:
  struct Silent;

  Task<Verdict> wait_for_lapse(Scene& scene);
  Task<Verdict> wait_for_revocation(Scene& scene);

  std::unique_ptr<Silent> opener_, locker_;
  std::unique_ptr<DelegationHolder> holder_;
  std::optional<Verdict> lapsed_, revoked_;
};

}  // namespace stag::conform::nfs4
