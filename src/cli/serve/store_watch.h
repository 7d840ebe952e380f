// StoreWatch: the workers of the stores that `stag serve` exports (net/worker_pool.h), one set for
// each store, and of what it does in state directories. They are checked once a second and joined
// at the end. A store that stops answering is logged, and again when it answers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/observe/store_queues.h"
#include "net/loop.h"
#include "net/worker_pool.h"

namespace stag::cli {

// The workers of one store: for operations that end in an fsync, and for all others.
struct StoreWorkers {
  std::shared_ptr<net::WorkerPool> plain;
  std::shared_ptr<net::WorkerPool> syncing;
};

// Any thread, unless stated otherwise.
class StoreWatch {
 public:
  // How long an operation of a store may take, and the bytes of data that may wait for a store that
  // has stopped answering.
  StoreWatch(Duration patience, std::uint64_t waiting_bytes)
      : patience_(patience), waiting_bytes_(waiting_bytes) {}
  ~StoreWatch() { finish(); }
  StoreWatch(const StoreWatch&) = delete;
  StoreWatch& operator=(const StoreWatch&) = delete;

  // What a client whose work is refused is called in the log, from now on; null: nobody knows.
  using Naming = std::function<std::string(const void* client)>;
  void name_clients_by(Naming naming);

  // `name` appears in the log: "export /data". The workers exist as long as they have work.
  StoreWorkers make(const std::string& name);
  // A pool for other work that may wait for a file system, as `options` say, with a name likewise.
  // As with any pool, the last owner waits for its work.
  std::shared_ptr<net::WorkerPool> make(const net::WorkerOptions& options);
  // As such a name.
  static std::string state_directory(const std::string& path) { return "state directory " + path; }
  static std::string records(const std::string& place) { return "records in " + place; }
  enum class Silence : std::uint8_t { NoAnswer, NoThread };
  // Which store is asked, by its name.
  struct Subject {
    Subject(const char* store) : name(store) {}
    Subject(std::string store, std::string question = {})
        : name(std::move(store)), about(std::move(question)) {}
    std::string name;
    // What is asked. A store that has not answered it yet, or eight others, is not asked again:
    // each question would cost another thread for as long as it hangs. Empty: ask in any case.
    std::string about;
  };
  // Runs `work` on a thread of its own, which ends with it, and yields its result. NoAnswer when it
  // takes too long: it goes on as work of the store, and a late result is destroyed there.
  template <class Work>
  auto ask(const Subject& subject, Work work) -> Result<decltype(work()), Silence> {
    return take(begin(subject, std::move(work)), steady_now() + patience_);
  }
  // As ask(), of several stores at once: it takes no longer than to ask one, however many of them
  // do not answer. Yields the results in the same order.
  template <class Work>
  auto ask_all(std::vector<std::pair<Subject, Work>> questions);

  // The log messages that are due at `now`.
  void look(TimePoint now);
  // The names of stores with unanswered operations.
  std::string busy() const;
  // What the stores of each name have to do together, by name: an export whose folder was replaced,
  // or is opened again for a reload, may have several. As look(): what waits in vain by `now` is
  // given back.
  std::vector<StoreQueues> queues(TimePoint now) const;
  // Waits for all operations of the stores, without a limit; none is started afterwards.
  void finish();
  Duration patience() const { return patience_; }

 private:
  struct Watched {
    std::string name;
    StoreWorkers workers;
    TimePoint silent_since{};  // while `reported`
    bool reported = false;
    std::string about{};  // of a question; empty: of other work
  };
  template <class Value>
  struct Answer {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<Value> value;
    std::optional<Silence> refused;
    bool waited_for = true;
    StoreWorkers workers;
    // Whether it is there by `end`.
    bool wait(std::unique_lock<std::mutex>& lock, TimePoint end) {
      return came.wait_until(lock, end, [this] { return value || refused; });
    }
  };
  // A store that answers within it keeps no other one waiting, and its thread ends before the next
  // one begins: the system need not have as many as there are stores.
  static constexpr Duration kAtOnce = std::chrono::milliseconds(10);
  static TimePoint steady_now() {
    return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  }
  template <class Work>
  auto begin(const Subject& subject, Work work) -> std::shared_ptr<Answer<decltype(work())>>;
  template <class Value>
  Result<Value, Silence> take(const std::shared_ptr<Answer<Value>>& answer, TimePoint end);
  void look_at(Watched& watched, TimePoint now) const;
  StoreWorkers watch(net::WorkerOptions options, std::string about = {});
  // As make(), for one piece of work. None where an earlier one for the same question goes on.
  StoreWorkers make_one(const Subject& subject);
  bool is_asked(const Subject& subject) const;
  void forget(const StoreWorkers& workers);
  std::string name_of(const void* client);

  const Duration patience_;
  const std::uint64_t waiting_bytes_;
  mutable std::mutex mutex_;
  std::vector<Watched> all_;
  std::mutex naming_mutex_;  // look() has the other one
  Naming naming_;
};

// Calls `look`, which is StoreWatch::look(), once a second, and `close_unused`, which is that of
// all stores, every ten; on the loop's thread.
class StoreRounds {
 public:
  StoreRounds(Loop& loop, std::function<void()> look, std::function<void()> close_unused)
      : loop_(loop), look_(std::move(look)), close_unused_(std::move(close_unused)) {
    begin();
  }

 private:
  void begin() {
    timer_ = loop_.after(std::chrono::seconds(1), [this] {
      // First: the next round comes although this one finds no memory.
      begin();
      if (++rounds_ % 10 == 0) close_unused_();
      look_();
    });
  }

  Loop& loop_;
  const std::function<void()> look_, close_unused_;
  std::uint64_t rounds_ = 0;
  Timer timer_;
};

template <class Work>
auto StoreWatch::begin(const Subject& subject, Work work)
    -> std::shared_ptr<Answer<decltype(work())>> {
  const auto answer = std::make_shared<Answer<decltype(work())>>();
  Executor::Job job;
  job.work = [answer, work = std::move(work)]() mutable {
    std::optional<decltype(work())> value(work());
    const std::lock_guard lock(answer->mutex);
    if (answer->waited_for) answer->value.swap(value);
    answer->came.notify_one();
  };
  job.deliver = [](void*, Executor::Function) {};
  answer->workers = make_one(subject);
  if (answer->workers.plain == nullptr)
    answer->refused = Silence::NoAnswer;
  else if (!answer->workers.plain->submit(std::move(job)))
    answer->refused = Silence::NoThread;
  return answer;
}

template <class Value>
Result<Value, StoreWatch::Silence> StoreWatch::take(const std::shared_ptr<Answer<Value>>& answer,
                                                    TimePoint end) {
  std::unique_lock lock(answer->mutex);
  answer->wait(lock, end);
  answer->waited_for = answer->value.has_value();
  const StoreWorkers workers = std::move(answer->workers);
  if (!answer->waited_for) return Failure{answer->refused.value_or(Silence::NoAnswer)};
  lock.unlock();
  workers.plain->finish();
  forget(workers);
  return *std::move(answer->value);
}

template <class Work>
auto StoreWatch::ask_all(std::vector<std::pair<Subject, Work>> questions) {
  using Value = decltype(std::declval<Work&>()());
  std::vector<std::shared_ptr<Answer<Value>>> answers;
  for (auto& [subject, work] : questions) {
    const auto& answer = answers.emplace_back(begin(subject, std::move(work)));
    std::unique_lock lock(answer->mutex);
    answer->wait(lock, steady_now() + kAtOnce);
  }
  const TimePoint end = steady_now() + patience_;
  std::vector<Result<Value, Silence>> results;
  for (const auto& answer : answers) results.push_back(take(answer, end));
  return results;
}

}  // namespace stag::cli
