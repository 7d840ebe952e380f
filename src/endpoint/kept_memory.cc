#include "endpoint/kept_memory.h"

#include <utility>

namespace stag::endpoint {

Result<std::unique_ptr<KeptMemory>, Reason> KeptMemory::keep(std::shared_ptr<Loops> loops,
                                                             MutableBytes memory, bool writable) {
  std::unique_ptr<KeptMemory> made(new KeptMemory(std::move(loops), {memory, writable}));
  for (; made->kept_ < made->loops_->size(); ++made->kept_) {
    const Reason reason = run_on(made->loops_->at(made->kept_), [&] {
      return fabric::KeptRanges::of_this_thread()->keep(made->range_);
    });
    if (reason != Reason::None) return Failure{reason};
  }
  return made;
}

KeptMemory::~KeptMemory() {
  for (std::size_t i = 0; i < kept_; ++i)
    finish_on(loops_->at(i), [this] { fabric::KeptRanges::of_this_thread()->give_up(range_); });
}

}  // namespace stag::endpoint
