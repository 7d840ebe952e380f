// A client that can be called and holds a delegation to read "f" (RFC 8881 10.4, RFC 7530 10.4), as
// cases need it. A server gives a delegation when it chooses to; where it does not, they are
// skipped.
#pragma once

#include <functional>
#include <memory>

#include "conform/nfs4/script.h"

namespace stag::conform::nfs4 {

// The stateid that the holder has.
inline constexpr const char* kDelegation = "delegation of f";

// Both the client of `of` and the holder know "own" and "f", which only the holder has open.
// end() is awaited before it is destroyed.
class DelegationHolder {
 public:
  explicit DelegationHolder(Scene& of);

  // Makes the file and takes the delegation. Passes, or says why there is none.
  Task<Verdict> obtain(Scene& of);
  Scene& scene() { return scene_; }
  // Gives up what it has but the delegation, and the client with it.
  Task<void> end();

 private:
  Task<std::string> open_delegated();

  const Handles none_{};
  std::unique_ptr<CallbackPlace> place_;  // of version 4.0
  Client client_;
  Scene scene_;
};

// `scene`: of the client that every case has, `holder`: of the one with the delegation.
using DelegationUse = std::function<Task<Verdict>(Scene& scene, Scene& holder)>;
Task<Verdict> with_delegation(Scene& scene, DelegationUse use);
// DELEGRETURN.
Task<Reply> give_back(Scene& holder);

}  // namespace stag::conform::nfs4
