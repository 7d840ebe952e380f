// What a lock manager says without having been asked: that a lock is granted, what became of a
// request that came as a message, and that this host restarted. Each is said again, ever more
// rarely, until the other side answers or patience ends.
//
// Thread: its loop, but for granted(), answer() and tell_of_restart(), which any thread may call.
// Ownership: manager, records, loop and peers outlive it; stop() first, then destroy.
#pragma once

#include <deque>
#include <map>

#include "base/cancel.h"
#include "base/task_group.h"
#include "nfs/lock/lock_manager.h"
#include "nfs/lock/peers.h"
#include "nfs/lock/records.h"
#include "rpc/client.h"

namespace stag::nfs::lock {

class CallbackSender {
 public:
  CallbackSender(LockManager& manager, Records& records, std::string host_name, Loop& loop,
                 Peers& peers)
      : manager_(manager),
        records_(records),
        host_name_(std::move(host_name)),
        loop_(loop),
        peers_(peers) {}

  // The client waits for this.
  void granted(const Client& client, Ticket ticket);
  // The results of a request that came as a message; once, for the client repeats its request.
  template <class Answer>
  void answer(std::string host, typename Answer::Args results) {
    loop_.post([this, host = std::move(host), results = std::move(results)]() mutable {
      if (stop_.cancelled() || !begin_answer(host)) return;
      tasks_.add(send<Answer>(std::move(host), std::move(results)));
    });
  }
  // Tells everybody in the records that this host restarted. Any thread.
  void tell_of_restart();

  Task<void> stop();

 private:
  // On their way at once; a host that cannot be reached keeps each of its own for seconds.
  static constexpr std::size_t kMostAnswers = 256;
  // One host has at most such a part of what is free, so that sixteen leave some for others.
  static constexpr std::size_t kPartOfFree = 8;
  // What waits for one client.
  struct Deliveries {
    std::deque<Ticket> tickets;
    std::size_t most = 64;  // with more, those that were settled elsewhere go
  };
  enum class Verdict : std::uint8_t { Settled, Open, Unreachable };

  rpc::Client client_of(rpc::Channel& channel) const;
  rpc::CallOptions options();
  Task<void> deliver(std::string address);
  Task<bool> deliver_once(Deliveries& box, const std::string& address);
  Task<Verdict> offer(rpc::Channel& channel, Ticket ticket);
  template <class Version>
  Task<Verdict> offer_as(rpc::Channel& channel, const PendingGrant& pending, Ticket ticket);
  void give_up(Deliveries& box, const std::string& address);
  bool begin_answer(const std::string& host);
  void end_answer(const std::string& host);
  Task<void> tell_everybody();
  Task<void> tell(std::string host);
  Task<void> forget(const std::string& host);

  template <class Answer>
  Task<void> send(std::string host, typename Answer::Args results) {
    auto channel = co_await peers_.reach(host, Answer::program, Answer::version, stop_);
    if (channel) {
      rpc::Client client = client_of(**channel);
      // Whether a message is answered at all differs from client to client (RFC 1813 6.2).
      static_cast<void>(co_await client.call<Answer>(results, options()));
      co_await (*channel)->close();
    }
    end_answer(host);
  }

  LockManager& manager_;
  Records& records_;
  const std::string host_name_;
  Loop& loop_;
  Peers& peers_;
  std::map<std::string, Deliveries> boxes_;
  std::size_t answers_ = 0;
  std::map<std::string, std::size_t> answers_to_;
  bool telling_ = false;
  CancelSource stop_;
  TaskGroup tasks_;
};

}  // namespace stag::nfs::lock
