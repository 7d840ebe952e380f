#include "bench/counters.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace stag::bench {
namespace {

// The trace point's number on this kernel; 0 when it cannot be read.
std::uint64_t system_call_tracepoint() {
  for (const char* folder : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    std::ifstream file(std::string(folder) + "/events/raw_syscalls/sys_enter/id");
    std::uint64_t id = 0;
    if (file >> id) return id;
  }
  return 0;
}

net::UniqueFd counter(pid_t thread, std::uint32_t type, std::uint64_t config) {
  perf_event_attr event{};
  event.size = sizeof event;
  event.type = type;
  event.config = config;
  return net::UniqueFd(
      static_cast<int>(syscall(SYS_perf_event_open, &event, thread, -1, -1, PERF_FLAG_FD_CLOEXEC)));
}

std::uint64_t sum(const std::vector<net::UniqueFd>& counters) {
  std::uint64_t total = 0, count = 0;
  for (const net::UniqueFd& each : counters)
    if (::read(each.fd(), &count, sizeof count) == sizeof count) total += count;
  return total;
}

}  // namespace

Counters::Counters(std::initializer_list<pid_t> processes) {
  const std::uint64_t tracepoint = system_call_tracepoint();
  refused_ = tracepoint == 0;
  std::error_code gone;
  for (const pid_t process : processes) {
    const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks, gone))
      if (!refused_) add(std::atoi(task.path().filename().c_str()), tracepoint);
  }
}

void Counters::add(pid_t thread, std::uint64_t tracepoint) {
  system_calls_.push_back(counter(thread, PERF_TYPE_TRACEPOINT, tracepoint));
  switches_.push_back(counter(thread, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES));
  refused_ = !system_calls_.back() || !switches_.back();
}

std::optional<Counters::Counts> Counters::read() const {
  if (refused_ || system_calls_.empty()) return std::nullopt;
  return Counts{sum(system_calls_), sum(switches_)};
}

}  // namespace stag::bench
