#include "net/loop.h"

#include <future>
#include <utility>

#include "net/blocked_signals.h"
#include "net/loop_core.h"

namespace stag::net {
namespace {

TimePoint clock_now() {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

}  // namespace

AsioLoop::Core::Core(LoopOptions options)
    : patience(std::chrono::microseconds(options.busy_poll_us)),
      workers(std::move(options.workers)) {
  if (workers == nullptr) workers = std::make_shared<WorkerPool>();
}

void AsioLoop::Core::drop_functions() {
  std::unique_lock lock(mutex);
  offload_ended.wait(lock, [this] { return offloads == 0; });
  // Destroying a function may post or cancel again, so the queues are emptied while all of this
  // still stands.
  while (!posted.empty()) {
    std::vector<Function> dropped = std::exchange(posted, {});
    lock.unlock();
    dropped.clear();
    lock.lock();
  }
  lock.unlock();
  timers.clear();
}

void AsioLoop::Core::post(Function function) {
  bool schedule = false;
  {
    std::lock_guard lock(mutex);
    posted.push_back(std::move(function));
    schedule = !std::exchange(run_scheduled, true);
  }
  if (schedule) asio::post(io, [this] { run_posted(); });
}

void AsioLoop::Core::run_posted() {
  {
    std::lock_guard lock(mutex);
    std::swap(posted, running);
    run_scheduled = false;
  }
  for (Function& function : running) Function(std::move(function))();
  running.clear();
}

void AsioLoop::Core::arm(TimePoint when) {
  // A wake-up that comes too early is cheaper than moving it for every timer that is cancelled in
  // time.
  if (armed && *armed <= when) return;
  armed = when;
  wakeup.expires_at(when);
  wakeup.async_wait([this](const asio::error_code& error) {
    if (!error) run_timers();
  });
}

void AsioLoop::Core::run_timers() {
  armed.reset();
  const TimePoint now = clock_now();
  const std::uint64_t newest = timers.newest();
  while (Function function = timers.take_due(now, newest)) function();
  if (const auto next = timers.earliest()) arm(*next);
}

void AsioLoop::Core::run() {
  while (!io.stopped()) {
    if (!patience.worthwhile()) {
      io.run_one();
    } else if (io.poll() == 0) {
      const bool found = look_for_events();
      patience.found(found);
      if (!found) io.run_one();
    }
  }
}

bool AsioLoop::Core::look_for_events() {
  const TimePoint end = clock_now() + patience.limit();
  while (!io.stopped()) {
    if (io.poll() != 0) return true;
    if (clock_now() >= end) return false;
  }
  return true;
}

void AsioLoop::Core::offload(Function work, Function done) {
  {
    std::lock_guard lock(mutex);
    ++offloads;
  }
  workers->submit(
      std::move(work),
      [](void* context, Function then) {
        Core& core = *static_cast<Core*>(context);
        core.post(std::move(then));
        std::lock_guard lock(core.mutex);
        if (--core.offloads == 0) core.offload_ended.notify_all();
      },
      this, std::move(done));
}

AsioLoop::AsioLoop(LoopOptions options) : core_(std::make_unique<Core>(std::move(options))) {}

AsioLoop::~AsioLoop() {
  core_->drop_functions();
}

void AsioLoop::run() {
  core_->thread = std::this_thread::get_id();
  const auto keep_running = asio::make_work_guard(core_->io);
  core_->run();
  core_->io.restart();
}

void AsioLoop::stop() {
  core_->io.stop();
}

TimePoint AsioLoop::now() const {
  return clock_now();
}

void AsioLoop::post(Function function) {
  core_->post(std::move(function));
}

Timer AsioLoop::after(Duration delay, Function function) {
  CHECK(on_thread());
  const TimePoint when = clock_now() + delay;
  const std::uint64_t id = core_->timers.add(when, std::move(function));
  core_->arm(when);
  return Timer(this, id);
}

void AsioLoop::cancel_timer(std::uint64_t id) {
  core_->timers.cancel(id);
}

void AsioLoop::offload(Function work, Function done) {
  core_->offload(std::move(work), std::move(done));
}

bool AsioLoop::on_thread() const {
  return core_->thread.load() == std::this_thread::get_id();
}

LoopThread::LoopThread(LoopOptions options)
    : loop_(std::make_unique<AsioLoop>(std::move(options))) {
  std::promise<void> started;
  const BlockedSignals blocked;
  thread_ = std::thread([this, &started] {
    loop_->post([&started] { started.set_value(); });
    loop_->run();
  });
  started.get_future().wait();
}

LoopThread::~LoopThread() {
  // Posted, so that what was posted before still runs.
  loop_->post([this] { loop_->stop(); });
  thread_.join();
}

}  // namespace stag::net
