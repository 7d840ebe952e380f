// LateDetail: what a line of the log says in detail, made only when the line is written. A log that
// leaves lines out, because peers can cause more than anybody reads, has no work with those.
//
//   trace_late(Reason::WorkersBusy, where, detail);   // whoever refuses something
//   late_detail()                                     // whoever writes the line, in the TraceSink
#pragma once

#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/reason.h"

namespace stag {

class LateDetail {
 public:
  // On the thread of trace_late(). The log may hold a mutex: nothing is to be traced meanwhile.
  virtual std::string text() const = 0;

 protected:
  ~LateDetail() = default;
};

namespace detail {
inline thread_local const LateDetail* late_detail = nullptr;
}

// As trace(); `about` lasts as long as the call.
inline void trace_late(Reason reason, std::string_view where, const LateDetail& about) noexcept {
  const LateDetail* const before = std::exchange(detail::late_detail, &about);
  trace(reason, where);
  detail::late_detail = before;
}

// Of the trace_late() that this thread is in; empty where there is none, or no memory for it.
inline std::string late_detail() {
  if (detail::late_detail != nullptr) try {
      return detail::late_detail->text();
    } catch (const std::bad_alloc&) {
    }
  return {};
}

}  // namespace stag
