#include "endpoint/loops.h"

#include "net/worker_pool.h"

namespace stag::endpoint {
namespace {

net::LoopOptions options_of_all(std::uint32_t busy_poll_us) {
  net::LoopOptions options;
  options.busy_poll_us = busy_poll_us;
  options.workers = std::make_shared<net::WorkerPool>();
  return options;
}

}  // namespace

Loops::Loops(std::size_t count, std::uint32_t busy_poll_us) {
  STAG_CHECK(count > 0);
  const net::LoopOptions options = options_of_all(busy_poll_us);
  for (std::size_t i = 0; i < count; ++i)
    threads_.push_back(std::make_unique<net::LoopThread>(options));
}

Result<std::shared_ptr<Loops>, Reason> Loops::start(std::size_t count, std::uint32_t busy_poll_us) {
  STAG_CHECK(count > 0);
  const net::LoopOptions options = options_of_all(busy_poll_us);
  std::vector<std::unique_ptr<net::LoopThread>> threads;
  for (std::size_t i = 0; i < count; ++i) {
    auto thread = net::LoopThread::start(options);
    if (!thread) return Failure{thread.error()};
    threads.push_back(*std::move(thread));
  }
  return std::shared_ptr<Loops>(new Loops(std::move(threads)));
}

std::vector<net::EpollLoop*> Loops::all() const {
  std::vector<net::EpollLoop*> loops;
  for (const std::unique_ptr<net::LoopThread>& thread : threads_) loops.push_back(&thread->loop());
  return loops;
}

}  // namespace stag::endpoint
