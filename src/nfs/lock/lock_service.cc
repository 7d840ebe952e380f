#include "nfs/lock/lock_service.h"

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <string_view>

#include "base/failure.h"
#include "base/siphash.h"
#include "base/task_group.h"
#include "nfs/lock/nsm.h"
#include "rpc/server.h"

namespace stag::nfs::lock {

namespace {

// In front of lines of the log.
constexpr std::string_view kGracePeriod = "grace period";
constexpr std::string_view kUpkeep = "records of hosts with locks";

// Tries again what programs of this host were in the way of, with growing pauses. On its loop, but
// for met().
class Retries {
 public:
  Retries(LockManager& manager, Loop& loop) : manager_(manager), loop_(loop) {}
  // Any thread.
  void met() {
    loop_.post([this] { arm(); });
  }
  void stop() {
    stopped_ = true;
    timer_ = {};
  }

 private:
  static constexpr Duration kFirst = std::chrono::milliseconds(100);
  static constexpr Duration kLongest = std::chrono::seconds(2);

  void arm() {
    if (armed_ || stopped_) return;
    timer_ = loop_.after(pause_, [this] { fire(); });
    armed_ = true;
  }
  void fire() {
    armed_ = false;
    if (!manager_.retry()) {
      pause_ = kFirst;
      return;
    }
    pause_ = std::min(2 * pause_, kLongest);
    arm();
  }

  LockManager& manager_;
  Loop& loop_;
  Timer timer_;
  Duration pause_ = kFirst;
  bool armed_ = false;
  bool stopped_ = false;
};

// What is not removed is tried again the next time, or, as after a crash, its host is waited for.
bool remove_unneeded(NlmContext& context, std::uint64_t until) noexcept try {
  return context.records
      .remove_unneeded([&](const std::string& address) { return context.needs_record(address); },
                       until)
      .ok();
} catch (const std::bad_alloc&) {
  trace_exception(Reason::TaskFailed, kUpkeep);
  return false;
}

// False: the grace period goes on, and it is tried again.
bool cut_off(NlmContext& context, std::uint64_t number) noexcept try {
  const auto kept =
      context.records.cut_off([&] { return context.manager.grace().finishing(number); });
  if (!kept) trace(Reason::LockClientUnrecorded, kGracePeriod, kept.error().message);
  return kept.ok();
} catch (const std::bad_alloc&) {
  trace_exception(Reason::TaskFailed, kUpkeep);
  return false;
}

// Drops the records of hosts without locks, so that a crash makes nobody wait for them. Not when a
// lock is released: the disk would be written to as often as a client likes. Writes at the end of a
// grace period who has missed it. And does what there was no memory for: gives back what is kept
// from programs of this host, and what others wait for, and tells who is to be told of a restart.
class Upkeep : public std::enable_shared_from_this<Upkeep> {
 public:
  Upkeep(NlmContext& context, Loop& loop) : context_(context), loop_(loop) {}
  // Any thread.
  void start() {
    loop_.post([weak = weak_from_this()] {
      if (const auto still = weak.lock()) still->arm();
    });
  }
  Task<void> stop() {
    stopped_ = true;
    timer_ = {};
    watch_ = {};
    co_await tasks_.join();
  }
  // Any thread. Asks until a grace period is over whether it is: somebody may wait for that.
  void watch() {
    loop_.post([weak = weak_from_this()] {
      if (const auto still = weak.lock()) still->arm_watch();
    });
  }
  // Any thread, perhaps with locks of the caller held: the grace period of this number is due.
  void finish(std::uint64_t number, TimePoint now) {
    state::GracePeriod& grace = context_.manager.grace();
    if (!context_.records.any_may_reclaim()) return grace.finish(number, now);
    try {
      loop_.post([weak = weak_from_this(), number] {
        if (const auto still = weak.lock()) still->finish_on_loop(number);
      });
    } catch (const std::bad_alloc&) {
      grace.put_off(number, now + kWatch);
    }
  }

 private:
  static constexpr Duration kPeriod = std::chrono::minutes(1);
  static constexpr Duration kWatch = std::chrono::seconds(1);
  // As of version 4, so that the log has not too many lines.
  static constexpr Duration kAgain = std::chrono::seconds(5);

  void arm_watch() {
    if (stopped_ || !context_.manager.in_grace(loop_.now())) return;
    watch_ = loop_.after(kWatch, [this] { arm_watch(); });
  }
  void finish_on_loop(std::uint64_t number) {
    try {
      if (!stopped_) tasks_.add(write_and_finish(number));
    } catch (const std::bad_alloc&) {
      context_.manager.grace().put_off(number, loop_.now() + kWatch);
    }
  }
  Task<void> write_and_finish(std::uint64_t number) {
    bool written = false;
    try {
      written = co_await offloaded_to(
          context_.records.worker(), this, loop_, [&] { return cut_off(context_, number); }, false);
    } catch (const std::bad_alloc&) {  // there may be some when it is tried again
    }
    state::GracePeriod& grace = context_.manager.grace();
    if (written)
      grace.finish(number, loop_.now());
    else
      grace.put_off(number, loop_.now() + kAgain);
  }

  void arm() {
    if (!stopped_)
      timer_ = loop_.after(kPeriod, [this, until = context_.records.uses()] { fire(until); });
  }
  // The next turn is arranged first: it has the place of the timer that has just fired and needs no
  // memory, so that a turn for which there is none is not the last.
  void fire(std::uint64_t until) {
    arm();
    context_.manager.in_grace(loop_.now());  // it may be over though nobody has called since
    LocalLockTable& local = *context_.server.local_locks;
    if (local.overdue()) local.reconcile_overdue();
    if (context_.manager.overdue()) context_.manager.retry();
    try {
      context_.callbacks.resume_granting();
      context_.callbacks.resume_notifying();
      if (tasks_.running() == 0) tasks_.add(turn(until));
    } catch (const std::bad_alloc&) {
      trace_exception(Reason::TaskFailed, kUpkeep);
    }
  }
  Task<void> turn(std::uint64_t until) {
    co_await offloaded_to(
        context_.records.worker(), this, loop_, [&] { return remove_unneeded(context_, until); },
        false);
  }

  NlmContext& context_;
  Loop& loop_;
  Timer timer_, watch_;
  bool stopped_ = false;
  TaskGroup tasks_;
};

}  // namespace

struct LockService::Parts {
  Parts(const ServerContext& server, std::unique_ptr<Records> kept,
        const LockServiceOptions& options, Loop& loop, Peers& peers)
      : grace(options.grace),
        records(std::move(kept)),
        manager(options.limits),
        callbacks(manager, *records, options.host_name, loop, peers),
        retries(manager, loop),
        context{server, stores, manager, *records, callbacks},
        upkeep(std::make_shared<Upkeep>(context, loop)) {}

  const Duration grace;
  std::unique_ptr<Records> records;
  ExportStores stores;
  LockManager manager;
  CallbackSender callbacks;
  Retries retries;
  NlmContext context;
  const std::shared_ptr<Upkeep> upkeep;
};

LockService::LockService(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LockService::~LockService() = default;

Result<std::unique_ptr<LockService>, StateError> LockService::open(
    const ServerContext& server, const LockServiceOptions& options, Loop& loop, Peers& peers) {
  auto records =
      Records::open(options.state_directory.empty() ? "" : options.state_directory + "/locks",
                    options.records_worker);
  if (!records) return Failure{records.error()};
  if (auto kept = (*records)->keep_name(options.host_name); !kept) return Failure{kept.error()};
  auto parts = std::make_unique<Parts>(server, *std::move(records), options, loop, peers);
  Parts& made = *parts;
  made.manager.on_grant([&made](const Client&, Ticket ticket) { made.callbacks.granted(ticket); });
  if (server.gate->files() != nullptr) made.manager.share_with(*server.gate);
  made.manager.share_with_programs(*server.local_locks, [&made] { made.retries.met(); });
  if (options.grace_period != nullptr) made.manager.share_grace(options.grace_period);
  const auto weak = std::weak_ptr(made.upkeep);
  made.manager.on_grace([weak] {
    if (const auto upkeep = weak.lock()) upkeep->watch();
  });
  made.manager.grace().finish_first_by([weak](std::uint64_t number, TimePoint now) {
    if (const auto upkeep = weak.lock()) upkeep->finish(number, now);
  });
  if (made.records->any_unnotified()) made.manager.begin_grace(loop.now() + made.grace);
  return std::unique_ptr<LockService>(new LockService(std::move(parts)));
}

void LockService::add_programs(rpc::Server& server) {
  server.add(nlm1(parts_->context));
  server.add(nlm3(parts_->context));
  server.add(nlm4(parts_->context));
  server.add(nsm1(parts_->context, parts_->grace));
}

void LockService::start() {
  if (parts_->records->any_unnotified()) parts_->callbacks.notify_restart();
  parts_->upkeep->start();
}

// In three steps, as for clients of version 4 (decision 0065): a crash behind any loses nobody.
Result<std::size_t, StateError> LockService::adopt(const std::string& state_directory,
                                                   TimePoint grace_end) {
  const auto lost = Records::read_ended(state_directory + "/locks");
  if (!lost) return Failure{lost.error()};
  if (lost->hosts.empty()) return std::size_t{0};
  // Before anybody is told: others are being told all the time.
  parts_->manager.begin_grace(grace_end);
  if (auto adopted = parts_->records->adopt(*lost); !adopted) return Failure{adopted.error()};
  parts_->callbacks.notify_restart();
  if (auto given = Records::give_away(*lost); !given) return Failure{given.error()};
  return lost->hosts.size();
}

Task<void> LockService::stop() {
  parts_->retries.stop();
  co_await parts_->upkeep->stop();
  co_await parts_->callbacks.stop();
}

void LockService::remove_idle_records() {
  remove_unneeded(parts_->context, parts_->records->uses());
}

std::size_t LockService::size() const {
  return parts_->manager.size();
}

std::map<Client, std::size_t> LockService::clients() const {
  return parts_->manager.clients();
}

std::vector<FileKey> LockService::files() const {
  return parts_->manager.files();
}

std::vector<Held> LockService::held(const FileKey& file) const {
  return parts_->manager.held(file);
}

bool LockService::release(const Client& client) {
  return parts_->manager.release(client);
}

LockService::LockId LockService::id_of(const FileKey& file, const Held& held) {
  SipHash hash(process_sip_key());
  // Lengths keep apart what stands side by side.
  const auto add = [&hash](Bytes bytes) {
    const std::size_t size = bytes.size();
    hash.add(std::as_bytes(std::span(&size, 1)));
    hash.add(bytes);
  };
  add(file.handle.bytes());
  for (const std::string* text :
       {&held.owner->client.address, &held.owner->client.name, &held.owner->handle})
    add(bytes_of(*text));
  const std::uint64_t numbers[] = {file.store, static_cast<std::uint32_t>(held.owner->svid),
                                   held.range.first, held.range.last,
                                   std::uint64_t{held.exclusive}};
  hash.add(std::as_bytes(std::span(numbers)));
  return hash.finish();
}

std::optional<Client> LockService::release(LockId id) {
  for (const FileKey& file : files())
    for (const Held& one : held(file)) {
      if (id_of(file, one) != id) continue;
      parts_->manager.unlock(file, *one.owner, one.range);
      return one.owner->client;
    }
  return std::nullopt;
}

// A client that reaches the file by another export may lock it again as often as it is released.
std::size_t LockService::release(const FileKey& file) {
  constexpr int kMostRounds = 1024;
  std::size_t released = 0;
  auto locks = held(file);
  for (int round = 0; round < kMostRounds && !locks.empty(); ++round, locks = held(file))
    for (const Held& one : locks) {
      if (parts_->manager.unlock(file, *one.owner, one.range) != nlm::NLM4_GRANTED) return released;
      ++released;
    }
  return released;
}

}  // namespace stag::nfs::lock
