// Serves the Calls that arrive on one stream: a bounded number at a time, each in a coroutine of
// its own that outlives the stream when it must; its Reply then goes nowhere.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "base/task_group.h"
#include "rpc/observer.h"
#include "rpc/service.h"
#include "rpc/tcp/stream.h"

namespace stag::rpc::tcp {

class Responder final : public std::enable_shared_from_this<Responder> {
 public:
  // At `max_calls` in progress, or while the peer does not take its Replies, or where the account
  // has no room for another Reply, no further Call starts and the stream is not read. While this
  // end awaits a Reply itself, which comes on the same stream and which Calls in progress may wait
  // for, it is read until as many Calls again, or kMostDeferred bytes of them, wait to be started.
  // `service` and `tasks` outlive every Call; joining `tasks` waits for them. `turn` is that of the
  // Replies.
  Responder(Service& service, std::shared_ptr<const Origin> origin,
            std::shared_ptr<RecordStream> stream, std::shared_ptr<Account> account,
            std::size_t max_calls, TaskGroup& tasks,
            RecordStream::Turn turn = RecordStream::Turn::Last)
      : service_(service),
        observer_(service.observer()),
        origin_(std::move(origin)),
        stream_(std::move(stream)),
        account_(std::move(account)),
        where_("tcp " + to_string(stream_->peer())),
        max_calls_(max_calls),
        turn_(turn),
        tasks_(tasks) {}

  // So that those that wait leave room for Replies in the account.
  static constexpr std::size_t kMostDeferred = 4 << 20;

  // A record of type CALL, whose bytes are taken from the account.
  void on_call(Buffer record);
  // Starts what waits, as far as it may: the peer took Replies, or there is room in the account.
  void start_held();
  // The Call that has waited for longest to be started; empty: none waits.
  Bytes next() const { return deferred_.empty() ? Bytes() : deferred_.front().bytes(); }
  // The stream is gone: Replies are dropped from now on, and Calls that did not start yet.
  void detach();

 private:
  bool may_start() const;
  void defer(Buffer record);
  bool may_defer() const {
    return deferred_.size() < max_calls_ && deferred_bytes_ < kMostDeferred;
  }
  void start(Buffer record, std::uint64_t reserved);
  // How much the Reply may be, out of the account; nullopt when that has no room.
  std::optional<std::uint64_t> reserve(const Buffer& record);
  // The same of so many bytes, for a Call of `call` bytes.
  bool try_take(std::uint64_t room, bool known, std::size_t call);
  std::uint64_t within_limit(std::uint64_t reply) const;
  static Task<void> serve(std::shared_ptr<Responder> self, Buffer record, std::uint64_t reserved);
  void send(const OutgoingReply& reply);
  // A Call cannot be answered: the connection ends, so that nobody waits for the answer.
  void give_up(Reason reason);

  Service& service_;
  Observer* const observer_;
  std::shared_ptr<const Origin> origin_;
  std::shared_ptr<RecordStream> stream_;
  std::shared_ptr<Account> account_;
  std::string where_;
  std::size_t max_calls_;
  std::size_t active_ = 0;
  const RecordStream::Turn turn_;
  // Calls that wait to be started: the one behind which the stream stopped, and those that came
  // while this end awaited a Reply.
  std::deque<Buffer> deferred_;
  std::size_t deferred_bytes_ = 0;
  bool starting_ = false;
  TaskGroup& tasks_;
};

}  // namespace stag::rpc::tcp
