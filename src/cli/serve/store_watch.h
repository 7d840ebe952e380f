// StoreWatch: the workers of the stores that `stag serve` exports (net/worker_pool.h), one set for
// each store. They are checked once a second and joined at the end. A store that stops answering is
// logged, and again when it answers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
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

  // `name` appears in the log: "export /data". The workers exist as long as they have work.
  StoreWorkers make(const std::string& name);
  enum class Silence : std::uint8_t { NoAnswer, NoThread };
  // Runs `work` on a thread of its own, which ends with it, and yields its result. NoAnswer when it
  // takes too long: it goes on as work of the store `name`, and a late result is destroyed there.
  template <class Work>
  auto ask(const std::string& name, Work work) -> Result<decltype(work()), Silence>;

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
  };
  void look_at(Watched& watched, TimePoint now) const;
  StoreWorkers watch(const net::WorkerOptions& options);
  // As make(), for one piece of work.
  StoreWorkers make_one(const std::string& name);
  void forget(const StoreWorkers& workers);

  const Duration patience_;
  const std::uint64_t waiting_bytes_;
  mutable std::mutex mutex_;
  std::vector<Watched> all_;
};

// look() once a second; on the loop's thread.
class StoreRounds {
 public:
  StoreRounds(Loop& loop, StoreWatch& stores) : loop_(loop), stores_(stores) { begin(); }

 private:
  void begin() {
    timer_ = loop_.after(std::chrono::seconds(1), [this] {
      stores_.look(loop_.now());
      begin();
    });
  }

  Loop& loop_;
  StoreWatch& stores_;
  Timer timer_;
};

template <class Work>
auto StoreWatch::ask(const std::string& name, Work work) -> Result<decltype(work()), Silence> {
  struct Answer {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<decltype(work())> value;
    bool waited_for = true;
  };
  const auto answer = std::make_shared<Answer>();
  Executor::Job job;
  job.work = [answer, work = std::move(work)]() mutable {
    std::optional<decltype(work())> value(work());
    const std::lock_guard lock(answer->mutex);
    if (answer->waited_for) answer->value.swap(value);
    answer->came.notify_one();
  };
  job.deliver = [](void*, Executor::Function) {};
  const StoreWorkers workers = make_one(name);
  std::unique_lock lock(answer->mutex);
  if (!workers.plain->submit(std::move(job))) return Failure{Silence::NoThread};
  if (answer->came.wait_for(lock, patience_, [&] { return answer->value.has_value(); })) {
    workers.plain->finish();
    forget(workers);
    return *std::move(answer->value);
  }
  answer->waited_for = false;
  return Failure{Silence::NoAnswer};
}

}  // namespace stag::cli
