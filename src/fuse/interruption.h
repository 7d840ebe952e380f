// Interruption: when a request is answered whose program was interrupted while the server does not
// answer: once a signal is pending that ends the program, or asks it to (signals.h). Its operation
// goes on and keeps its memory until then, and programs can be started and interrupted again and
// again: AbandonedBytes says how much such operations may keep together.
//
// Thread: the loop of the Mount.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <utility>

#include "base/loop.h"
#include "base/unique_function.h"
#include "fuse/long_waits.h"
#include "fuse/signals.h"

namespace stag::fuse {

// Memory of operations that nobody waits for any more.
class AbandonedBytes {
 public:
  // Room for some 250 programs that each read or wrote a megabyte, or for 16 000 that did not.
  static constexpr std::size_t kMost = std::size_t{256} << 20;
  // Bytes of memory of an operation beside what it reads or writes: its coroutines, call and reply.
  static constexpr std::size_t kOfOperation = std::size_t{16} << 10;

  // False: there is no room for them.
  bool add(std::size_t bytes) {
    if (bytes > kMost - bytes_) return false;
    bytes_ += bytes;
    return true;
  }
  void remove(std::size_t bytes) { bytes_ -= bytes; }

 private:
  std::size_t bytes_ = 0;
};

// Processes that have waited in vain: one of their requests was given up, and nothing has shown
// since that the server answers.
class VainWaits {
 public:
  // As the kernel numbers those who make requests; 0 is nobody.
  void add(pid_t process) {
    if (process != 0) processes_.insert(process);
  }
  bool has(pid_t process) const { return processes_.contains(process); }
  // A request of the process was answered.
  void remove(pid_t process) {
    if (!processes_.empty()) processes_.erase(process);
  }
  // What was given up has ended.
  void clear() { processes_.clear(); }

 private:
  std::unordered_set<pid_t> processes_;
};

// The requests of one mount.
struct RequestContext {
  Loop& loop;
  AbandonedBytes abandoned{};
  VainWaits in_vain{};
  LongWaits long_waits{loop};
  // Whether the thread of this number, as the kernel numbers it, is to end.
  UniqueFunction<bool(pid_t)> is_to_end = [](pid_t thread) { return fuse::is_to_end(thread); };
};

// What an operation is to the program that waits for it.
enum class Wait : std::uint8_t {
  Other,
  // For a lock that another one may have for long: any signal ends it, as that for a local lock.
  Lock,
  // For close(2). A program that is ended closes all its files, one after the other, and the kernel
  // has it wait for each: after one it has waited long enough.
  Close,
};

class Interruption {
 public:
  // Until the program is looked at, and each time that it waits on.
  static constexpr Duration kPatience = std::chrono::seconds(2);

  // For an operation that `process` waits for. `context` outlives it.
  Interruption(RequestContext& context, pid_t process, Wait wait)
      : context_(context), process_(process), wait_(wait) {}
  // The operation has ended.
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // The operation reads or writes by so many bytes of memory of its own.
  void holds(std::size_t bytes) { held_ += bytes; }
  // The program was interrupted, by whatever signal. Runs `give_up` after a while, or in the next
  // turn of the loop, once the program is to end and there is room for what the operation leaves
  // behind; never, if memory runs out before.
  void begin(Loop::Function give_up) noexcept;
  // The request was answered.
  void end() {
    patience_.cancel();
    if (counted_ == 0) context_.in_vain.remove(process_);
  }

 private:
  void wait(Duration patience) noexcept;
  void on_patience_over();
  bool is_to_end();

  RequestContext& context_;
  const pid_t process_;
  const Wait wait_;
  std::size_t held_ = AbandonedBytes::kOfOperation;
  std::size_t counted_ = 0;  // as abandoned
  Loop::Function give_up_;
  Timer patience_;
};

}  // namespace stag::fuse
