// The bytes that a server's connections hold for their clients: Calls that are read, wait or run,
// and Replies that are made or wait to be taken. Limited for each connection, for each client
// address and in all.
//
// An address may hold an eighth of what is still free: alone a ninth of all, and when sixteen
// addresses have taken what they could, a seventh of all is left for the next. A request that does
// not fit waits; those of one address wait in order, and none for ever: an address that holds
// nothing gets what is free, and when nobody holds anything even more than there is. Calls that
// wait and hold bytes themselves could wait for one another: a connection that waits for the stall
// limit ends (StreamLimits::stall).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/brief_mutex.h"
#include "base/loop.h"

namespace stag::rpc::tcp {

class Account;

// Shared by the connections of all loops. Any thread.
class ByteBudget {
 public:
  explicit ByteBudget(std::uint64_t limit) : limit_(limit) {}
  ~ByteBudget();

  std::uint64_t used() const;

 private:
  friend class Account;
  static constexpr std::uint64_t kPart = 8;
  struct Host {
    std::uint64_t used = 0;
    std::size_t accounts = 0;
    Account* first = nullptr;  // of those that wait
    Account* last = nullptr;
  };
  using Hosts = std::unordered_map<std::string, Host>;

  // With the mutex held.
  bool fits(const Host& host, std::uint64_t bytes) const;
  // Grants what has room now; yields who is to be told, once the mutex is free.
  using Granted = std::shared_ptr<Account>;  // a chain of them
  Granted serve_waiting();
  static void tell(Granted granted) noexcept;
  static void enqueue(Account& account);
  static void dequeue(Account& account);

  const std::uint64_t limit_;
  mutable BriefMutex mutex_;
  std::uint64_t used_ = 0;
  std::size_t waiting_ = 0;
  Hosts hosts_;
};

// What one connection holds. Thread: its loop. A little of it is nobody's business, so that small
// Calls touch nothing that loops share.
class Account : public std::enable_shared_from_this<Account> {
 public:
  // Without a budget nothing is limited. Alone, one request may be larger than `most`.
  Account(std::shared_ptr<ByteBudget> budget, const std::string& host, Loop& loop,
          std::uint64_t most);
  ~Account();
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  // False, and nothing taken, when there is no room: on_room runs in a later turn when it may be
  // there.
  [[nodiscard]] bool try_take(std::uint64_t bytes);
  // What is there already, whether it fits or not.
  void take(std::uint64_t bytes) noexcept;
  void give(std::uint64_t bytes) noexcept;
  // What was refused is not waited for any more.
  void ask_no_more() { starving_ = false; }
  // Whether the last request was refused; and how many were not.
  bool starving() const { return starving_; }
  std::uint64_t grants() const { return grants_; }
  // Bytes that this connection may still have.
  std::uint64_t left() const { return most_ - std::min(most_, held_); }

  // Set and cleared by the connection.
  Loop::Function on_room;

 private:
  friend class ByteBudget;
  static constexpr std::uint64_t kUncounted = 16 << 10;
  static constexpr std::uint64_t kStep = 64 << 10;

  bool try_count(std::uint64_t bytes);
  void ask_again() noexcept;
  // What the budget has to know of so many bytes.
  static std::uint64_t counted(std::uint64_t held);
  void tell_later();
  // With the budget's mutex held.
  void charge(std::uint64_t bytes);
  void uncharge(std::uint64_t bytes);

  const std::shared_ptr<ByteBudget> budget_;
  ByteBudget::Hosts::value_type* host_ = nullptr;
  Loop& loop_;
  const std::uint64_t most_;
  std::uint64_t held_ = 0;
  std::uint64_t grants_ = 0;
  bool starving_ = false;
  bool known_ = false;    // the budget may have something of it
  bool refused_ = false;  // by `most`; giving some back ends it
  // Guarded by the budget's mutex.
  std::uint64_t charged_ = 0;
  std::uint64_t wanted_ = 0;  // while it waits
  Account* next_ = nullptr;
  bool queued_ = false;
  std::shared_ptr<Account> next_granted_;  // of those who are to be told
};

}  // namespace stag::rpc::tcp
