#include "vfs/posix/mapping.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <csetjmp>
#include <csignal>
#include <cstring>

namespace stag::vfs::posix {
namespace {

constexpr std::uint64_t kMostMapped = std::uint64_t{1} << 30;
constexpr std::uint64_t kLeastMapped = std::uint64_t{64} << 10;

// Of all mappings of the process.
std::atomic<std::uint64_t> bytes_mapped{0};

// The range that a thread copies at the moment, and where it continues when that faults.
struct Copying {
  Bytes from;
  sigjmp_buf faulted;
};
constinit thread_local Copying* copy_of_thread = nullptr;

struct sigaction handler_before;

// Passes the signal to the handler that was installed before.
void pass_on(int signal, siginfo_t* fault, void* context) {
  if ((handler_before.sa_flags & SA_SIGINFO) != 0)
    return handler_before.sa_sigaction(signal, fault, context);
  const bool was_sent = fault->si_code <= 0;  // kill(2)
  if (handler_before.sa_handler == SIG_IGN && was_sent) return;
  if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN)
    return handler_before.sa_handler(signal);
  // The instruction faults again, or the signal comes again, without us.
  ::sigaction(SIGBUS, &handler_before, nullptr);
  if (was_sent) ::raise(signal);
}

void on_bus_error(int signal, siginfo_t* fault, void* context) {
  if (copy_of_thread != nullptr) {
    const Bytes from = copy_of_thread->from;
    const auto* at = static_cast<const std::byte*>(fault->si_addr);
    if (at >= from.data() && at < from.data() + from.size())
      ::siglongjmp(copy_of_thread->faulted, 1);
  }
  pass_on(signal, fault, context);
}

bool expect_bus_errors() {
  static const bool kExpected = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    // Known before another thread can fault.
    return ::sigaction(SIGBUS, nullptr, &handler_before) == 0 &&
           ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  return kExpected;
}

// The handler is left by a jump, which spares every copy a system call and leaves the signal
// blocked. A thread may also have been started so: a fault would be the end of the process.
void unblock_bus_errors() {
  sigset_t bus_error;
  sigemptyset(&bus_error);
  sigaddset(&bus_error, SIGBUS);
  ::pthread_sigmask(SIG_UNBLOCK, &bus_error, nullptr);
}

}  // namespace

SharedMapping Mapping::of(const UniqueFd& file, std::uint64_t size) {
  if (size > kMostMapped || !expect_bus_errors()) return nullptr;
  const std::uint64_t length = std::max(kLeastMapped, std::bit_ceil(size));
  if (bytes_mapped.fetch_add(length) + length <= kMostMapped) {
    void* begin = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file.fd(), 0);
    if (begin != MAP_FAILED)
      return SharedMapping(new Mapping(static_cast<const std::byte*>(begin), length));
  }
  bytes_mapped.fetch_sub(length);
  return nullptr;
}

Mapping::~Mapping() {
  ::munmap(const_cast<std::byte*>(begin_), length_);
  bytes_mapped.fetch_sub(length_);
}

bool Mapping::copy(std::uint64_t offset, MutableBytes to) const {
  thread_local const bool kUnblocked = (unblock_bus_errors(), true);
  static_cast<void>(kUnblocked);
  Copying now;
  now.from = {begin_ + offset, to.size()};
  if (sigsetjmp(now.faulted, 0) != 0) {
    copy_of_thread = nullptr;
    unblock_bus_errors();
    return false;
  }
  copy_of_thread = &now;
  // Keeps the order for the signal handler, which may run between these two.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(to.data(), now.from.data(), to.size());
  std::atomic_signal_fence(std::memory_order_seq_cst);
  copy_of_thread = nullptr;
  return true;
}

}  // namespace stag::vfs::posix
