#include "rpc/tcp/responder.h"

#include <algorithm>
#include <utility>

#include "base/failure.h"
#include "rpc/late_xid.h"

namespace stag::rpc::tcp {
namespace {

// Of a Reply, before it is made.
constexpr std::uint64_t kShort = 4 << 10;
// What one of unknown length counts as until it is there: procedures that return more are rare.
constexpr std::uint64_t kUnknown = (1 << 20) + (64 << 10);
// A Call up to this length may ask for anything; a longer one is data itself.
constexpr std::size_t kMayAsk = 64 << 10;

}  // namespace

void Responder::on_call(Buffer record) {
  if (Observer* const observer = tracing(observer_)) [[unlikely]]
    observer->on_whole_call(*origin_, WholeCall::of(record.bytes()));
  std::optional<std::uint64_t> room;
  if (deferred_.empty() && may_start()) room = reserve(record);
  if (room)
    start(std::move(record), *room);
  else
    defer(std::move(record));
  start_held();
}

void Responder::defer(Buffer record) {
  const std::size_t size = record.size();
  deferred_.push_back(std::move(record));
  deferred_bytes_ += size;
}

bool Responder::may_start() const {
  return stream_ != nullptr && !stream_->closed() && !stream_->finishing() && !starting_ &&
         active_ < max_calls_ && !stream_->congested();
}

// A Call that is alone must not wait for room that itself and those behind it have.
std::uint64_t Responder::within_limit(std::uint64_t reply) const {
  const bool alone = active_ == 0 && !stream_->has_unsent();
  return alone ? std::min(reply, account_->left()) : reply;
}

std::optional<std::uint64_t> Responder::reserve(const Buffer& record) {
  const std::optional<std::uint64_t> known = service_.reply_max(*origin_, record);
  const std::uint64_t room = within_limit(known.value_or(kUnknown));
  if (!stream_->lagging())
    return try_take(room, known.has_value(), record.size()) ? std::optional(room) : std::nullopt;
  // It joins those that the client leaves in our memory.
  const std::uint64_t all = room + RecordStream::record_cost();
  if (account_->try_take(all)) return all;
  stream_->ask_for_room();
  return std::nullopt;
}

// A short Reply, behind a long Call, must not wait for others that wait for the same; nor one of
// unknown length, which counts all the same.
bool Responder::try_take(std::uint64_t room, bool known, std::size_t call) {
  const bool at_once = known ? room <= std::max<std::uint64_t>(kShort, call) : call > kMayAsk;
  if (!at_once) return account_->try_take(room);
  account_->take(room);
  account_->ask_no_more();
  return true;
}

void Responder::start(Buffer record, std::uint64_t reserved) {
  // A Call answered at once must not start the next one from inside itself: thousands of them
  // would nest.
  starting_ = true;
  const std::size_t size = record.size();
  try {
    tasks_.add(serve(shared_from_this(), std::move(record), reserved));
  } catch (...) {
    account_->give(size + reserved);
    give_up(trace_exception(Reason::RpcHandlerFailed, where_));
  }
  starting_ = false;
}

void Responder::start_held() {
  if (starting_) return;
  while (!deferred_.empty() && may_start()) {
    const std::optional<std::uint64_t> room = reserve(deferred_.front());
    if (!room) break;
    Buffer record = std::move(deferred_.front());
    deferred_.pop_front();
    deferred_bytes_ -= record.size();
    start(std::move(record), *room);
  }
  if (stream_ == nullptr) return;
  if (deferred_.empty() && active_ < max_calls_)
    stream_->resume();
  else if (may_defer())
    stream_->pause_unless_awaiting();
  else
    stream_->pause();
}

Task<void> Responder::serve(std::shared_ptr<Responder> self, Buffer record,
                            std::uint64_t reserved) {
  const std::size_t size = record.size();
  IncomingCall call;
  call.origin = self->origin_;
  call.payload = std::move(record);
  call.reply_room = {.inline_max = oncrpc::kLastFragment - 1, .chunk_max = 0};
  ++self->active_;
  try {
    const std::optional<OutgoingReply> reply = co_await self->service_.serve(call);
    // From here on it counts as what it is, in the stream; first there, so that nobody takes its
    // room.
    if (reply)
      self->send(*reply);
    else if (call.close != Reason::None)
      self->give_up(call.close);
    self->account_->give(std::exchange(reserved, 0));
  } catch (...) {
    self->give_up(trace_exception(Reason::RpcHandlerFailed, self->where_));
  }
  --self->active_;
  call.payload = {};
  self->account_->give(size + reserved);
  self->start_held();
}

void Responder::send(const OutgoingReply& reply) {
  Observer* const observer = tracing(observer_);
  if (stream_ == nullptr) {
    if (observer != nullptr)
      observer->on_whole_reply(*origin_, WholeReply::of(reply.stream.rope(), false));
    return;
  }
  Rope message = reply.stream.rope();
  if (message.size() < oncrpc::kLastFragment)
    stream_->send(std::move(message), turn_,
                  observer == nullptr ? RecordStream::Told::No : RecordStream::Told::Yes);
  else
    trace_late(Reason::RpcReplyTooLong, where_, LateXid(message));
}

void Responder::give_up(Reason reason) {
  if (stream_ != nullptr) stream_->close(reason);
}

void Responder::detach() {
  stream_ = nullptr;
  origin_->connection->end();
  account_->give(std::exchange(deferred_bytes_, 0));
  deferred_.clear();
}

}  // namespace stag::rpc::tcp
