// CallbackSender: the Calls that a lock manager makes to its clients: NLM_GRANTED for a blocked
// lock, the results of a request that came as a message (NLM_LOCK_RES and the like), and SM_NOTIFY
// after a restart. NLM_GRANTED and SM_NOTIFY are repeated with growing pauses until the client
// answers or a time limit ends them.
//
// Thread: its loop, but for granted(), answer() and notify_restart(), which any thread may call.
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
#include "rpc/with_channel.h"

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

  // Sends NLM_GRANTED for a pending grant.
  void granted(Ticket ticket);
  // Sends the results of a request that came as a message; once, because the client repeats its
  // request.
  template <class Answer>
  void answer(Route to, typename Answer::Args results) {
    loop_.post([this, to = std::move(to), results = std::move(results)]() mutable {
      if (stop_.cancelled() || !begin_answer(to.host)) return;
      try {
        tasks_.add(send<Answer>(to, std::move(results)));
      } catch (...) {
        end_answer(to.host);
        throw;
      }
    });
  }
  // Sends SM_NOTIFY to every host that is to be told, by the records. Any thread.
  void notify_restart();
  // Begins that again where it has ended for want of memory.
  void resume_notifying();
  // Sends NLM_GRANTED of grants that nobody sends any more for want of memory.
  void resume_granting();

  Task<void> stop();

 private:
  // Results in flight in all; a host that cannot be reached keeps each of its own for seconds.
  static constexpr std::size_t kMostAnswers = 256;
  // One host gets at most this part of what is free, so that sixteen dead hosts leave some for
  // others.
  static constexpr std::size_t kPartOfFree = 8;
  // The pending grants of one client that called at one address.
  struct Deliveries {
    std::deque<Ticket> tickets;
    std::size_t most = 64;  // beyond it, settled tickets are removed
  };
  enum class Verdict : std::uint8_t { Settled, Open, Unreachable };

  // Ends what a Task has begun, also where an exception ends the Task.
  template <class End>
  struct AtEnd {
    explicit AtEnd(End what) : end(std::move(what)) {}
    AtEnd(const AtEnd&) = delete;
    ~AtEnd() { end(); }
    End end;
  };

  rpc::Client client_of(rpc::Channel& channel) const;
  rpc::CallOptions options();
  void enqueue(Ticket ticket);
  Task<void> deliver(Route route);
  Task<bool> deliver_once(Deliveries& queue, const Route& route);
  Task<bool> offer_all(rpc::Channel& channel, Deliveries& queue);
  Task<Verdict> offer(rpc::Channel& channel, Ticket ticket);
  template <class Version>
  Task<Verdict> offer_as(rpc::Channel& channel, const PendingGrant& pending, Ticket ticket);
  void give_up(Deliveries& queue, const std::string& address);
  bool begin_answer(const std::string& host);
  void end_answer(const std::string& host);
  Task<void> notify_all();
  void begin_round();
  Task<void> notify_round();
  Task<void> notify(std::string host);
  Task<bool> notify_by(rpc::Channel& channel, const std::string& former, std::int32_t state);
  Task<bool> notify_as(rpc::Channel& channel, const std::string& name, std::int32_t state);
  Task<void> give_up_notifying(std::int32_t state);

  template <class Answer>
  Task<void> send(Route to, typename Answer::Args results) {
    const AtEnd sent([&] { end_answer(to.host); });
    const auto use = [&](rpc::Channel& channel) { return send_by<Answer>(channel, results); };
    Task<rpc::ConnectedChannel> reaching =
        peers_.reach(to, Answer::program, Answer::version, stop_);
    static_cast<void>(co_await rpc::with_channel(std::move(reaching), use));
  }
  // Some clients do not answer such a message (RFC 1813 6.2).
  template <class Answer>
  Task<bool> send_by(rpc::Channel& channel, const typename Answer::Args& results) {
    rpc::Client client = client_of(channel);
    const auto answer = co_await client.call<Answer>(results, options());
    co_return answer.ok();
  }

  LockManager& manager_;
  Records& records_;
  const std::string host_name_;
  Loop& loop_;
  Peers& peers_;
  std::map<Route, Deliveries> deliveries_;
  bool dropped_ = false;  // a pending grant may be in none of them
  std::size_t answers_ = 0;
  std::map<std::string, std::size_t> answers_to_;
  bool notifying_ = false;
  std::int32_t notified_state_ = 0;  // of the records; 0: no round has been yet
  TimePoint notify_until_{};
  Duration notify_pause_{};
  CancelSource stop_;
  TaskGroup tasks_;
};

}  // namespace stag::nfs::lock
