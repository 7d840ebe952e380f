// Every exit has a name: one enum for all drops, errors and closes (base/reason.def). trace() is
// the one place that turns a Reason into a counter and a log line. Tests assert on reasons.
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
  std::string_view name;  // the enumerator: "PeerStalled"
  Severity severity;
  std::string_view text;  // a phrase for users, without a full stop
};
// Static data.
const ReasonInfo& info(Reason reason);
// The name.
inline std::string_view to_string(Reason reason) {
  return info(reason).name;
}

// How often trace() was called with each reason in this process. Thread: any.
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
// Those of this process. Thread: any.
ReasonCounters& reason_counters();

// Receives log lines, on any thread. `where` names the object ("rdma 127.0.0.1:4711"), `detail`
// says more; both are views for the length of the call and may be empty.
using TraceSink = void (*)(Reason reason, std::string_view where, std::string_view detail);
// Called once at start, before any other thread runs. Null: no log lines.
void set_trace_sink(TraceSink sink);

// Counts `reason` and calls the sink, if one is set. Thread: any. When the sink throws, its line is
// lost.
void trace(Reason reason, std::string_view where = {}, std::string_view detail = {}) noexcept;

}  // namespace stag
