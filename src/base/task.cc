#include "base/task.h"

#include <array>
#include <new>

namespace stag::detail {
namespace {

// Frames in steps of 64 bytes up to 4 KiB are kept per thread; larger ones are rare and go to the
// heap.
constexpr std::size_t kStep = 64;
constexpr std::size_t kClasses = 64;
constexpr std::size_t kKeptPerClass = 256;

struct FreeFrame {
  FreeFrame* next;
};

struct FrameLists {
  std::array<FreeFrame*, kClasses> heads{};
  std::array<std::size_t, kClasses> counts{};
  ~FrameLists();
};

thread_local bool lists_gone = false;
thread_local FrameLists frame_lists;

FrameLists::~FrameLists() {
  lists_gone = true;
  for (FreeFrame* head : heads)
    while (head != nullptr) ::operator delete(std::exchange(head, head->next));
}

std::size_t class_of(std::size_t size) {
  return (size + kStep - 1) / kStep - 1;
}

}  // namespace

void* allocate_frame(std::size_t size) {
  const std::size_t c = class_of(size);
  if (c >= kClasses) return ::operator new(size);
  if (lists_gone || frame_lists.heads[c] == nullptr) return ::operator new((c + 1) * kStep);
  --frame_lists.counts[c];
  return std::exchange(frame_lists.heads[c], frame_lists.heads[c]->next);
}

void free_frame(void* frame, std::size_t size) noexcept {
  const std::size_t c = class_of(size);
  if (c >= kClasses || lists_gone || frame_lists.counts[c] >= kKeptPerClass)
    return ::operator delete(frame);
  ++frame_lists.counts[c];
  frame_lists.heads[c] = new (frame) FreeFrame{frame_lists.heads[c]};
}

}  // namespace stag::detail
