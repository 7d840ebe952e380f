#include "net/loop_core.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/failure.h"
#include "base/large_blocks.h"
#include "net/system_call.h"
#include "net/system_error.h"

namespace stag::net {
namespace {

TimePoint clock_now() {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

constexpr std::uint32_t kReadable = EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
constexpr std::uint32_t kWritable = EPOLLOUT | EPOLLHUP | EPOLLERR;

constexpr std::size_t kRoom = 16 << 10;

// Of the calling thread. Around each system call that may wait the C library makes cancelling
// asynchronous and takes it back, which costs two atomic operations. No thread cancels a loop: as
// long as it cannot be cancelled at all, that may be said once.
struct NeverCancelled {
  NeverCancelled() {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
  }
  ~NeverCancelled() {
    pthread_setcanceltype(type, nullptr);
    pthread_setcancelstate(state, nullptr);
  }
  NeverCancelled(const NeverCancelled&) = delete;
  int state = 0, type = 0;
};

// Whole milliseconds, never too few of them; -1: for ever.
int timeout_until(std::optional<TimePoint> when) {
  if (!when) return -1;
  constexpr Duration kLongest = std::chrono::hours(1);
  const Duration left = std::clamp(*when - clock_now(), Duration::zero(), kLongest);
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

}  // namespace

template <class F>
[[gnu::always_inline]] inline void EpollLoop::Core::call(F&& function) noexcept {
  try {
    function();
  } catch (...) {
    trace_exception(Reason::LoopFunctionFailed);
  }
}

Result<std::unique_ptr<EpollLoop::Core>, Reason> EpollLoop::Core::make(LoopOptions options) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return Failure{reason_of_errno(errno)};
  UniqueFd wakeup(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wakeup) return Failure{reason_of_errno(errno)};
  epoll_event event{EPOLLIN | EPOLLET, {}};
  if (epoll_ctl(epoll.fd(), EPOLL_CTL_ADD, wakeup.fd(), &event) != 0)
    return Failure{reason_of_errno(errno)};
  return std::make_unique<Core>(std::move(options), std::move(epoll), std::move(wakeup));
}

EpollLoop::Core::Core(LoopOptions options, UniqueFd epoll, UniqueFd wakeup)
    : spin_policy(std::chrono::microseconds(options.busy_poll_us)),
      workers(std::move(options.workers)),
      epoll_(std::move(epoll)),
      wakeup_(std::move(wakeup)) {
  // Posting a function, setting a timer and telling a descriptor do not ask for memory, up to a
  // number that only a process with tens of thousands of connections reaches: those who end
  // something, or try again what has found no memory, rely on it. Untouched, the room costs
  // addresses only.
  posted_.reserve(kRoom);
  running_.reserve(kRoom);
  timers.make_room(kRoom);
  make_room(0);
  if (workers == nullptr) workers = std::make_shared<WorkerPool>();
}

bool EpollLoop::Core::watch(int fd, Watched& watched) {
  make_room(watched_ + 1);
  epoll_event event{EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {}};
  event.data.ptr = &watched;
  if (epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &event) != 0) return false;
  ++watched_;
  return true;
}

// The lists of those who are to be told have room for so many descriptors, and for some that are no
// longer watched. Untouched, it costs addresses only.
void EpollLoop::Core::make_room(std::size_t count) {
  if (count + kRoom <= again_.capacity()) return;
  again_.reserve(2 * count + kRoom);
  due_.reserve(2 * count + kRoom);
}

void EpollLoop::Core::unwatch(int fd, Watched& watched) {
  // Of one that could not be watched there is nothing to end.
  if (epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, fd, nullptr) == 0) --watched_;
  forget(watched);
}

void EpollLoop::Core::forget(Watched& watched) {
  for (epoll_event& event : std::span(events_).first(found_))
    if (event.data.ptr == &watched) event.data.ptr = nullptr;
  if (std::exchange(watched.due_, 0) != 0) {
    std::replace(again_.begin(), again_.end(), &watched, static_cast<Watched*>(nullptr));
    due_.forget(&watched);
  }
  if (telling_ == &watched) telling_ = nullptr;
  if (latest_ == &watched) latest_ = nullptr;
}

void EpollLoop::Core::requeue_event(Watched& watched, std::uint32_t events) {
  if (watched.due_ == 0) again_.push_back(&watched);
  watched.due_ |= events;
}

// What is due in this turn: what was left by the last one, and what has happened since.
void EpollLoop::Core::collect() {
  for (Watched* const watched : again_)
    if (watched != nullptr) due_.add(watched);
  again_.clear();
  for (const epoll_event& event : std::span(events_).first(found_)) {
    auto* const watched = static_cast<Watched*>(event.data.ptr);
    if (watched == nullptr) continue;
    if (watched->due_ == 0) due_.add(watched);
    watched->due_ |= event.events;
  }
  found_ = 0;
}

[[gnu::always_inline]] inline void EpollLoop::Core::tell_due() {
  if (again_.size() + found_ <= 1) return tell_only();
  tell_in_order();
}

[[gnu::noinline]] void EpollLoop::Core::tell_in_order() {
  collect();
  crowded_ = due_.size() > 1;
  if (!crowded_) {
    if (!due_.empty()) tell(*due_.next());
    return;
  }
  due_.order([this](const Watched& watched) { return watched.usage->at(turn_began_); });
  const TimePoint end =
      turn_began_ + kSlice + static_cast<std::int64_t>(due_.size()) * kSlicePerWaiting;
  TimePoint now = turn_began_;
  while (!due_.empty()) {
    Watched* const watched = due_.next();
    if (watched == nullptr) continue;
    if (now > end) {
      again_.push_back(watched);
      continue;
    }
    // It may end the watching, and be gone.
    const std::shared_ptr<Usage> usage_of = watched->usage;
    const TimePoint before = std::exchange(now, (tell(*watched), clock_now()));
    usage_of->charge(now - before);
  }
}

// One or none, as in most turns.
[[gnu::always_inline]] inline void EpollLoop::Core::tell_only() {
  crowded_ = false;
  Watched* watched = nullptr;
  if (!again_.empty()) {
    watched = again_.front();
    again_.clear();
  } else if (std::exchange(found_, 0) != 0) {
    watched = static_cast<Watched*>(events_[0].data.ptr);
    if (watched != nullptr) watched->due_ = events_[0].events;
  }
  if (watched != nullptr) tell(*watched);
}

// The watcher that is told may end the watching of others, or its own.
[[gnu::always_inline]] inline void EpollLoop::Core::tell(Watched& watched) {
  const std::uint32_t events = std::exchange(watched.due_, 0);
  telling_ = &watched;
  if ((events & kReadable) != 0) call([&] { watched.on_readable(events); });
  if ((events & kWritable) != 0 && telling_ != nullptr) call([&] { watched.on_writable(events); });
  telling_ = nullptr;
}

void EpollLoop::Core::post(Function function) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(function));
  has_posted_.store(true, std::memory_order_release);
  if (asleep_) wake();
}

void EpollLoop::Core::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (asleep_) wake();
}

void EpollLoop::Core::wake() {
  asleep_ = false;
  const std::uint64_t one = 1;
  const ssize_t written = write(wakeup_.fd(), &one, sizeof one);
  STAG_CHECK(written == sizeof one || errno == EAGAIN);
}

inline void EpollLoop::Core::run_posted() {
  if (!has_posted_.load(std::memory_order_acquire)) return;
  {
    std::lock_guard lock(mutex_);
    std::swap(posted_, running_);
    has_posted_.store(false, std::memory_order_relaxed);
  }
  for (Function& function : running_) call(Function(std::move(function)));
  running_.clear();
}

inline void EpollLoop::Core::run_timers() {
  if (!timers.may_be_due(turn_began_)) return;
  const std::uint64_t newest = timers.newest();
  while (Function function = timers.take_due(turn_began_, newest)) call(function);
}

TimePoint EpollLoop::Core::now() const {
  // From elsewhere a turn's time cannot be looked at.
  if (thread.load(std::memory_order_relaxed) != std::this_thread::get_id()) return clock_now();
  return in_turn_ ? turn_began_ : clock_now();
}

void EpollLoop::Core::run() {
  const NeverCancelled never;
  in_turn_ = true;
  turn_began_ = clock_now();
  while (!stopped_.load(std::memory_order_relaxed)) turn();
  in_turn_ = false;
  stopped_ = false;
}

[[gnu::always_inline]] inline void EpollLoop::Core::turn() {
  run_posted();
  run_timers();
  if (stopped_.load(std::memory_order_relaxed)) return;
  wait();
  turn_began_ = clock_now();
  tell_due();
}

inline bool EpollLoop::Core::has_work() {
  if (!again_.empty() || has_posted_.load(std::memory_order_acquire)) return true;
  return stopped_.load(std::memory_order_relaxed) || timers.may_be_due(turn_began_);
}

inline void EpollLoop::Core::wait() {
  if (has_work()) {
    poll(0);
    return;
  }
  if (spin_policy.worthwhile()) {
    if (!may_read_first() && poll(0)) return;
    const bool something = spin_poll();
    spin_policy.found(something);
    if (something) return;
  }
  sleep();
}

// Where one descriptor alone has been bringing bytes, the question to epoll says nothing that a
// read does not say. It is asked once in a slice of time all the same, so that nobody waits for
// longer.
bool EpollLoop::Core::may_read_first() const {
  return latest_ != nullptr && turn_began_ - latest_since_ >= kSettled &&
         turn_began_ - asked_ < kSlice;
}

bool EpollLoop::Core::spin_poll() {
  turn_began_ = clock_now();
  const TimePoint end = turn_began_ + spin_policy.limit();
  do {
    if (try_latest() || poll(0) || has_work()) return true;
    turn_began_ = clock_now();
  } while (turn_began_ < end);
  return false;
}

// A connection that waits for an answer most often gets it from where the last one came: reading it
// at once saves the question whether it is there.
bool EpollLoop::Core::try_latest() {
  read_ = false;
  for (int i = 0; i < kTries && latest_ != nullptr && !read_; ++i) {
    const TimePoint then = clock_now() + kBeforeTry;
    while (clock_now() < then) continue;
    call([this] { latest_->try_reading(); });
  }
  return read_;
}

void EpollLoop::Core::sleep() {
  {
    std::lock_guard lock(mutex_);
    asleep_ = posted_.empty() && !stopped_;
    if (!asleep_) return;
  }
  poll(timeout_until(wake_time()));
  std::lock_guard lock(mutex_);
  asleep_ = false;
}

// Before it sleeps the loop gives memory back that has not been needed for a while, and it comes
// back to do so as long as there is some.
std::optional<TimePoint> EpollLoop::Core::wake_time() {
  const std::optional<TimePoint> timer = timers.earliest();
  if (kept_page_bytes() == 0) return timer;
  release_idle_pages(turn_began_);
  const TimePoint idle = turn_began_ + kIdleInterval;
  return timer ? std::min(*timer, idle) : idle;
}

// Whether there are events.
bool EpollLoop::Core::poll(int timeout_ms) {
  const int count = net::epoll_wait(epoll_.fd(), events_.data(), kEventsPerWait, timeout_ms);
  found_ = count < 0 ? 0 : static_cast<std::size_t>(count);
  asked_ = turn_began_;
  return found_ > 0;
}

bool EpollLoop::Core::offload(Executor& executor, Executor::Job&& job) {
  {
    std::lock_guard lock(mutex_);
    ++offloads_;
  }
  job.context = this;
  job.deliver = [](void* context, Function then) {
    Core& core = *static_cast<Core*>(context);
    core.post(std::move(then));
    core.end_offload();
  };
  if (executor.submit(std::move(job))) return true;
  end_offload();
  return false;
}

void EpollLoop::Core::end_offload() {
  std::lock_guard lock(mutex_);
  if (--offloads_ == 0) offload_ended_.notify_all();
}

void EpollLoop::Core::drop_functions() {
  std::unique_lock lock(mutex_);
  offload_ended_.wait(lock, [this] { return offloads_ == 0; });
  // Destroying a function may post or cancel again, so the queues are emptied while all of this
  // still stands.
  while (!posted_.empty()) {
    std::vector<Function> dropped = std::exchange(posted_, {});
    lock.unlock();
    dropped.clear();
    lock.lock();
  }
  lock.unlock();
  timers.clear();
}

}  // namespace stag::net
