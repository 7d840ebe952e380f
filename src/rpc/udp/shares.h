// Which datagrams of a turn are served. What the system keeps for a socket is one queue for all
// senders: when it is full, it drops what comes, whichever sender it is from. So a socket that is
// flooded (turn after turn there is more than is served) is emptied quickly, and what is beyond a
// turn's work is served only where its sender has not been served in this turn; the rest is dropped
// for the price of reading it. Pure.
//
// And whose Calls may be in progress: an address may have one more as long as eight times as many
// places are free as it then has, and its first as long as there is any. Alone it gets a ninth of
// them, and when sixteen have taken what they could, an eighth is left for others.
//
// What the system drops before, and what is sent in the name of others, is beyond fairness here.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

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

class CallShares {
  using Hosts = std::map<std::string, std::size_t>;  // that have any

 public:
  explicit CallShares(std::size_t places) : free_(places) {}
  CallShares(const CallShares&) = delete;
  CallShares& operator=(const CallShares&) = delete;

  // A Call's; given back when it goes, before its CallShares.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept
        : shares_(std::exchange(other.shares_, nullptr)), host_(other.host_) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (shares_ != nullptr) shares_->give_back(host_);
    }
    explicit operator bool() const { return shares_ != nullptr; }

   private:
    friend class CallShares;
    Place(CallShares& shares, Hosts::iterator host) : shares_(&shares), host_(host) {}
    CallShares* shares_ = nullptr;
    Hosts::iterator host_;
  };

  // False when `host`, an address without port, has had its share.
  Place take(const std::string& host) {
    if (free_ == 0) return {};
    const auto known = hosts_.find(host);
    if (known != hosts_.end() && kFreeForEach * (known->second + 1) > free_) return {};
    const auto at = hosts_.try_emplace(host).first;
    ++at->second;
    --free_;
    return {*this, at};
  }

 private:
  static constexpr std::size_t kFreeForEach = 8;

  void give_back(Hosts::iterator host) {
    ++free_;
    if (--host->second == 0) hosts_.erase(host);
  }

  std::size_t free_;
  Hosts hosts_;
};

}  // namespace stag::rpc::udp
