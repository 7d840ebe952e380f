#include "rpc/tcp/requester.h"

#include <algorithm>
#include <utility>

#include "oncrpc/message.h"

namespace stag::rpc::tcp {
namespace {

// A server that takes no Call of this length ends the connection at its mark, time and again. One
// that was ended by something else meanwhile has the Call a second time.
constexpr std::uint32_t kMostRefusals = 2;
// Servers take Calls up to here: ours and, as a rule, others.
constexpr std::uint32_t kTakenEverywhere = oncrpc::RecordLimits{}.record;

std::uint32_t record_of(const ReplyBound& reply) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(reply.total_max(), oncrpc::kLastFragment - 1));
}

}  // namespace

// Lives in the frame of its call(), which may end by an exception anywhere.
struct Requester::Pending {
  Pending(Requester& of, CallMessage& call) : requester(of), message(call), number(++of.calls_) {
    requester.insert(*this);
    ++requester.active_;
  }
  Pending(const Pending&) = delete;
  ~Pending() {
    requester.remove(*this);
    --requester.active_;
  }
  Requester& requester;
  CallMessage& message;
  const std::uint64_t number;
  Completion<Result<ReplyMessage, CallError>> done{};
  Timer deadline{};
  RecordStream::Ticket ticket = 0;
  std::uint64_t sent_on = 0;  // the number of the stream
  std::uint32_t refusals = 0;
  Pending* chain = nullptr;
};

Task<Result<ReplyMessage, CallError>> Requester::call(CallMessage& message) {
  if (shut_ != Reason::None) co_return Failure{CallError::transport(shut_, where_)};
  if (message.cancel.cancelled())
    co_return Failure{CallError::transport(Reason::Cancelled, where_)};
  Pending pending(*this, message);
  if (message.deadline)
    pending.deadline =
        loop_.after(*message.deadline - loop_.now(), [this, &pending] { expire(pending); });
  // The callback ends the call in a later turn: it must not destroy itself while it runs.
  const CancelCallback cancelled(message.cancel, [this, &pending] {
    if (!remove(pending)) return;
    loop_.post(
        [this, &pending] { pending.done.complete(Failure{failed(Reason::Cancelled, pending)}); });
  });
  if (stream_ != nullptr)
    transmit(pending);
  else
    owner_.on_stream_wanted();
  Result<ReplyMessage, CallError> result = co_await pending.done;
  co_return result;
}

CallError Requester::failed(Reason reason, const Pending& pending) const noexcept {
  CallError error = CallError::transport(reason);
  error.sent = pending.sent_on != 0;
  try {
    error.where = where_;
  } catch (const std::bad_alloc&) {
    // Without the words.
  }
  return error;
}

void Requester::insert(Pending& pending) {
  Pending*& bucket = buckets_[pending.message.xid % kBuckets];
  pending.chain = bucket;
  bucket = &pending;
  ++waiting_;
}

// False when it has been ended already. Afterwards the stream refers to no memory of the call.
bool Requester::remove(Pending& pending) {
  Pending** at = &buckets_[pending.message.xid % kBuckets];
  while (*at != nullptr && *at != &pending) at = &(*at)->chain;
  if (*at == nullptr) return false;
  *at = pending.chain;
  --waiting_;
  pending.deadline.cancel();
  // Until it is sent on this stream, its ticket names another call's record there, if any.
  if (stream_ != nullptr && pending.sent_on == streams_) stream_->abandon(pending.ticket);
  return true;
}

Requester::Pending* Requester::find(std::uint32_t xid) const {
  Pending* pending = buckets_[xid % kBuckets];
  while (pending != nullptr && pending->message.xid != xid) pending = pending->chain;
  return pending;
}

void Requester::transmit(Pending& pending) {
  const Result<Ok, Reason> made = pending.message.begin_transmission();
  if (!made) return end(pending, Failure{failed(made.error(), pending)});
  // The mark of one fragment cannot say more (RFC 5531 section 11).
  if (pending.message.stream.size() >= oncrpc::kLastFragment)
    return end(pending, Failure{failed(Reason::RpcCallTooLong, pending)});
  Rope record = pending.message.stream.rope();
  pending.sent_on = streams_;
  stream_->allow(record_of(pending.message.reply));
  pending.ticket = stream_->send(std::move(record), turn_);
  owner_.on_call_sent(pending.message.stream);
}

void Requester::end(Pending& pending, Result<ReplyMessage, CallError> result) {
  if (remove(pending)) pending.done.complete(std::move(result));
}

void Requester::expire(Pending& pending) {
  // Without a connection the reason why there is none says more than the time.
  const Reason reason = stream_ != nullptr || lost_ == Reason::None ? Reason::TimedOut : lost_;
  trace(Reason::TimedOut, where_);
  end(pending, Failure{failed(reason, pending)});
}

void Requester::attach(std::shared_ptr<RecordStream> stream) {
  stream_ = std::move(stream);
  lost_ = Reason::None;
  // One that cannot be sent ends here, and its caller may make and end others.
  ++streams_;
  const auto next_of = [this](Pending* bucket) {
    while (bucket != nullptr && bucket->sent_on == streams_) bucket = bucket->chain;
    return bucket;
  };
  for (Pending*& bucket : buckets_)
    while (Pending* const pending = stream_ == nullptr ? nullptr : next_of(bucket))
      transmit(*pending);
}

void Requester::detach(Reason reason) {
  stream_ = nullptr;
  lost_ = reason;
}

// A caller that is told may make another call at once, which is not among `which`.
template <class Which>
void Requester::end_where(Which which, Reason reason) noexcept {
  const auto next_of = [&which](Pending* bucket) {
    while (bucket != nullptr && !which(*bucket)) bucket = bucket->chain;
    return bucket;
  };
  for (Pending*& bucket : buckets_)
    while (Pending* const pending = next_of(bucket))
      end(*pending, Failure{failed(reason, *pending)});
}

void Requester::end_all(Reason reason) noexcept {
  end_where([last = calls_](const Pending& each) { return each.number <= last; }, reason);
}

bool Requester::is_long_call(const Pending& pending) const noexcept {
  return pending.sent_on == streams_ && pending.message.stream.size() > kTakenEverywhere;
}

bool Requester::has_long_calls() const noexcept {
  for (const Pending* each : buckets_)
    for (; each != nullptr; each = each->chain)
      if (is_long_call(*each)) return true;
  return false;
}

bool Requester::count_refusal() noexcept {
  bool enough = false;
  for (Pending* each : buckets_)
    for (; each != nullptr; each = each->chain)
      if (is_long_call(*each)) enough |= ++each->refusals >= kMostRefusals;
  return enough;
}

void Requester::end_refused(Reason reason) noexcept {
  end_where([](const Pending& each) { return each.refusals >= kMostRefusals; }, reason);
}

void Requester::shut(Reason reason) noexcept {
  shut_ = reason;
  end_all(reason);
}

void Requester::on_reply(Buffer record) {
  Result<oncrpc::MessageStart, Reason> start = oncrpc::peek(record.bytes());
  Pending* pending = start.ok() ? find(start->xid) : nullptr;
  if (pending == nullptr) return trace(Reason::RpcReplyUnmatched, where_);
  ReplyMessage reply;
  reply.payload = std::move(record);
  end(*pending, std::move(reply));
}

}  // namespace stag::rpc::tcp
