// The sequence numbers that the server of a context has seen (RFC 2203 section 5.3.3.1). It keeps
// far more of them than it announces: Calls that wait before they are judged, for their turn or to
// be fetched, are overtaken by others of the same context, on other connections too, for as long as
// they wait. Taken for a replay they would cost all that is in progress on their connection.
#pragma once

#include <bitset>
#include <cstdint>

namespace stag::gss {

class SequenceWindow {
 public:
  static constexpr std::uint32_t kAnnounced = 256;
  static constexpr std::uint32_t kKept = 8192;

  // Whether no Call with this number was accepted and it is not below the window. Costs little, so
  // it is asked before the verifier is checked (RFC 2203 section 7.2.2).
  bool is_new(std::uint32_t seq_num) const {
    if (seq_num > last_) return true;
    return seq_num + kKept > last_ && !seen_[seq_num % kKept];
  }
  // Marks a number that is_new(), and moves the window; called once the verifier was found good.
  void accept(std::uint32_t seq_num);

 private:
  std::uint32_t last_ = 0;   // the highest number so far
  std::bitset<kKept> seen_;  // of the numbers (last_ - kKept, last_], by number modulo kKept
};

}  // namespace stag::gss
