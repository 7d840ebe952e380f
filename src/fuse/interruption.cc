#include "fuse/interruption.h"

#include <new>

namespace stag::fuse {

Interruption::~Interruption() {
  if (counted_ == 0) return;
  abandoned_.remove(counted_);
  in_vain_.clear();
}

void Interruption::begin(Loop::Function give_up) noexcept {
  give_up_ = std::move(give_up);
  wait(wait_ == Wait::Close && in_vain_.has(process_) ? Duration::zero() : kPatience);
}

void Interruption::wait(Duration patience) noexcept {
  try {
    patience_ = loop_.after(patience, [this] { on_patience_over(); });
  } catch (const std::bad_alloc&) {
    // The program waits for the server, then.
  }
}

// Without room the program waits on until the operations of others have ended.
void Interruption::on_patience_over() {
  if (!abandoned_.add(held_)) return wait(kPatience);
  counted_ = held_;
  try {
    in_vain_.add(process_);
  } catch (const std::bad_alloc&) {
    // Its next file is waited for as long as this one.
  }
  give_up_();
}

}  // namespace stag::fuse
