#include "vfs/posix/lease_watcher.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <csignal>
#include <future>
#include <new>
#include <system_error>

#include "vfs/posix/lease_limit.h"

namespace stag::vfs::posix {
namespace {

// Only ever sent to the thread, so it does not matter who else uses the number.
int lease_signal() {
  return SIGRTMIN + 3;
}

sigset_t watched() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, lease_signal());
  ::sigaddset(&set, SIGIO);
  return set;
}

std::atomic<std::int64_t> leases_wanted{-1};

std::size_t most_leases() {
  const std::int64_t wanted = leases_wanted.load();
  if (wanted >= 0) return static_cast<std::size_t>(wanted);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<std::size_t>(limit.rlim_cur) / 8;
}

}  // namespace

void limit_leases(std::uint32_t most) {
  leases_wanted = most;
}

std::shared_ptr<LeaseWatcher> LeaseWatcher::of_process() {
  static std::mutex mutex;
  static std::weak_ptr<LeaseWatcher> known;
  const std::scoped_lock lock(mutex);
  auto watcher = known.lock();
  if (watcher != nullptr) return watcher;
  try {
    known = watcher = std::make_shared<LeaseWatcher>();
  } catch (const std::system_error&) {
    return nullptr;
  }
  return watcher;
}

// The thread is born with the signals blocked.
LeaseWatcher::LeaseWatcher() : most_(most_leases()) {
  const sigset_t signals = watched();
  sigset_t before;
  std::promise<int> id;
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  try {
    thread_ = std::thread([this, &id] {
      id.set_value(static_cast<int>(::syscall(SYS_gettid)));
      run();
    });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  thread_id_ = id.get_future().get();
}

// An ordinary signal needs no room in the queue, which others of the same user may have filled.
LeaseWatcher::~LeaseWatcher() {
  ends_ = true;
  ::pthread_kill(thread_.native_handle(), SIGIO);
  thread_.join();
}

bool LeaseWatcher::add(int descriptor, KernelLease& lease) {
  const f_owner_ex thread{F_OWNER_TID, thread_id_};
  if (::fcntl(descriptor, F_SETOWN_EX, &thread) != 0) return false;
  if (::fcntl(descriptor, F_SETSIG, lease_signal()) != 0) return false;
  const std::scoped_lock lock(mutex_);
  return leases_.size() < most_ && leases_.emplace(descriptor, &lease).second;
}

void LeaseWatcher::remove(int descriptor) {
  const std::scoped_lock lock(mutex_);
  leases_.erase(descriptor);
}

// A holder that could not be told for want of memory is told a little later.
void LeaseWatcher::run() {
  const sigset_t signals = watched();
  constexpr timespec kAgain{0, 100'000'000};
  for (bool untold = false;;) {
    siginfo_t told{};
    const int signal =
        untold ? ::sigtimedwait(&signals, &told, &kAgain) : ::sigwaitinfo(&signals, &told);
    if (ends_) return;
    try {
      if (signal == SIGIO || untold) look_at_all();
      if (signal == lease_signal()) look_at(told.si_fd);
      untold = false;
    } catch (const std::bad_alloc&) {
      untold = true;
    }
  }
}

void LeaseWatcher::look_at(int descriptor) {
  const std::scoped_lock lock(mutex_);
  const auto found = leases_.find(descriptor);
  if (found != leases_.end()) found->second->look();
}

void LeaseWatcher::look_at_all() {
  const std::scoped_lock lock(mutex_);
  for (const auto& [descriptor, lease] : leases_) lease->look();
}

}  // namespace stag::vfs::posix
