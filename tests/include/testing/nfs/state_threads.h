// Threads that use one Clients and one Files at the same time.
#pragma once

#include <thread>
#include <vector>

namespace stag::nfs::state::testing {

constexpr int kThreads = 4;

// Calls work(0), work(1), ... each on a thread of its own, and waits for all.
template <class Work>
void on_threads(Work work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace stag::nfs::state::testing
