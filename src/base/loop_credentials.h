// Whether threads of loops keep the credentials that they were started with (credentials(7)).
//
// The kernel takes commands at the file of an RDMA device, and at RDMA-CM's, only from a thread
// that has the very credentials with which the file was opened. A thread that has acted as another
// user, or has laid down a right, has others for good, even when they are equal to those before.
#pragma once

#include <atomic>

namespace stag {

inline constinit std::atomic<bool> loops_have_to_keep_credentials = false;

// For good, from the first use of RDMA devices on. Thread: any.
inline void keep_credentials_of_loops() {
  loops_have_to_keep_credentials.store(true, std::memory_order_relaxed);
}
inline bool loops_keep_credentials() {
  return loops_have_to_keep_credentials.load(std::memory_order_relaxed);
}

}  // namespace stag
