#include "base/failure.h"

#include <exception>
#include <new>

namespace stag {

Reason trace_exception(Reason reason, std::string_view where) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    reason = Reason::OutOfMemory;
    trace(reason, where);
  } catch (const std::exception& exception) {
    trace(reason, where, exception.what());
  } catch (...) {
    trace(reason, where, "an exception of unknown type");
  }
  return reason;
}

}  // namespace stag
