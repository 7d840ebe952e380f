#include "fuse/long_waits.h"

#include <new>

namespace stag::fuse {

void LongWaits::Waiting::begin(LongWaits& all, pid_t thread) {
  since_ = all.looks_;
  thread_ = thread;
  before_ = all.all_.before_;
  after_ = &all.all_;
  before_->after_ = after_->before_ = this;
  if (!all.looking_) all.look_later();
}

void LongWaits::Waiting::end() {
  before_->after_ = after_;
  after_->before_ = before_;
  before_ = after_ = this;
}

void LongWaits::look_later() noexcept {
  try {
    timer_ = loop_.after(kLook, [this] { look(); });
    looking_ = true;
  } catch (const std::bad_alloc&) {
    looking_ = false;  // the next request tries again
  }
}

void LongWaits::tell(std::size_t requests, pid_t first) noexcept {
  if (!tell_ || (requests > 0) == told_) return;
  try {
    tell_(requests, first);
    told_ = requests > 0;
  } catch (const std::bad_alloc&) {
    // Next time.
  }
}

void LongWaits::look() {
  ++looks_;
  std::size_t requests = 0;
  const Waiting& first = *all_.after_;
  for (const Waiting* each = &first; each != &all_ && looks_ - each->since_ >= kLong;
       each = each->after_)
    ++requests;
  tell(requests, first.thread_);
  if (all_.after_ != &all_ || told_)
    look_later();
  else
    looking_ = false;
}

}  // namespace stag::fuse
