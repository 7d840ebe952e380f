// READ, alone and in bulk. A bulk read keeps a queue of READs in the order of their offsets: the
// oldest is delivered to the sink while the others are on their way.
#include <algorithm>
#include <deque>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <utility>
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

// Several parts of a file, as many by one call as the protocol takes.
class SeveralReader {
 public:
  struct Limits {
    std::size_t reads = 1;     // of a call
    std::uint64_t bytes = 0;   // of a call; no part is larger
    std::uint32_t window = 1;  // calls in flight
  };
  SeveralReader(Protocol& protocol, const File& file, std::vector<ReadRange> ranges,
                const Limits& limits)
      : protocol_(protocol),
        file_(file),
        ranges_(std::move(ranges)),
        limits_(limits),
        parts_(ranges_.size()) {}

  Task<Outcome<std::vector<ReadPart>>> run() {
    co_await joined(group_, ask_for_all());
    if (exception_) std::rethrow_exception(exception_);
    if (failure_) co_return Failure{*failure_};
    co_return std::move(parts_);
  }

 private:
  Task<Ok> ask_for_all() {
    std::size_t begin = 0;
    while (begin < ranges_.size() && !failure_ && !exception_) {
      const std::size_t end = end_of_call(begin);
      group_.add(ask(begin, end));
      begin = end;
      co_await group_.at_most(limits_.window - 1);
    }
    co_return Ok{};
  }

  // A READ of nothing goes alone: it takes a Write chunk, and no memory to place anything in.
  std::size_t end_of_call(std::size_t begin) const {
    std::size_t end = begin;
    std::uint64_t bytes = 0;
    do {
      bytes += ranges_[end++].to.size();
    } while (end < ranges_.size() && end - begin < limits_.reads && bytes != 0 &&
             !ranges_[end].to.empty() && bytes + ranges_[end].to.size() <= limits_.bytes);
    return end;
  }

  Task<void> ask(std::size_t begin, std::size_t end) {
    try {
      const std::span<const ReadRange> these(&ranges_[begin], end - begin);
      const Outcome<std::vector<ReadPart>> came = co_await protocol_.read_several(
          kReading, file_, std::vector<ReadRange>(these.begin(), these.end()));
      if (came)
        std::copy(came->begin(), came->end(), parts_.begin() + static_cast<std::ptrdiff_t>(begin));
      else
        failure_ = came.error();
    } catch (...) {
      exception_ = std::current_exception();
    }
  }

  Protocol& protocol_;
  const File file_;
  const std::vector<ReadRange> ranges_;
  const Limits limits_;
  std::vector<ReadPart> parts_;
  std::optional<Error> failure_;
  std::exception_ptr exception_;
  TaskGroup group_;
};

}  // namespace

Task<Outcome<std::vector<ReadPart>>> FileSystem::read_several(File file,
                                                              std::vector<ReadRange> ranges) {
  for (ReadRange& each : ranges)
    each.to = each.to.first(std::min<std::size_t>(each.to.size(), sizes_.read));
  SeveralReader reader(*protocol_, file, std::move(ranges),
                       {protocol_->reads_at_once(), sizes_.read, options_.window});
  co_return co_await reader.run();
}

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
