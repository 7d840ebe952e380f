// Record marking: fed whole and fed octet by octet, a stream yields the same records or the same
// failure.
#include <vector>

#include "input.h"
#include "oncrpc/record.h"

using namespace stag;

namespace {

struct Outcome {
  std::vector<std::vector<std::byte>> records;
  std::optional<Reason> failure;
  bool operator==(const Outcome&) const = default;
};

Outcome read_stream(Bytes stream, std::size_t portion) {
  oncrpc::RecordReader reader({.record = 4096, .fragments = 8});
  Outcome outcome;
  while (!stream.empty()) {
    Bytes part = stream.first(std::min(portion, stream.size()));
    stream = stream.subspan(part.size());
    while (!part.empty()) {
      Result<std::size_t, Reason> used = reader.feed(part);
      if (!used) return outcome.failure = used.error(), outcome;
      part = part.subspan(*used);
      if (!reader.complete()) continue;
      const Buffer record = reader.take();
      STAG_CHECK(record.size() <= 4096);
      outcome.records.emplace_back(record.bytes().begin(), record.bytes().end());
    }
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes stream = fuzz::Input(data, size).rest();
  const Outcome whole = read_stream(stream, stream.size() + 1);
  STAG_CHECK(whole == read_stream(stream, 1));
  return 0;
}
