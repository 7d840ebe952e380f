#include "gss/sequence_window.h"

namespace stag::gss {

void SequenceWindow::accept(std::uint32_t seq_num) {
  if (seq_num > last_ && seq_num - last_ >= kKept) {
    seen_.reset();
  } else {
    for (std::uint32_t next = last_ + 1; next <= seq_num; ++next) seen_.reset(next % kKept);
  }
  if (seq_num > last_) last_ = seq_num;
  seen_.set(seq_num % kKept);
}

}  // namespace stag::gss
