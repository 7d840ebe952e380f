#include "bench/load/counters.h"

#include <dlfcn.h>
#include <link.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace stag::bench {
namespace {

// 0 when it cannot be read.
std::uint64_t number_in(const std::string& path) {
  std::uint64_t number = 0;
  std::ifstream(path) >> number;
  return number;
}

// The trace point's number on this kernel; 0 when there is none for us.
std::uint64_t system_call_tracepoint() {
  for (const char* folder : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"})
    if (const std::uint64_t id =
            number_in(std::string(folder) + "/events/raw_syscalls/sys_enter/id"))
      return id;
  return 0;
}

UniqueFd counter(pid_t thread, perf_event_attr event) {
  event.size = sizeof event;
  return UniqueFd(
      static_cast<int>(syscall(SYS_perf_event_open, &event, thread, -1, -1, PERF_FLAG_FD_CLOEXEC)));
}

UniqueFd counter(pid_t thread, std::uint32_t type, std::uint64_t config) {
  perf_event_attr event{};
  event.type = type;
  event.config = config;
  return counter(thread, event);
}

// An address in the file it was loaded from, which is how the kernel knows a probe.
struct CodePlace {
  std::uintptr_t address = 0;
  std::string file{};
  std::uint64_t offset = 0;
};

int look_in(dl_phdr_info* object, std::size_t, void* data) {
  auto& place = *static_cast<CodePlace*>(data);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || place.address - begin >= segment.p_memsz) continue;
    // The program itself has no name there.
    place.file = *object->dlpi_name == 0 ? "/proc/self/exe" : object->dlpi_name;
    place.offset = place.address - begin + segment.p_offset;
    return 1;
  }
  return 0;
}

// At every call of malloc() in the thread.
UniqueFd allocation_probe(pid_t thread) {
  CodePlace place{reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, "malloc"))};
  dl_iterate_phdr(look_in, &place);
  perf_event_attr event{};
  event.type = static_cast<std::uint32_t>(number_in("/sys/bus/event_source/devices/uprobe/type"));
  event.config1 = reinterpret_cast<std::uintptr_t>(place.file.c_str());
  event.config2 = place.offset;
  return event.type == 0 ? UniqueFd() : counter(thread, event);
}

std::uint64_t sum(const std::vector<UniqueFd>& counters) {
  std::uint64_t total = 0, count = 0;
  for (const UniqueFd& each : counters)
    if (::read(each.fd(), &count, sizeof count) == sizeof count) total += count;
  return total;
}

}  // namespace

Counters::Counters(std::initializer_list<pid_t> processes, bool allocations)
    : allocations_wanted_(allocations) {
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
  if (!allocations_wanted_) return;
  allocations_.push_back(allocation_probe(thread));
  allocations_wanted_ = static_cast<bool>(allocations_.back());
}

std::optional<Counters::Counts> Counters::read() const {
  if (refused_ || system_calls_.empty()) return std::nullopt;
  Counts counts{sum(system_calls_), sum(switches_)};
  if (allocations_wanted_) counts.allocations = sum(allocations_);
  return counts;
}

}  // namespace stag::bench
