// Which job a pool of workers does next, and which it does not take: the jobs of a pool, by client.
// Pure: it has neither threads nor a clock, and is not synchronised.
//
// Clients take turns, and each has a bound of its own for jobs under way and for jobs that wait, so
// that a client that asks for much waits behind itself. Where a job waits for workers none of which
// has begun or ended anything for `stuck_after`, it is given back: the client shall ask again
// later. Jobs that keep memory while they wait do so sooner, where they keep too much of it
// together.
//
// Jobs of no client are the owner's: files to close, which calls have left. Calls and they take
// turns, however many clients call, so that they do not become more with each call; but no call
// waits in vain because of them.
#pragma once

#include <cstddef>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "base/executor.h"
#include "base/loop.h"

namespace stag::net {

struct WorkerLimits {
  std::size_t threads = 4;
  std::size_t threads_each = 4;  // of them for one client at a time
  // Jobs that wait; those that must run are nobody's demand, and not among them. When there are so
  // many, clients that have none may still add one; but their calls outlive their connections, so
  // there is an end to that.
  std::size_t waiting = 1024;
  std::size_t waiting_each = 256;
  std::size_t waiting_most = 4096;
  // Zero: a job waits for ever.
  Duration stuck_after = Duration::zero();
  // The bytes that all jobs that wait may keep. When workers have stood still for
  // `bytes_stuck_after`, beyond it no job with bytes is taken, and those that wait are given back;
  // as long as they move it means nothing, for then a store that does its best slows the clients
  // down.
  std::uint64_t waiting_bytes = std::numeric_limits<std::uint64_t>::max();
  Duration bytes_stuck_after = std::chrono::seconds(1);
};

class JobQueue {
 public:
  using Job = Executor::Job;
  explicit JobQueue(const WorkerLimits& limits) : limits_(limits) {
    begun_.reserve(limits.threads);
  }

  // False, and the job stays where it is, when there is no room for it.
  bool admit(Job&& job, TimePoint now);
  struct Begun {
    Job job;
    TimePoint at{};
  };
  // The job that a worker without one begins now; nullopt: none may begin. Allocates nothing.
  std::optional<Begun> begin(TimePoint now);
  // A job of `client` that was begun at `at` has ended.
  void end(const void* client, TimePoint at, TimePoint now);
  // What waits in vain.
  std::vector<Job> give_back(TimePoint now);
  // There will be no more than this many workers.
  void limit_threads(std::size_t threads) { limits_.threads = threads; }

  std::size_t waiting() const { return waiting_; }
  // Of these, what the limits are on: all but those that must run.
  std::size_t refusable() const { return refusable_; }
  std::size_t refusable_of(const void* client) const;
  // The bytes that jobs which wait keep.
  std::uint64_t waiting_bytes() const { return waiting_bytes_; }
  std::size_t under_way() const { return begun_.size(); }
  // The client with the most jobs under way; null where there is none.
  struct Share {
    const void* client = nullptr;
    std::size_t under_way = 0;
  };
  Share busiest() const;
  // How long the oldest job under way has been so; zero when there is none.
  Duration oldest(TimePoint now) const;

 private:
  // The jobs of one client.
  struct Line {
    std::deque<Job> waiting;
    std::size_t refusable = 0;  // of these
    std::size_t under_way = 0;
    TimePoint moved{};  // when one was begun or ended
  };
  using Lines = std::map<const void*, Line>;

  bool is_stuck(const Line& line, Duration limit, TimePoint now) const;
  bool has_room(const Line& line, const Job& job, TimePoint now) const;
  bool is_out_of_bytes(const Line& line, TimePoint now) const;
  bool may_begin(const Line& line) const {
    return !line.waiting.empty() && line.under_way < limits_.threads_each;
  }
  Line* line_in_turn();
  void take_from(Line& line, bool data_only, std::vector<Job>& given_back);

  WorkerLimits limits_;
  Lines lines_;                   // those with jobs
  std::list<const void*> turns_;  // clients with waiting jobs
  bool owners_turn_ = true;       // where there is a job of no client
  std::size_t waiting_ = 0;
  std::size_t refusable_ = 0;
  std::uint64_t waiting_bytes_ = 0;
  std::vector<TimePoint> begun_;  // of the jobs under way
  TimePoint moved_{};
};

}  // namespace stag::net
