// Every exit has a name. One enum for all drops, errors and closes; trace() is the one place that
// turns a reason into a counter, a log line and a trace event. Tests assert on reasons.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace stag {

enum class Severity : std::uint8_t { Debug, Info, Warning, Error };

enum class Reason : std::uint16_t {
#define STAG_REASON(name, severity, text) name,
#include "base/reason.def"
#undef STAG_REASON
  Count_,
};
inline constexpr std::size_t kReasonCount = static_cast<std::size_t>(Reason::Count_);

struct ReasonInfo {
  std::string_view name;
  Severity severity;
  std::string_view text;
};
const ReasonInfo& info(Reason reason);
inline std::string_view to_string(Reason reason) {
  return info(reason).name;
}

// How often each reason was reached in this process; readable from any thread.
class ReasonCounters {
 public:
  void add(Reason reason) { counts_[index(reason)].fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t of(Reason reason) const {
    return counts_[index(reason)].load(std::memory_order_relaxed);
  }

 private:
  static std::size_t index(Reason reason) { return static_cast<std::size_t>(reason); }
  std::array<std::atomic<std::uint64_t>, kReasonCount> counts_{};
};
ReasonCounters& reason_counters();

// Where log lines go; set once at start, before any thread runs. `where` names the object ("rdma
// 127.0.0.1:4711").
using TraceSink = void (*)(Reason reason, std::string_view where, std::string_view detail);
void set_trace_sink(TraceSink sink);

// Counts `reason` and hands it to the sink, if there is one. A line that the sink has no memory for
// is lost.
void trace(Reason reason, std::string_view where = {}, std::string_view detail = {}) noexcept;

}  // namespace stag
