// Which datagrams of a turn are served. What the system keeps for a socket is one queue for all
// senders: when it is full, it drops what comes, whoever sent it. So a socket that is flooded (turn
// after turn there is more than is served) is emptied quickly, and what is beyond a turn's work is
// served only where its sender has not been served in this turn; the rest is dropped for the price
// of reading it. Pure.
//
// What the system drops before, and what is sent in the name of others, is beyond fairness here.
#pragma once

#include <set>
#include <string>

namespace stag::rpc::udp {

class DatagramShares {
 public:
  static constexpr int kServedPerTurn = 32;
  static constexpr int kReadPerTurn = 256;  // of a socket that is flooded

  void begin_turn() {
    read_ = 0;
    senders_.clear();
  }
  // `emptied`: there was nothing more to read.
  void end_turn(bool emptied) { full_turns_ = emptied ? 0 : full_turns_ + 1; }

  bool flooded() const { return full_turns_ >= kFullTurns; }
  bool may_read() const { return read_ < (flooded() ? kReadPerTurn : kServedPerTurn); }
  // One was read, from `host`, an address without port: whether it is served.
  template <class Host>
  bool serves(Host&& host) {
    ++read_;
    if (!flooded()) return true;
    const bool first = senders_.insert(host()).second;
    return first || read_ <= kServedPerTurn;
  }
  // One that was no datagram.
  void failed() { ++read_; }

 private:
  static constexpr int kFullTurns = 4;

  int read_ = 0;
  int full_turns_ = 0;  // one after the other
  std::set<std::string> senders_;
};

}  // namespace stag::rpc::udp
