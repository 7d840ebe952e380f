// Turns: how a call comes to a slot of the session, and what a slot in doubt turns out to be
// (RFC 8881 section 2.10.6.1; RFC 8267 section 6.6).
#include <new>
#include <utility>

#include "nfs/client/protocol/retrying_client.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"

namespace stag::nfs::client::nfs4 {
namespace {

constexpr OperationContext kSettling{"find out about a call that was given up", {}};

}  // namespace

// Of a slot that a call has begun to settle, for want of a certain one.
struct SessionClient::Settling {
  Settling(std::size_t& all, bool first) : ends_with_delay(first), count(&all) { ++all; }
  ~Settling() { leave(); }
  Settling(const Settling&) = delete;
  Settling& operator=(const Settling&) = delete;
  // The call that began it counts on it no more, and may begin another one.
  void leave() {
    if (count != nullptr) --*std::exchange(count, nullptr);
  }
  bool counts() const { return count != nullptr; }

  std::optional<Outcome<Settled>> came{};
  CancelSource failed;   // the call that began it is to look at `came`
  bool ends_with_delay;  // the call counts on it until the server says NFS4ERR_DELAY
  std::size_t* count;    // of those that somebody counts on
};

// The settling that a call counts on, until it has a turn or waits no more.
class SessionClient::OwnSettling {
 public:
  OwnSettling() = default;
  ~OwnSettling() { leave(); }
  OwnSettling(const OwnSettling&) = delete;
  OwnSettling& operator=(const OwnSettling&) = delete;
  void begin(std::shared_ptr<Settling> settling) {
    leave();
    settling_ = std::move(settling);
  }
  Settling* get() const { return settling_.get(); }

 private:
  void leave() {
    if (settling_) settling_->leave();
  }
  std::shared_ptr<Settling> settling_;
};

SessionClient::HeldTurn::~HeldTurn() {
  if (client_ == nullptr) return;
  client_->session_.on_loss(turn_);
  client_->wake_waiting();
}

// As many as there are certain slots, which a SEQUENCE may have made more, or slots in doubt that
// nobody settles for them; without a session there is nothing to wait for. A call whose time is
// over takes none, and the next one is woken.
void SessionClient::wake_waiting() {
  const auto has_slot = [this] {
    const session::Slots& slots = session_.slots();
    return slots.has_certain() || (slots.has_free() && settling_ < waiting_.size());
  };
  while (!waiting_.empty() && (has_slot() || !session_.has_session())) waiting_.wake_one();
}

// While the server says that the call is still in progress, it is asked again and again. The turn
// is still held with Fate::Go, Fate::Later (of a server that goes on to say so) or an error.
Task<Outcome<SessionClient::Settled>> SessionClient::settled(OperationContext context,
                                                             HeldTurn& held,
                                                             const ProtocolOptions& options,
                                                             Settling* settling) {
  Turn& turn = held.turn();
  JukeboxRetry retry(channel().loop(), options, session_.lease());
  // What comes may be the whole of the results that were lost (RFC 8881 2.10.6.1.3).
  Request nothing;
  nothing.results_max = session::Session::kCachedMax;
  while (session_.has_session() && session_.slots().current(turn)) {
    const rpc::CallOptions call = call_options(context, nothing, options);
    Exchange exchange = exchange_in(turn, nothing, call);
    Result<rpc::ReplyMessage, rpc::CallError> reply = co_await exchange.send();
    if (const auto fault = exchange.take(reply)) co_return Failure{Error::of_call(context, *fault)};
    heard_ = channel().loop().now();
    if (nothing.sequence_result() == nullptr) co_return Settled{Fate::Broken};
    const bool executed = nothing.status() != v4::NFS4_OK || !nothing.answered_in_order();
    const Fate fate = session_.on_settling(turn, *nothing.sequence_result(), exchange.sent());
    if (fate == Fate::Unbound) {
      const Outcome<Fate> bound = co_await bound_for(turn, context, options);
      if (!bound) co_return Failure{bound.error()};
      if (*bound == Fate::Go) continue;
      co_return Settled{*bound};
    }
    if (fate != Fate::Later || !retry.left()) {
      if (fate != Fate::Go && fate != Fate::Later) held.release();
      co_return Settled{fate, executed};
    }
    if (settling != nullptr && settling->ends_with_delay) {
      settling->leave();
      wake_waiting();
    }
    co_await retry.pause();
  }
  co_return Settled{Fate::Again};
}

// For the call that has begun it, whose credentials and time limit it has; that call may have found
// another slot by the time that it ends.
Task<void> SessionClient::settle(HeldTurn held, OperationContext context, ProtocolOptions options,
                                 std::shared_ptr<Settling> settling) {
  try {
    settling->came = co_await settled(context, held, options, settling.get());
  } catch (const std::bad_alloc&) {
    settling->came = Settled{Fate::Later};
  }
  settling->leave();
  const bool certain = *settling->came && (*settling->came)->fate == Fate::Go;
  end_settled(std::move(held), certain);
  if (!certain) settling->failed.cancel();
}

// One that is not certain is in doubt again, unless it ended before.
void SessionClient::end_settled(HeldTurn held, bool certain) {
  if (certain) {
    session_.on_settled(held.turn());
    held.release();
  }
  { const HeldTurn ended(std::move(held)); }
  wake_waiting();
}

// Null: there is no slot in doubt that is free.
std::shared_ptr<SessionClient::Settling> SessionClient::begin_settling(
    OperationContext context, const ProtocolOptions& options, bool first) {
  if (!session_.slots().has_free()) return nullptr;
  HeldTurn held(*this, *session_.take());
  auto settling = std::make_shared<Settling>(settling_, first);
  OperationContext as(kSettling);
  as.waits_since = context.waits_since;
  ProtocolOptions by = options;
  by.cancel = stop_.cancelled() ? CancelToken() : CancelToken(stop_);
  background_.add(settle(std::move(held), as, std::move(by), settling));
  return settling;
}

// Of a certain slot that becomes free and one in doubt that is settled, which may take as long as
// the call that was given up, whichever comes first. Where it takes long, a second one in doubt: a
// server that says so for ever is to be heard.
Task<Outcome<SessionClient::Taken>> SessionClient::take_turn(OperationContext context,
                                                             const ProtocolOptions& options) {
  OwnSettling own;
  bool first = true;
  while (session_.has_session()) {
    if (session_.slots().has_certain())
      co_return Taken{Fate::Go, HeldTurn(*this, *session_.take())};
    if (own.get() != nullptr && own.get()->came) {
      const Outcome<Settled>& came = *own.get()->came;
      if (!came && came.error().kind != Error::Kind::Call) co_return Failure{came.error()};
      if (!came) co_return Failure{Error::of_call(context, came.error().call)};
      if (came->fate != Fate::Go) co_return Taken{came->fate, {}};
      own.begin(nullptr);
    }
    const bool counts = own.get() != nullptr && own.get()->counts();
    if (!counts && settling_ <= waiting_.size()) {
      if (own.get() != nullptr) first = false;
      if (auto begun = begin_settling(context, options, first)) {
        own.begin(std::move(begun));
        if (!own.get()->counts()) continue;
      }
    }
    const CancelToken failed =
        own.get() != nullptr ? CancelToken(own.get()->failed) : CancelToken();
    const Outcome<Ok> woken = co_await wait_in(waiting_, context, options, failed);
    if (!woken) co_return Failure{woken.error()};
  }
  co_return Taken{Fate::Again, {}};
}

}  // namespace stag::nfs::client::nfs4
