#include "rpc/rdma/channel.h"

#include <algorithm>
#include <new>

#include "base/pause.h"
#include "oncrpc/message.h"
#include "rpc/xid_seeds.h"

namespace stag::rpc::rdma {
namespace {

constexpr std::size_t kMostKept = 256;  // records of calls, for later ones
// RFC 8267 3.1: how often a Call is made again with twice the room for its Reply.
constexpr std::uint32_t kReplyEnlargements = 6;

constexpr int kUnansweredTries = 3;
constexpr Duration kUnansweredPause = std::chrono::milliseconds(50);

// Intervals of ChannelOptions::probe_after.
constexpr std::uint32_t kLongSilence = 4;

}  // namespace

struct Channel::Entry final : Deadline {
  Entry(Channel& owner, CallMessage& message) : channel(owner), call(message) {}
  void on_deadline() override { channel.give_up(*this, Reason::TimedOut); }

  Channel& channel;
  PendingCall call;
  Link* link = nullptr;                          // while an attempt is on it
  std::optional<Completion<Reason>> connection;  // while waiting for one
  std::optional<CancelCallback> cancel;
  Reason given_up = Reason::None;
  std::uint32_t enlargements = 0;
};

Channel::Channel(fabric::Fabric& fabric, Address server, ChannelOptions options)
    : rpc::Channel(static_cast<std::uint32_t>(seed_or_random(options.seed) * 2654435761u >> 3)),
      fabric_(fabric),
      loop_(fabric.loop()),
      server_(std::move(server)),
      options_(options),
      reconnector_(loop_, *this, {.give_up_after = options.reconnect_for},
                   static_cast<std::uint32_t>(seed_or_random(options.seed))),
      deadlines_(loop_) {
  kept_.reserve(kMostKept);
}

Channel::~Channel() {
  STAG_CHECK(active_ == 0 && !reconnector_.connecting());
  if (link_ == nullptr) return;
  link_->disown();
  link_->close(Reason::Shutdown);
}

// Connecting.

void Channel::adopt(std::unique_ptr<fabric::Connection> connection, bool announced) {
  LinkSettings settings;
  settings.transport = options_.transport;
  settings.credits_requested = options_.credits;
  settings.credits_granted = reverse_service_ != nullptr ? options_.reverse_credits : 0;
  settings.reserve_probe_credit = options_.probe_after > Duration::zero();
  settings.quirks = options_.quirks;
  settings.announced = announced;
  settings.serves_chunks = options_.reverse_chunks;
  settings.transfer_stats = options_.transfer_stats;
  link_ = std::make_shared<Link>(std::move(connection), settings, static_cast<LinkOwner&>(*this));
  unreachable_ = Reason::None;
  // An interval of the connection before says nothing about this one.
  health_timer_.cancel();
  health_watched_ = false;
  link_->open(reverse_service_, {});
}

// A server that ends, or hands over to another one, closes connections that it has just accepted
// and that are not set up yet. A port that speaks something else does that every time.
Task<Result<Ok, Reason>> Channel::attempt(CancelToken cancel) {
  for (int tries = 1;; ++tries) {
    fabric::ConnectOptions options = connection_options(options_.transport, fabric_, Side::Client,
                                                        options_.credits, options_.reverse_credits);
    options.timeout = options_.connect_timeout;
    const bool announced = !options.private_data.empty();
    auto connection = co_await fabric_.connect(server_, std::move(options), cancel);
    // A provider may have connected just before it is told not to.
    if (connection && reconnector_.stopped()) co_return Failure{Reason::Shutdown};
    if (connection) {
      adopt(*std::move(connection), announced);
      co_return Ok{};
    }
    const bool again = connection.error() == Reason::MpaUnanswered && tries < kUnansweredTries;
    if (!again) co_return Failure{connection.error()};
    co_await pause(loop_, kUnansweredPause, cancel);
  }
}

// A Call that takes long must not have the only credit of a new connection: the quick Reply to a
// NULL call brings more of them, for the other Calls and for the next probe. Which program to ask
// is known from the first Call on.
bool Channel::begins_with_probe() const {
  // The accepting end is silent until it has heard something.
  if (waiting_.empty()) return true;
  return last_.program != 0 && options_.probe_after > Duration::zero();
}

void Channel::begin_with_probe() noexcept {
  try {
    tasks_.add(probe(link_));
  } catch (const std::bad_alloc&) {
    // The Calls do without.
  }
}

// A server that is away is tried again and again; the log has why once.
void Channel::on_attempt_failed(Reason reason) {
  if (std::exchange(unreachable_, reason) != reason) trace(reason, where());
}

void Channel::on_attempts_ended(Reason reason) {
  if (reason == Reason::None && connected() && begins_with_probe()) begin_with_probe();
  wake_waiting(reason);
}

// Before the Call is sent. The first one of the Channel comes behind a NULL call, if it is none.
inline void Channel::remember_target(const CallMessage& message) {
  const bool first = last_.program == 0;
  last_ = target_of(message.stream);
  if (first && last_.procedure != 0 && options_.probe_after > Duration::zero()) begin_with_probe();
}

// RFC 8167 5.4: the server cannot connect, so who serves reverse Calls comes back even without a
// Call.
bool Channel::wants_connection() const {
  return !closing_ && (!waiting_.empty() || reverse_service_ != nullptr);
}

void Channel::wake_waiting(Reason reason) {
  for (Entry* entry : std::exchange(waiting_, {})) entry->connection->complete(reason);
}

void Channel::on_link_down(Link& link, Reason reason) {
  if (link_.get() != &link) return;
  link_.reset();
  if (!closing_) trace(Reason::RpcConnectionLost, where(), info(reason).text);
  connections_lost_.fetch_add(1, std::memory_order_relaxed);
  try {
    if (wants_connection()) reconnector_.start();
  } catch (const std::bad_alloc&) {
    wake_waiting(Reason::OutOfMemory);
  }
  end_if_quiet();
}

// Calls.

// Lives in the frame of its call(), which may end by an exception anywhere.
class Channel::Active {
 public:
  explicit Active(Channel& channel) : channel_(channel) { ++channel_.active_; }
  Active(const Active&) = delete;
  ~Active() {
    --channel_.active_;
    channel_.end_if_quiet();
  }

 private:
  Channel& channel_;
};

Task<Result<ReplyMessage, CallError>> Channel::call(CallMessage& message) {
  const Active active(*this);
  const EntryInUse in_use = entry_for(message);
  Entry& entry = *in_use;
  if (message.deadline) deadlines_.add(entry, *message.deadline);
  if (message.cancel.has_source())
    entry.cancel.emplace(message.cancel, [this, &entry] { give_up(entry, Reason::Cancelled); });
  Reason reason = Reason::None;
  for (;;) {
    reason = entry.given_up;
    if (reason == Reason::None && !connected()) reason = co_await connection(entry);
    // A call woken before this one may have had it cancelled.
    if (reason == Reason::None) reason = entry.given_up;
    if (reason == Reason::None) reason = begin_transmission(message);
    if (reason != Reason::None) break;
    remember_target(message);
    // The NULL call may have found that it is none any more.
    if (!connected()) continue;
    begin(entry);
    co_await entry.call.done();
    entry.link = nullptr;
    reason = entry.call.end->reason;
    if (reason == Reason::None) reconnector_.worked();
    if (reason == Reason::None || !try_again(entry)) break;
  }
  if (reason == Reason::None) co_return std::move(entry.call.end->reply);
  CallError error = CallError::transport(reason, where());
  error.sent = entry.call.transmitted;
  co_return Failure{std::move(error)};
}

inline Reason Channel::begin_transmission(CallMessage& message) {
  const Result<Ok, Reason> made = message.begin_transmission();
  return made ? Reason::None : made.error();
}

// Most of an Entry is lists that are empty: it is made once and used for many calls.
inline Channel::EntryInUse Channel::entry_for(CallMessage& message) {
  if (kept_.empty()) return EntryInUse(new Entry(*this, message), {this});
  EntryInUse entry(kept_.back().release(), {this});
  kept_.pop_back();
  entry->call.use_for(message);
  entry->given_up = Reason::None;
  entry->enlargements = 0;
  return entry;
}

inline void Channel::keep(Entry* entry) {
  if (entry->connection) std::erase(waiting_, entry);
  entry->connection.reset();
  entry->link = nullptr;
  entry->leave();
  entry->cancel.reset();
  std::unique_ptr<Entry> ended(entry);
  if (kept_.size() < kMostKept) kept_.push_back(std::move(ended));
}

bool Channel::try_again(Entry& entry) {
  if (entry.given_up != Reason::None || closing_) return false;
  return entry.call.end->connection_lost || enlarge(entry);
}

// A Link has ended all its calls before it tells on_link_down(), which lets go of it.
inline void Channel::begin(Entry& entry) {
  // First what may find no memory: a Call that has begun is the Link's until that has ended it.
  const bool begun = watch_health();
  entry.link = link_.get();
  link_->start(entry.call);
  if (!begun) return;
  // Behind it: that the Call itself is taken says nothing about the server.
  if (link_ != nullptr) link_->progressed();
  silence_ = 0;
}

std::optional<ChannelLimits> Channel::limits() const {
  if (!connected()) return std::nullopt;
  return link_->limits();
}

inline bool Channel::connected() const {
  return link_ != nullptr && link_->up();
}

Task<Reason> Channel::connection(Entry& entry) {
  while (!connected()) {
    if (closing_) co_return Reason::Shutdown;
    entry.connection.emplace();
    waiting_.push_back(&entry);
    // A Link that ends is kept until its last event; on_link_down() starts the next one.
    if (link_ == nullptr) reconnector_.start();
    const Reason reason = co_await *entry.connection;
    entry.connection.reset();
    if (reason != Reason::None) co_return reason;
  }
  co_return Reason::None;
}

// RFC 8267 3.1: the size of some Replies cannot be known before; a Call whose Reply chunk was too
// small is made again, as another Call, with more room.
bool Channel::enlarge(Entry& entry) {
  CallMessage& message = entry.call.message();
  const bool refused = entry.call.end->reason == Reason::RdmaPeerRefusedChunks;
  if (!refused || !message.retry_short_reply) return false;
  if (++entry.enlargements > kReplyEnlargements) return false;
  message.reply.payload_max *= 2;
  message.use_xid(next_xid());
  return true;
}

void Channel::give_up(Entry& entry, Reason reason) {
  if (entry.given_up != Reason::None) return;
  entry.given_up = reason;
  if (entry.link != nullptr) return entry.link->give_up(entry.call, reason);
  auto found = std::find(waiting_.begin(), waiting_.end(), &entry);
  if (found == waiting_.end()) return;
  waiting_.erase(found);
  // Of a call that was never sent, why there is no connection says more than the time.
  const bool unsent = reason == Reason::TimedOut && !entry.call.transmitted;
  const bool unreachable = unsent && unreachable_ != Reason::None;
  entry.connection->complete(unreachable ? unreachable_ : reason);
}

// Health: calls are waiting and nothing moves. A bulk transfer on a slow link says nothing for a
// long time but moves all the time.

inline bool Channel::watch_health() {
  if (options_.probe_after <= Duration::zero() || health_watched_) return false;
  health_timer_ = loop_.after(options_.probe_after, [this] { on_health_tick(); });
  return health_watched_ = true;
}

void Channel::on_health_tick() {
  health_watched_ = false;
  if (closing_ || link_ == nullptr || !link_->up() || link_->in_flight() == 0) return;
  const bool alive = link_->progressed();
  silence_ = alive ? 0 : silence_ + 1;
  // A probe that finds no credit says nothing about the server, unless for long.
  const bool given_up = probe_ != nullptr && (probe_->sent() || silence_ > kLongSilence);
  if (!alive && given_up) return link_->close(Reason::RpcServerSilent);
  try {
    watch_health();
  } catch (const std::bad_alloc&) {
    // Without the timer nothing would find out any more that the server is silent.
    return link_->close(Reason::OutOfMemory);
  }
  if (!alive && probe_ == nullptr) tasks_.add(probe(link_));
}

Task<void> Channel::probe(std::shared_ptr<Link> link) {
  CallMessage message;
  message.xid = next_xid();
  message.stream = null_call(message.xid, last_);
  message.reply.payload_max = oncrpc::kReplyHeaderSize + oncrpc::kMaxErrorReplySize;
  PendingCall call(message);
  call.probe = true;
  probe_ = &call;
  link->start(call);
  co_await call.done();
  probe_ = nullptr;
}

// Ending.

void Channel::serve_reverse(Service& service) {
  reverse_service_ = &service;
  if (link_ != nullptr && link_->up()) link_->serve(service, options_.reverse_credits);
}

Task<void> Channel::close() {
  closing_ = true;
  reconnector_.stop();
  health_timer_.cancel();
  wake_waiting(Reason::Shutdown);
  if (link_ != nullptr) link_->close(Reason::Shutdown);
  co_await reconnector_.join();
  co_await tasks_.join();
  Completion<Ok> quiet;
  quiet_ = &quiet;
  end_if_quiet();
  co_await quiet;
  // The coroutine that awaits this may destroy the Channel: leave its callbacks first.
  co_await resume_on(loop_);
}

inline void Channel::end_if_quiet() {
  if (quiet_ != nullptr && active_ == 0 && link_ == nullptr)
    std::exchange(quiet_, nullptr)->complete(Ok{});
}

Task<Result<std::unique_ptr<rpc::Channel>, CallError>> Connector::connect(Address server,
                                                                          CancelToken cancel) {
  auto channel = std::make_unique<Channel>(fabric_, std::move(server), options_);
  const Result<Ok, Reason> connected = co_await channel->connect(cancel);
  if (!connected) co_return Failure{CallError::transport(connected.error(), channel->where())};
  co_return std::unique_ptr<rpc::Channel>(std::move(channel));
}

}  // namespace stag::rpc::rdma
