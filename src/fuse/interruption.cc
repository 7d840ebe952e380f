#include "fuse/interruption.h"

#include <new>

namespace stag::fuse {

Interruption::~Interruption() {
  if (counted_ == 0) return;
  context_.abandoned.remove(counted_);
  context_.in_vain.clear();
}

void Interruption::begin(Loop::Function give_up) noexcept {
  give_up_ = std::move(give_up);
  wait(wait_ == Wait::Close && context_.in_vain.has(process_) ? Duration::zero() : kPatience);
}

void Interruption::wait(Duration patience) noexcept {
  try {
    patience_ = context_.loop.after(patience, [this] { on_patience_over(); });
  } catch (const std::bad_alloc&) {
    // The program waits for the server, then.
  }
}

bool Interruption::is_to_end() {
  return wait_ == Wait::Lock || context_.is_to_end(process_);
}

// A program that is not to end waits on: until the server answers, or another signal comes, of
// which the kernel says nothing more. So does one without room, until the operations of others have
// ended.
void Interruption::on_patience_over() {
  if (!is_to_end() || !context_.abandoned.add(held_)) return wait(kPatience);
  counted_ = held_;
  try {
    context_.in_vain.add(process_);
  } catch (const std::bad_alloc&) {
    // Its next file is waited for as long as this one.
  }
  give_up_();
}

}  // namespace stag::fuse
