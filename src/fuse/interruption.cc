#include "fuse/interruption.h"

#include <new>

namespace stag::fuse {

void Interruption::begin(Loop::Function give_up) noexcept {
  give_up_ = std::move(give_up);
  wait();
}

void Interruption::wait() noexcept {
  try {
    patience_ = loop_.after(kPatience, [this] { on_patience_over(); });
  } catch (const std::bad_alloc&) {
    // The program waits for the server, then.
  }
}

// Without room the program waits on until the operations of others have ended.
void Interruption::on_patience_over() {
  if (!abandoned_.add(held_)) return wait();
  counted_ = held_;
  give_up_();
}

}  // namespace stag::fuse
