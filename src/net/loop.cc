#include "net/loop.h"

#include <future>
#include <system_error>
#include <utility>

#include "base/failure.h"
#include "base/loop_thread.h"
#include "net/blocked_signals.h"
#include "net/loop_core.h"

namespace stag::net {

EpollLoop::EpollLoop(std::unique_ptr<Core> core) : core_(std::move(core)) {}

EpollLoop::EpollLoop(LoopOptions options) : EpollLoop(Core::make(std::move(options)).value()) {}

Result<std::unique_ptr<EpollLoop>, Reason> EpollLoop::make(LoopOptions options) {
  auto core = Core::make(std::move(options));
  if (!core) return Failure{core.error()};
  return std::unique_ptr<EpollLoop>(new EpollLoop(*std::move(core)));
}

EpollLoop::~EpollLoop() {
  core_->drop_functions();
}

void EpollLoop::run() {
  const LoopOnThread here;
  core_->thread = std::this_thread::get_id();
  core_->run();
}

void EpollLoop::stop() {
  core_->stop();
}

TimePoint EpollLoop::now() const {
  return core_->now();
}

void EpollLoop::post(Function function) {
  core_->post(std::move(function));
}

Timer EpollLoop::after(Duration delay, Function function) {
  STAG_CHECK(on_thread());
  return Timer(this, core_->timers.add(core_->now() + delay, std::move(function)));
}

void EpollLoop::cancel_timer(std::uint64_t id) {
  core_->timers.cancel(id);
}

void EpollLoop::offload(Function work, Function done) {
  Executor::Job job{std::move(work), std::move(done)};
  // Neither refused nor given back.
  job.must_run = true;
  if (core_->offload(*core_->workers, std::move(job))) return;
  // The system has neither a thread nor memory for another one: the work is done here.
  try {
    job.work();
  } catch (...) {
    trace_exception(Reason::TaskFailed, "worker");
  }
  core_->post(std::move(job.done));
}

bool EpollLoop::offload_to(Executor& executor, const void* client, std::uint64_t bytes,
                           Function work, Function done) {
  Executor::Job job{std::move(work), std::move(done)};
  job.client = client;
  job.bytes = bytes;
  return core_->offload(executor, std::move(job));
}

bool EpollLoop::on_thread() const {
  return core_->thread.load() == std::this_thread::get_id();
}

LoopThread::LoopThread(LoopOptions options)
    : LoopThread(std::make_unique<EpollLoop>(std::move(options))) {}

Result<std::unique_ptr<LoopThread>, Reason> LoopThread::start(LoopOptions options) {
  auto loop = EpollLoop::make(std::move(options));
  if (!loop) return Failure{loop.error()};
  try {
    return std::unique_ptr<LoopThread>(new LoopThread(*std::move(loop)));
  } catch (const std::system_error&) {
    return Failure{Reason::TooManyThreads};
  }
}

LoopThread::LoopThread(std::unique_ptr<EpollLoop> loop) : loop_(std::move(loop)) {
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
