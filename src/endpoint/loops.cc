#include "endpoint/loops.h"

#include "net/worker_pool.h"

namespace stag::endpoint {

Loops::Loops(std::size_t count, std::uint32_t busy_poll_us) {
  STAG_CHECK(count > 0);
  net::LoopOptions options;
  options.busy_poll_us = busy_poll_us;
  options.workers = std::make_shared<net::WorkerPool>();
  for (std::size_t i = 0; i < count; ++i)
    threads_.push_back(std::make_unique<net::LoopThread>(options));
}

std::vector<net::EpollLoop*> Loops::all() const {
  std::vector<net::EpollLoop*> loops;
  for (const std::unique_ptr<net::LoopThread>& thread : threads_) loops.push_back(&thread->loop());
  return loops;
}

}  // namespace stag::endpoint
