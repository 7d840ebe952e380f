// A limit on bytes that connections on several threads share, so that a few of them cannot starve
// the rest.
//
// Each connection has a Share, and the Shares of one client address have one account. An account
// gets bytes as long as eight times as many stay free as it then has: one address alone gets a
// ninth, and sixteen addresses that take all they can leave an eighth to the next one. Two
// exceptions: an address always gets a few bytes while any are free; and, so that
// connections behind one address do not starve one another, four times as many free bytes are
// enough for an ordinary request of a connection that has nothing else.
//
// A Share whose request is not granted waits, and is notified on its own loop when bytes were
// reserved for it. The account that needs least comes first, and within an account the oldest
// request of either kind. While no Share waits, no lock is taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "base/loop.h"

namespace stag {

class ByteBudget {
 public:
  class Share;

  explicit ByteBudget(std::uint64_t limit);
  ~ByteBudget();

  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  bool exhausted() const { return used() >= limit_; }
  // Shares that wait for bytes.
  std::size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  // A waiting account or Share in a queue; changed only while it is in no queue. Each account and
  // Share keeps its queue node, so that waiting allocates nothing.
  struct Ranked {
    std::uint64_t need = 0;   // of an account: bytes that must be free
    std::uint64_t order = 0;  // of arrival
  };
  struct LeastFirst {
    bool operator()(const Ranked* a, const Ranked* b) const {
      return a->need != b->need ? a->need < b->need : a->order < b->order;
    }
  };
  template <class T>
  using Queue = std::set<T*, LeastFirst>;

  struct Account : Ranked {
    explicit Account(std::string host);
    bool queued() const { return node.empty(); }
    const std::string address;
    std::atomic<std::uint64_t> used{0};
    std::size_t shares = 0;
    Queue<Share> ordinary, further;  // that wait, oldest first
    Share* next = nullptr;           // the one of them that needs less
    Queue<Account>::node_type node;
  };

  std::uint64_t need(const Share& share, std::uint64_t bytes) const;
  bool try_take(Share& share, std::uint64_t bytes);
  void give_back(Share& share, std::uint64_t bytes);
  Account& join(const std::string& address);
  void leave(Account& account);
  // The caller has locked the mutex.
  void enqueue(Share& share);
  void dequeue(Share& share);
  void rank(Account& account);
  void serve(const Share* asking);

  const std::uint64_t limit_;
  // Bytes that an address gets whatever the others have, while as many are free.
  const std::uint64_t sure_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::size_t> waiting_{0};
  // Locked while a Share waits, and by connections that begin and end.
  std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<Account>> accounts_;
  Queue<Account> queue_;
  std::uint64_t next_order_ = 0;
};

// One connection's. Made, used and destroyed on the thread of its loop.
class ByteBudget::Share : public Ranked, public std::enable_shared_from_this<Share> {
 public:
  // `on_room` runs on `loop`, which outlives this.
  Share(std::shared_ptr<ByteBudget> budget, const std::string& address, Loop& loop,
        Loop::Function on_room);
  ~Share();

  // True: the bytes are reserved. False: `on_room` will run once they are set aside, and then the
  // same request succeeds. One request waits at a time; until it is granted, or given up with
  // stop_waiting(), none other is made.
  bool reserve(std::uint64_t bytes);
  void release(std::uint64_t bytes);
  void stop_waiting();

  const ByteBudget& budget() const { return *budget_; }

 private:
  friend class ByteBudget;
  bool is_ordinary(std::uint64_t bytes) const;

  const std::shared_ptr<ByteBudget> budget_;
  Queue<Share>::node_type node_;
  Loop& loop_;
  Loop::Function on_room_;
  Account& account_;  // made last of what may throw: the account is left again
  std::atomic<std::uint64_t> used_{0};
  std::uint64_t wanted_ = 0;  // bytes of the waiting request; changed on the loop's thread only
  Queue<Share>* queue_ = nullptr;          // where; guarded by the budget's mutex
  std::atomic<std::uint64_t> granted_{0};  // of it, set aside
};

}  // namespace stag
