// A limit on bytes that connections on several threads share, so that a few of them cannot starve
// the rest.
//
// Each connection has a Share, and those of one client address have an account together. Bytes are
// given to an account as long as eight times as many stay free as it has with them: one address
// alone gets a ninth, and sixteen that take all they can leave an eighth to whoever comes next. Two
// exceptions: an address is sure of a few bytes (sure_bytes()) as long as there are any; and so
// that connections behind one address do not starve one another, four times as many free bytes are
// enough for an ordinary request of a connection that has nothing else.
//
// A Share that gets nothing waits, and is told on its own loop when bytes were set aside for it.
// The account that needs least comes first, and within an account the oldest request of either
// kind. As long as nobody waits, no lock is taken.
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
  // What an address gets whatever the others have, as long as as much is free.
  std::uint64_t sure_bytes() const { return sure_; }

 private:
  // Who waits. Changed outside of queues only. Whoever can wait keeps the node for it, so that
  // waiting allocates nothing.
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
  // With the mutex held.
  void enqueue(Share& share);
  void dequeue(Share& share);
  void rank(Account& account);
  void serve(const Share* asking);

  const std::uint64_t limit_;
  const std::uint64_t sure_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::size_t> waiting_{0};
  // Taken while somebody waits, and by connections that begin and end.
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
  Account& account_;  // The last that may fail: what was joined is left again.
  std::atomic<std::uint64_t> used_{0};
  std::uint64_t wanted_ = 0;               // what waits; changed on the loop's thread only
  Queue<Share>* queue_ = nullptr;          // where; guarded by the budget's mutex
  std::atomic<std::uint64_t> granted_{0};  // of it, set aside
};

}  // namespace stag
