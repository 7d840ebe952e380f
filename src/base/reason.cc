#include "base/reason.h"

namespace stag {
namespace {

constexpr std::array<ReasonInfo, kReasonCount> kInfo{{
#define STAG_REASON(name, severity, text) {#name, Severity::severity, text},
#include "base/reason.def"
#undef STAG_REASON
}};

TraceSink trace_sink = nullptr;

}  // namespace

const ReasonInfo& info(Reason reason) {
  return kInfo[static_cast<std::size_t>(reason)];
}

ReasonCounters& reason_counters() {
  static ReasonCounters counters;
  return counters;
}

void set_trace_sink(TraceSink sink) {
  trace_sink = sink;
}

void trace(Reason reason, std::string_view where, std::string_view detail) noexcept {
  reason_counters().add(reason);
  if (trace_sink == nullptr) return;
  try {
    trace_sink(reason, where, detail);
  } catch (...) {
    // Code that drops or refuses something must not fail because its log line does.
  }
}

}  // namespace stag
