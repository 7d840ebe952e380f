#include "rpc/gss/client.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/cancel.h"
#include "base/failure.h"
#include "gss/protect.h"
#include "rpc/gss/context_setup.h"

namespace stag::rpc {
namespace {

// How long Calls that have an outrun context wait for another: a KDC answers sooner, or hangs.
// Until then the Call that they would move the window past is likely to have been judged.
constexpr Duration kRenewalPatience = std::chrono::seconds(1);

// Whether a Call has ended whatever its Channel says: without a connection it says why there is
// none.
bool is_over(const CallMessage& message, TimePoint now) {
  return message.cancel.cancelled() || (message.deadline && *message.deadline <= now);
}

CallError ticket_ended(const Channel& channel) {
  trace(Reason::GssTicketExpired, channel.where(), "it ends within this second");
  return CallError::transport(Reason::GssTicketExpired, channel.where());
}

}  // namespace

std::shared_ptr<ClientSecurity> rpcsec_gss(GssClientOptions options) {
  return std::make_shared<GssClient>(std::move(options));
}

GssClient::GssClient(GssClientOptions options) : options_(std::move(options)) {
  STAG_CHECK(options_.initiator != nullptr);
}

std::uint32_t GssClient::reply_overhead() const {
  const gss::Sizes sizes = options_.initiator->sizes();
  return sizes.mic_max + gss::overhead_of(options_.service, sizes);
}

Task<Result<std::unique_ptr<CallSecurity>, CallError>> GssClient::begin(
    Channel& channel, const oncrpc::CallHeader& header, const CallMessage& message) {
  loop_ = &channel.loop();
  while (!usable(*loop_) || context_->full() || context_->outrun()) {
    const bool has_room = usable(*loop_) && !context_->full();
    if (setting_up_ && has_room && loop_->now() >= patience_ends_) break;
    if (setting_up_ || (usable(*loop_) && context_->full())) {
      const std::uint32_t before = set_ups_;
      const Reason why = co_await wait(*loop_, message);
      if (why != Reason::None) co_return Failure{CallError::transport(why, channel.where())};
      const bool failed = set_ups_ != before && failure_ && !failed_for_one_;
      if (failed && !usable(*loop_)) co_return Failure{*failure_};
    } else {
      const auto failure = co_await replace_context(channel, header, message);
      destroy_unused(channel, nullptr);
      if (failure && !usable(*loop_)) co_return Failure{*failure};
      break;  // Without another, most servers take it in a context that is outrun, too.
    }
  }
  co_return std::unique_ptr<CallSecurity>(
      std::make_unique<GssCall>(context_, options_.service, gss::Procedure::DATA, *this));
}

// Those who wait go on, however it ends: there may be no memory to say how.
class GssClient::SettingUp {
 public:
  explicit SettingUp(GssClient& client) : client_(client) {
    client.setting_up_ = true;
    client.patience_ends_ = client.loop_->now() + kRenewalPatience;
  }
  SettingUp(const SettingUp&) = delete;
  SettingUp& operator=(const SettingUp&) = delete;
  ~SettingUp() {
    client_.setting_up_ = false;
    try {
      client_.wake(client_.waiters_.size());
    } catch (const std::bad_alloc&) {
      // Here and now, then: a later turn takes memory.
      for (Waiter* const waiter : std::exchange(client_.waiters_, {}))
        if (!waiter->completed()) waiter->complete(Reason::OutOfMemory);
    }
  }

 private:
  GssClient& client_;
};

Task<std::optional<CallError>> GssClient::replace_context(Channel& channel,
                                                          const oncrpc::CallHeader& header,
                                                          const CallMessage& message) {
  Result<std::shared_ptr<ClientContext>, CallError> made =
      Failure{CallError::transport(Reason::OutOfMemory, channel.where())};
  try {
    const SettingUp setting_up(*this);
    left_.reserve(left_.size() + 2);  // for this one and, in end(), the next
    auto fresh = co_await set_up_context(channel, *options_.initiator, header, message);
    const bool ended = fresh && !(*fresh)->usable(loop_->now());
    if (ended) left_.push_back(*std::move(fresh));
    if (ended) fresh = Failure{ticket_ended(channel)};
    made = std::move(fresh);
  } catch (...) {
    trace_exception(Reason::GssFailed, channel.where());
  }
  ++set_ups_;
  failure_.reset();
  header_ = header;
  if (made) {
    if (usable(*loop_)) left_.push_back(std::move(context_));
    context_ = *std::move(made);
    co_return std::nullopt;
  }
  const TimePoint now = loop_->now();
  failure_ = made.error();
  failed_for_one_ = is_over(message, now);
  // Of a Call that ended while Kerberos took its time the next would be one, too.
  if (context_ != nullptr && (!failed_for_one_ || now >= patience_ends_))
    context_->next_attempt = context_->seq_num + context_->window;
  co_return failure_;
}

Task<Reason> GssClient::wait(Loop& loop, const CallMessage& message) {
  Waiter waiter;
  const auto end = [&waiter](Reason why) {
    if (!waiter.completed()) waiter.complete(why);
  };
  Timer timer, patience;
  if (setting_up_ && loop.now() < patience_ends_)
    patience = loop.after(patience_ends_ - loop.now(), [&end] { end(Reason::None); });
  if (message.deadline)
    timer = loop.after(std::max(*message.deadline - loop.now(), Duration::zero()),
                       [&end] { end(Reason::TimedOut); });
  waiters_.push_back(&waiter);
  const CancelCallback cancelled(message.cancel, [&end] { end(Reason::Cancelled); });
  const Reason why = co_await waiter;
  std::erase(waiters_, &waiter);
  co_return why;
}

// In a later turn: the waiting call goes on from the loop, not from inside another Call.
void GssClient::wake(std::size_t count) {
  if (waiters_.empty()) return;
  loop_->post([weak = weak_from_this(), count] {
    const auto self = weak.lock();
    for (std::size_t i = 0; self != nullptr && i < count && !self->waiters_.empty(); ++i) {
      Waiter* const first = self->waiters_.front();
      self->waiters_.pop_front();
      if (!first->completed()) first->complete(Reason::None);
    }
  });
}

void GssClient::on_call_ended() {
  wake(1);
}

// One of those that no Call uses any more and the server knows; null: there is none.
std::shared_ptr<ClientContext> GssClient::take_unused() {
  const auto unused = [](const auto& context) { return context->calls == 0; };
  for (;;) {
    const auto found = std::find_if(left_.begin(), left_.end(), unused);
    if (found == left_.end()) return nullptr;
    std::shared_ptr<ClientContext> context = std::move(*found);
    left_.erase(found);
    if (!context->refused) return context;
  }
}

// The server is told of them, as it may keep them for hours. Without a `group` nobody waits for it:
// no Call of a user is held up.
void GssClient::destroy_unused(Channel& channel, TaskGroup* group) {
  try {
    while (std::shared_ptr<ClientContext> context = take_unused()) {
      auto destroyed = destroy_context(channel, std::move(context), header_, options_.service);
      if (group != nullptr)
        group->add(std::move(destroyed));
      else
        detach(std::move(destroyed));
    }
  } catch (const std::bad_alloc&) {
    trace(Reason::OutOfMemory);
  }
}

// RFC 2203 5.4: "If the request to destroy the context fails for some reason, the client need not
// take any special action."
Task<void> GssClient::end(Channel& channel) {
  if (context_ != nullptr) left_.push_back(std::exchange(context_, nullptr));
  TaskGroup destroyed;
  if (channel.limits()) destroy_unused(channel, &destroyed);
  left_.clear();
  co_await destroyed.join();
}

}  // namespace stag::rpc
