#include "cli/serve/store_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/reason.h"

namespace stag::cli {
namespace {

// Threads of each set; one connection gets at most half of either.
constexpr std::size_t kWorkers = 8;

std::string seconds(Duration time) {
  return fmt::format("{} s", std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

bool is_idle(const net::WorkerPool::Load& load) {
  return load.under_way == 0 && load.waiting == 0;
}

void add(net::WorkerPool::Load& to, const net::WorkerPool::Load& load) {
  to.threads += load.threads;
  to.under_way += load.under_way;
  to.waiting += load.waiting;
  to.oldest = std::max(to.oldest, load.oldest);
}

}  // namespace

StoreWorkers StoreWatch::make(const std::string& name) {
  net::WorkerOptions options;
  options.limits.threads = kWorkers;
  options.limits.threads_each = kWorkers / 2;
  options.limits.stuck_after = patience_;
  options.limits.waiting_bytes = waiting_bytes_ / 2;
  options.name = name;
  return watch(options);
}

std::shared_ptr<net::WorkerPool> StoreWatch::make(const net::WorkerOptions& options) {
  const std::shared_ptr<net::WorkerPool> pool = watch(options).plain;
  return {pool.get(), [pool](net::WorkerPool* own) { own->finish(); }};
}

bool StoreWatch::is_asked(const Subject& subject) const {
  if (subject.about.empty()) return false;
  const TimePoint early{};  // Nothing is given back by then.
  std::size_t unanswered = 0;
  const std::lock_guard lock(mutex_);
  for (const Watched& each : all_) {
    const bool waits = each.name == subject.name && !each.about.empty() &&
                       !is_idle(each.workers.plain->look(early));
    if (waits && each.about == subject.about) return true;
    if (waits) ++unanswered;
  }
  return unanswered >= kWorkers;
}

StoreWorkers StoreWatch::make_one(const Subject& subject) {
  if (is_asked(subject)) return {};
  net::WorkerOptions options;
  options.limits.threads = options.limits.threads_each = 1;
  options.idle = Duration::zero();
  options.name = subject.name;
  return watch(options, subject.about);
}

void StoreWatch::name_clients_by(Naming naming) {
  const std::lock_guard lock(naming_mutex_);
  naming_.swap(naming);
}

std::string StoreWatch::name_of(const void* client) {
  const std::lock_guard lock(naming_mutex_);
  return naming_ ? naming_(client) : std::string();
}

StoreWorkers StoreWatch::watch(net::WorkerOptions options, std::string about) {
  options.whose = [this](const void* client) { return name_of(client); };
  const StoreWorkers workers{std::make_shared<net::WorkerPool>(options),
                             std::make_shared<net::WorkerPool>(options)};
  const std::lock_guard lock(mutex_);
  all_.push_back({options.name, workers});
  all_.back().about.swap(about);
  return workers;
}

void StoreWatch::forget(const StoreWorkers& workers) {
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [&](const Watched& each) { return each.workers.plain == workers.plain; });
}

void StoreWatch::look_at(Watched& watched, TimePoint now) const {
  const net::WorkerPool::Load plain = watched.workers.plain->look(now);
  const net::WorkerPool::Load syncing = watched.workers.syncing->look(now);
  const Duration oldest = std::max(plain.oldest, syncing.oldest);
  if (!watched.reported && oldest >= patience_) {
    watched.reported = true;
    watched.silent_since = now - oldest;
    trace(Reason::StoreHangs, watched.name,
          fmt::format("for {}, {} operations wait for it", seconds(oldest),
                      plain.under_way + syncing.under_way));
  } else if (watched.reported && oldest < patience_) {
    watched.reported = false;
    trace(Reason::StoreAnswers, watched.name,
          fmt::format("after {}", seconds(now - watched.silent_since)));
  }
}

void StoreWatch::look(TimePoint now) {
  std::vector<Watched> gone;
  const std::lock_guard lock(mutex_);
  for (Watched& watched : all_) look_at(watched, now);
  // Workers without a store and without work: their threads end at once.
  const auto kept = std::partition(all_.begin(), all_.end(), [now](const Watched& watched) {
    const StoreWorkers& workers = watched.workers;
    const bool used = workers.plain.use_count() > 1 || workers.syncing.use_count() > 1;
    return used || !is_idle(workers.plain->look(now)) || !is_idle(workers.syncing->look(now));
  });
  gone.assign(std::make_move_iterator(kept), std::make_move_iterator(all_.end()));
  all_.erase(kept, all_.end());
}

void StoreWatch::finish() {
  std::vector<Watched> all;
  {
    // busy() may be asked meanwhile.
    const std::lock_guard lock(mutex_);
    all = all_;
  }
  for (const Watched& watched : all) {
    watched.workers.plain->finish();
    watched.workers.syncing->finish();
  }
}

std::vector<StoreQueues> StoreWatch::queues(TimePoint now) const {
  std::map<std::string, StoreQueues> by_name;
  const std::lock_guard lock(mutex_);
  for (const Watched& watched : all_) {
    StoreQueues& queues = by_name[watched.name];
    add(queues.plain, watched.workers.plain->look(now));
    add(queues.syncing, watched.workers.syncing->look(now));
  }
  std::vector<StoreQueues> all;
  for (const auto& [name, queues] : by_name) all.push_back({name, queues.plain, queues.syncing});
  return all;
}

std::string StoreWatch::busy() const {
  const std::lock_guard lock(mutex_);
  std::string names;
  for (const Watched& watched : all_) {
    const TimePoint early{};  // Nothing is given back by then.
    const bool idle = is_idle(watched.workers.plain->look(early)) &&
                      is_idle(watched.workers.syncing->look(early));
    if (!idle) names += (names.empty() ? "" : ", ") + watched.name;
  }
  return names;
}

}  // namespace stag::cli
