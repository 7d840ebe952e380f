// A lease of the kernel (fcntl(2) F_SETLEASE) on an open file: a program that opens or truncates
// the file in conflict with it waits until the lease is released, or /proc/sys/fs/lease-break-time
// is over.
//
// The kernel tells by a signal, which names a descriptor. It is sent to one thread of this process
// that waits for nothing else (F_OWNER_TID), has it blocked, and exists once the first lease does:
// no other thread, no handler and no loop has anything to do with it. When the queue of signals is
// full the kernel sends SIGIO in its place, and all leases are looked at.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "vfs/local.h"

namespace stag::vfs::posix {

class LeaseWatcher;

// Thread: any.
class KernelLease {
 public:
  using Listener = std::uint64_t;

  // Read: the descriptor is for reading only, and nobody has the file open for writing. Write: no
  // other descriptor of the file is open. `owner`: whose file it is. Delay where that is not so,
  // Access where the file system or the system does not give leases, TooManyObjects where there are
  // as many as may be.
  static Outcome<std::shared_ptr<KernelLease>> take(std::shared_ptr<const UniqueFd> descriptor,
                                                    LeaseKind kind, std::uint32_t owner);
  KernelLease(const KernelLease&) = delete;
  ~KernelLease();

  const std::shared_ptr<const UniqueFd>& descriptor() const { return descriptor_; }
  LeaseKind kind() const { return kind_; }
  bool is_wanted() const { return wanted_.load(); }
  // How long the kernel lets a program wait, less what it takes to act on it.
  static Duration patience();

  // Called once a program wants the file, at once where one does.
  Listener listen(LeaseWanted wanted);
  void unlisten(Listener listener);
  // The server does something to the file that the kernel would take for a conflict.
  void give_up();
  // Asks the kernel whether a program wants the file. Where there is no memory to tell all who
  // listen it throws, and they are told the next time.
  void look();

 private:
  KernelLease(std::shared_ptr<LeaseWatcher> watcher, std::shared_ptr<const UniqueFd> descriptor,
              LeaseKind kind);
  std::optional<Status> begin(std::uint32_t owner);
  void tell();
  void untell(std::pair<Listener, LeaseWanted> listener);

  const std::shared_ptr<LeaseWatcher> watcher_;
  const std::shared_ptr<const UniqueFd> descriptor_;
  const LeaseKind kind_;
  std::atomic<bool> wanted_{false};
  std::mutex mutex_;
  std::vector<std::pair<Listener, LeaseWanted>> listeners_;
  Listener last_listener_ = 0;
};

}  // namespace stag::vfs::posix
