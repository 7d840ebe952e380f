// The sequence numbers that the server of a context has seen (RFC 2203 section 5.3.3.1). It keeps
// more of them than it announces, so that a client with as many Calls under way as it may have is
// not taken for a replay when they overtake each other on several connections.
#pragma once

#include <bitset>
#include <cstdint>

namespace stag::gss {

class SequenceWindow {
 public:
  static constexpr std::uint32_t kAnnounced = 256;
  static constexpr std::uint32_t kKept = 512;

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
