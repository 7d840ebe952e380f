// The thread that hears of leases that a program wants (kernel_lease.h).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "vfs/posix/kernel_lease.h"

namespace stag::vfs::posix {

// Thread: any.
class LeaseWatcher {
 public:
  // The one of this process, which lives as long as there are leases; null where there is no thread
  // for it.
  static std::shared_ptr<LeaseWatcher> of_process();
  LeaseWatcher();
  LeaseWatcher(const LeaseWatcher&) = delete;
  ~LeaseWatcher();

  // Has the kernel tell the thread of the lease on this descriptor. False where there are too many.
  bool add(int descriptor, KernelLease& lease);
  // Afterwards the thread does not use the lease any more.
  void remove(int descriptor);

 private:
  void run();
  void look_at(int descriptor);
  void look_at_all();

  const std::size_t most_;
  std::mutex mutex_;
  std::unordered_map<int, KernelLease*> leases_;
  int thread_id_ = 0;
  std::atomic<bool> ends_{false};  // looked at after each signal
  std::thread thread_;
};

}  // namespace stag::vfs::posix
