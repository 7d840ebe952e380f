#include "net/worker_pool.h"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/failure.h"
#include "base/late_detail.h"
#include "base/reason.h"
#include "net/blocked_signals.h"
#include "net/own_credentials.h"

namespace stag::net {
namespace {

TimePoint steady_now() {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

void join(std::list<std::thread> threads) {
  for (std::thread& thread : threads) thread.join();
}

void conclude(Executor::Job&& job) {
  // Before `done` runs: what the work refers to may end with it.
  job.work = {};
  job.deliver(job.context, std::move(job.done));
}

}  // namespace

struct WorkerPool::State {
  explicit State(WorkerOptions with) : options(std::move(with)), queue(options.limits) {}

  // For one more job, with the mutex held; false when there is no thread at all.
  bool provide_thread(const std::shared_ptr<State>& self) {
    if (idle > queue.waiting() || threads >= options.limits.threads) return true;
    const BlockedSignals blocked;
    started.emplace_back();
    try {
      started.back() = std::thread([self] { serve(self); });
      ++threads;
      queue.limit_threads(options.limits.threads);
    } catch (const std::system_error&) {
      // The system has no thread left to give: the ones there do the work, more slowly.
      started.pop_back();
      if (threads > 0) queue.limit_threads(threads);
    }
    return threads > 0;
  }
  std::string name_of(const void* client) const {
    return options.whose && client != nullptr ? options.whose(client) : std::string();
  }
  struct Refusal;
  void note_refused(const void* client, std::size_t own, std::size_t all, std::size_t jobs);
  void end_this_thread() {
    const auto own = std::find_if(started.begin(), started.end(), [](const std::thread& thread) {
      return thread.get_id() == std::this_thread::get_id();
    });
    ended_threads.splice(ended_threads.end(), started, own);
    if (--threads == 0) ended.notify_all();
    if (stopping) wanted.notify_all();
  }
  // With the mutex held. The caller joins them.
  std::list<std::thread> take_ended() { return std::exchange(ended_threads, {}); }

  // The next job, waited for; nullopt when the thread shall end.
  std::optional<JobQueue::Begun> next(std::unique_lock<std::mutex>& lock) {
    for (;;) {
      if (auto begun = queue.begin(steady_now())) return begun;
      if (stopping && queue.waiting() == 0) return std::nullopt;
      ++idle;
      const bool late = wanted.wait_for(lock, options.idle) == std::cv_status::timeout;
      --idle;
      if (late && queue.waiting() == 0) return std::nullopt;
    }
  }

  const WorkerOptions options;
  std::mutex mutex;
  std::condition_variable wanted;
  std::condition_variable ended;
  JobQueue queue;
  std::list<std::thread> started;
  std::list<std::thread> ended_threads;
  std::size_t threads = 0;  // of those started
  std::size_t idle = 0;
  bool stopping = false;
};

WorkerPool::WorkerPool(WorkerOptions options)
    : state_(std::make_shared<State>(std::move(options))) {
  STAG_CHECK(state_->options.limits.threads > 0 && state_->options.limits.threads_each > 0);
}

void WorkerPool::finish() {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->wanted.notify_all();
  state_->ended.wait(lock, [this] { return state_->threads == 0; });
  std::list<std::thread> threads = state_->take_ended();
  lock.unlock();
  join(std::move(threads));
}

// The client whose jobs were turned away, `own` of `all` that wait being its own, and the one that
// has the most workers: so that it fills them, or others do. Looked up only for lines that are
// written: a client that is refused all the time costs the pool no more than that.
struct WorkerPool::State::Refusal final : LateDetail {
  Refusal(State& in, const void* of, std::size_t its, std::size_t every)
      : state(in), client(of), own(its), all(every) {}
  std::string text() const override {
    std::string text = state.name_of(client);
    if (text.empty()) return text;
    text += ": " + std::to_string(own) + " of " + std::to_string(all) + " that wait";
    std::unique_lock lock(state.mutex);
    const JobQueue::Share most = state.queue.busiest();
    const std::size_t under_way = state.queue.under_way();
    lock.unlock();
    const std::string whose = state.name_of(most.client);
    if (!whose.empty())
      text += "; most of what is under way is of " + whose + ": " + std::to_string(most.under_way) +
              " of " + std::to_string(under_way);
    return text;
  }

  State& state;
  const void* const client;
  const std::size_t own, all;
};

void WorkerPool::State::note_refused(const void* client, std::size_t own, std::size_t all,
                                     std::size_t jobs) {
  const Refusal refusal(*this, client, own, all);
  for (; jobs > 0; --jobs) trace_late(Reason::WorkersBusy, options.name, refusal);
}

bool WorkerPool::submit(Job&& job) {
  bool taken = false;
  std::size_t own = 0, all = 0;
  try {
    const std::lock_guard lock(state_->mutex);
    taken = state_->provide_thread(state_) && state_->queue.admit(std::move(job), steady_now());
    if (!taken) own = state_->queue.refusable_of(job.client), all = state_->queue.refusable();
  } catch (const std::bad_alloc&) {
    taken = false;
  }
  if (taken)
    state_->wanted.notify_one();
  else
    state_->note_refused(job.client, own, all, 1);
  return taken;
}

WorkerPool::Load WorkerPool::look(TimePoint now) {
  std::vector<Job> given_back;
  Load load;
  {
    const std::lock_guard lock(state_->mutex);
    given_back = state_->queue.give_back(now);
    load = {state_->threads, state_->queue.under_way(), state_->queue.waiting(),
            state_->queue.oldest(now)};
  }
  // Those of a client come together.
  for (auto at = given_back.begin(); at != given_back.end();) {
    const auto next = std::find_if(at, given_back.end(),
                                   [&](const Job& job) { return job.client != at->client; });
    const auto own = static_cast<std::size_t>(next - at);
    state_->note_refused(at->client, own, given_back.size(), own);
    at = next;
  }
  for (Job& job : given_back) conclude(std::move(job));
  return load;
}

void WorkerPool::serve(const std::shared_ptr<State>& state) {
  take_own_credentials();
  std::unique_lock lock(state->mutex);
  std::list<std::thread> before = state->take_ended();
  lock.unlock();
  join(std::move(before));
  lock.lock();
  while (auto begun = state->next(lock)) {
    const void* const client = begun->job.client;
    lock.unlock();
    try {
      begun->job.work();
    } catch (...) {
      trace_exception(Reason::TaskFailed, state->options.name);
    }
    conclude(std::move(begun->job));
    lock.lock();
    state->queue.end(client, begun->at, steady_now());
  }
  state->end_this_thread();
}

}  // namespace stag::net
