#include "base/task.h"

#include "base/failure.h"

namespace stag::detail {

constinit thread_local FrameList frame_lists[FrameList::kClasses] = {};

namespace {

// At the end of a thread, frees the frames that the thread has kept, and lets it keep none from
// then on.
struct FrameLifetime {
  bool begun = false;
  ~FrameLifetime() {
    for (FrameList& list : frame_lists) {
      list.count = FrameList::kKept;
      while (list.head != nullptr) ::operator delete(std::exchange(list.head, list.head->next));
    }
  }
};
thread_local FrameLifetime frame_lifetime;

}  // namespace

void throw_again(const std::exception_ptr& failure) {
  STAG_CHECK(failure != nullptr);
  std::rethrow_exception(failure);
}

void trace_lost(std::exception_ptr failure) noexcept {
  try {
    std::rethrow_exception(std::move(failure));
  } catch (...) {
    trace_exception(Reason::TaskFailed);
  }
}

void* new_frame(std::size_t size) {
  frame_lifetime.begun = true;
  const std::size_t c = (size - 1) / FrameList::kStep;
  return ::operator new(c < FrameList::kClasses ? (c + 1) * FrameList::kStep : size);
}

void drop_frame(void* frame) noexcept {
  ::operator delete(frame);
}

}  // namespace stag::detail
