// READ, alone and in bulk. A bulk read keeps a queue of READs in the order of their offsets: the
// oldest is delivered to the sink while the others are on their way.
#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <limits>
#include <optional>
#include <vector>

#include "base/completion.h"
#include "base/task_group.h"
#include "nfs/client/file_system.h"
#include "nfs/client/protocol/protocol.h"

namespace stag::nfs::client {
namespace {

constexpr OperationContext kReading{"read the file", {}};
// Bytes to ask for beyond the expected end of the file.
constexpr std::uint32_t kProbeSize = 64u << 10;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t expected_end = 0;  // several operations are in flight up to here
  std::uint64_t limit = kNoLimit;  // never read beyond
};

class BulkReader {
 public:
  BulkReader(FileSystem& files, const Handle& file, DataSink& sink, const Range& range,
             std::uint32_t window)
      : files_(files),
        file_(file),
        sink_(sink),
        range_(range),
        window_(window),
        next_(range.begin) {}

  // Also the READs behind an error write to the memory: the caller gets it back after they have
  // ended.
  Task<Outcome<std::uint64_t>> run() { return joined(group_, deliver_all()); }

 private:
  struct PendingRead {
    std::uint64_t offset = 0;
    Block block{};
    MutableBytes buffer{};
    std::exception_ptr exception{};
    Completion<Outcome<ReadPart>> done{};
  };

  Task<Outcome<std::uint64_t>> deliver_all() {
    std::uint64_t total = 0;
    for (;;) {
      while (worthwhile()) launch();
      if (in_flight_.empty()) co_return total;
      PendingRead& oldest = in_flight_.front();
      const Outcome<ReadPart> part = co_await oldest.done;
      if (oldest.exception) std::rethrow_exception(oldest.exception);
      if (!part) co_return Failure{part.error()};
      if (part->count > 0) {
        const Outcome<Ok> taken =
            co_await sink_.write(oldest.offset, Bytes(oldest.buffer).first(part->count));
        if (!taken) co_return Failure{taken.error()};
      }
      total += part->count;
      if (part->eof) co_return total;
      if (oldest.block) spare_.push_back(std::move(oldest.block));
      in_flight_.pop_front();
    }
  }

  bool worthwhile() const {
    if (next_ >= range_.limit) return false;
    return in_flight_.empty() || (in_flight_.size() < window_ && next_ < range_.expected_end);
  }

  void launch() {
    const bool expected = next_ < range_.expected_end;
    const std::uint64_t wanted = expected ? range_.expected_end - next_ : kProbeSize;
    const std::uint64_t most = std::min<std::uint64_t>(files_.sizes().read, range_.limit - next_);
    const auto length = static_cast<std::uint32_t>(std::min(wanted, most));
    PendingRead& pending = in_flight_.emplace_back();
    pending.offset = next_;
    const MutableBytes lent = sink_.buffer(next_, length);
    if (lent.empty()) pending.block = spare_block(length);
    pending.buffer = lent.empty() ? pending.block.bytes().first(length)
                                  : lent.first(std::min<std::size_t>(lent.size(), length));
    next_ += pending.buffer.size();
    group_.add(fill(pending));
  }

  Block spare_block(std::uint32_t length) {
    while (!spare_.empty()) {
      Block block = std::move(spare_.back());
      spare_.pop_back();
      if (block.capacity() >= length) return block;
    }
    return Block::allocate(length);
  }

  // `pending` may be gone when complete() returns.
  Task<void> fill(PendingRead& pending) {
    std::optional<Outcome<ReadPart>> part;
    try {
      part.emplace(co_await filled(pending));
    } catch (...) {
      pending.exception = std::current_exception();
    }
    pending.done.complete(part ? *std::move(part) : ReadPart{});
  }

  Task<Outcome<ReadPart>> filled(const PendingRead& pending) {
    ReadPart total;
    while (total.count < pending.buffer.size() && !total.eof) {
      const Outcome<ReadPart> part = co_await files_.read(file_, pending.offset + total.count,
                                                          pending.buffer.subspan(total.count));
      if (!part) co_return Failure{part.error()};
      if (part->count == 0 && !part->eof)
        co_return Failure{
            Error::of_protocol(kReading, "sent neither data nor the end of the file")};
      total.count += part->count;
      total.eof = part->eof;
    }
    co_return total;
  }

  FileSystem& files_;
  const Handle file_;
  DataSink& sink_;
  const Range range_;
  const std::uint32_t window_;
  std::uint64_t next_;                 // where the next READ starts
  std::deque<PendingRead> in_flight_;  // in order of their offsets; addresses stay
  std::vector<Block> spare_;
  TaskGroup group_;
};

}  // namespace

Task<Outcome<ReadPart>> FileSystem::read(File file, std::uint64_t offset, MutableBytes to) {
  return protocol_->read(kReading, file, offset,
                         to.first(std::min<std::size_t>(to.size(), sizes_.read)));
}

Task<Outcome<std::uint64_t>> FileSystem::read_file(Handle file, DataSink& sink,
                                                   std::optional<std::uint64_t> size) {
  if (!size) {
    const Outcome<Attributes> attributes = co_await getattr(file);
    if (!attributes) co_return Failure{attributes.error()};
    size = attributes->size;
  }
  Range range;
  range.expected_end = *size;
  BulkReader reader(*this, file, sink, range, options_.window);
  co_return co_await reader.run();
}

Task<Outcome<std::uint64_t>> FileSystem::read_into(Handle file, std::uint64_t offset,
                                                   MutableBytes to) {
  MemorySink sink(to, offset);
  Range range;
  range.begin = offset;
  range.limit = offset + std::min<std::uint64_t>(to.size(), kNoLimit - offset);
  range.expected_end = range.limit;
  BulkReader reader(*this, file, sink, range, options_.window);
  co_return co_await reader.run();
}

}  // namespace stag::nfs::client
