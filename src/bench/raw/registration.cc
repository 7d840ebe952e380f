#include "bench/raw/registration.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "fabric/verbs/registration_probe.h"
#include "fabric/verbs/verbs_functions.h"

namespace stag::bench {
namespace {

struct Size {
  const char* name;
  std::size_t bytes;
};
constexpr Size kSizes[] = {
    {"4k", 4 << 10}, {"16k", 16 << 10}, {"64k", 64 << 10}, {"256k", 256 << 10}, {"1m", 1024 << 10}};

// Microseconds of one `work`, as often as `seconds` allow.
template <class Work>
double time_of(double seconds, Work work) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration<double>(seconds);
  std::uint64_t times = 0;
  auto now = begin;
  do {
    work();
    ++times;
    now = Clock::now();
  } while (now < end);
  return std::chrono::duration<double, std::micro>(now - begin).count() /
         static_cast<double>(times);
}

// Memory that has its pages, and what is copied there.
struct Ranges {
  explicit Ranges(std::size_t bytes) : from(bytes, std::byte{1}), to(bytes, std::byte{2}) {}
  std::vector<std::byte> from, to;
};

}  // namespace

Result<std::vector<Row>, std::string> measure_registration(
    const Sampling& sampling, const std::function<bool(MutableBytes)>& once) {
  std::vector<Row> rows;
  for (const Size& size : kSizes) {
    Ranges ranges(size.bytes);
    if (!once(ranges.to))
      return Failure{fmt::format("{} bytes cannot be registered at the RDMA device", size.bytes)};
    std::vector<double> registered, copied;
    for (unsigned i = 0; i < sampling.samples; ++i) {
      // Shorter than a sample of a figure: nothing here waits for another process.
      registered.push_back(time_of(sampling.seconds / 8, [&] { once(ranges.to); }));
      copied.push_back(time_of(sampling.seconds / 8, [&] {
        std::memcpy(ranges.to.data(), ranges.from.data(), size.bytes);
        asm volatile("" : : "r"(ranges.to.data()) : "memory");
      }));
    }
    Row row{std::string("register_") + size.name, "us", Measured::of(registered)};
    row.reference = Measured::of(copied);
    row.samples = sampling.samples;
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<Row>, std::string> measure_registration(const Sampling& sampling,
                                                           const std::string& address) {
  const auto functions = fabric::load_verbs();
  if (!functions) return Failure{std::string(info(functions.error()).text)};
  const auto probe = fabric::RegistrationProbe::open(*functions, {address, 0});
  if (!probe) return Failure{std::string(info(probe.error()).text)};
  return measure_registration(sampling, [&](MutableBytes memory) { return probe->once(memory); });
}

std::string crossover(const std::vector<Row>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (std::any_of(rows.begin() + static_cast<std::ptrdiff_t>(i), rows.end(),
                    [](const Row& row) { return row.ratio() >= 1; }))
      continue;
    return fmt::format(
        "{}: from this size on registering memory for a call costs less than "
        "copying (the reference of the register rows)",
        rows[i].name);
  }
  return "at no size up to 1 MiB registering memory for a call costs less than copying (the "
         "reference of the register rows)";
}

}  // namespace stag::bench
