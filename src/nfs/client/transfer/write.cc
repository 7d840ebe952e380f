// WRITE and COMMIT, alone and in bulk. A bulk write sends unstable WRITEs, several at a time, and
// commits once; the write verifier shows whether the server still has all of them (RFC 1813 3.3.7).
// If it does not, all data is read from the source and written again.
#include <algorithm>
#include <exception>
#include <set>
#include <vector>

#include "base/task_group.h"
#include "nfs/client/file_system.h"
#include "nfs/client/protocol/protocol.h"

namespace stag::nfs::client {
namespace {

constexpr OperationContext kWriting{"write the file", {}};
// Restarts of the server that one bulk write survives.
constexpr int kMaxPasses = 5;

class BulkWriter {
 public:
  BulkWriter(FileSystem& files, const Handle& file, DataSource& source, std::uint64_t begin,
             std::uint32_t window)
      : files_(files), file_(file), source_(source), begin_(begin), window_(window) {}

  Task<Outcome<std::uint64_t>> run() {
    for (int pass = 0; pass < kMaxPasses; ++pass) {
      co_await joined(group_, send_all());
      if (exception_) std::rethrow_exception(exception_);
      if (failure_) co_return Failure{*failure_};
      const Outcome<bool> safe = co_await made_safe();
      if (!safe) co_return Failure{safe.error()};
      if (!*safe) continue;
      if (!ends_in_hole_) co_return next_ - begin_;
      SetAttributes size;
      size.size = next_;
      const Outcome<Ok> set = co_await files_.setattr(file_, size);
      if (!set) co_return Failure{set.error()};
      co_return next_ - begin_;
    }
    co_return Failure{Error::of_protocol(kWriting,
                                         "lost the data again and again before it was "
                                         "on disk; look why it restarts")};
  }

 private:
  // One WRITE's worth of data; `block` is empty when the source lent it.
  struct PendingWrite {
    std::uint64_t offset = 0;
    Bytes data{};
    Block block{};
  };

  // One pass over the source. Ends early when it has failed or is in vain.
  Task<Ok> send_all() {
    next_ = begin_;
    verifier_.reset();
    lost_ = false;
    bool first = true;
    std::optional<PendingWrite> pending = co_await next_write();
    while (pending && !in_vain()) {
      std::optional<PendingWrite> following = co_await next_write();
      // One that is all there is needs no COMMIT.
      const Stability stable = first && !following ? Stability::FileSync : Stability::Unstable;
      first = false;
      co_await room_for(*pending);
      if (in_vain()) break;
      group_.add(send(std::move(*pending), stable));
      pending = std::move(following);
    }
    co_return Ok{};
  }
  bool in_vain() const { return failure_ || exception_ || lost_; }

  // A program that resumes an interrupted transfer takes the data before two windows from the end
  // for complete: a hole that is passed over, or a WRITE that takes long, must not let others get
  // further ahead than that.
  Task<void> room_for(const PendingWrite& next) {
    co_await group_.at_most(window_ - 1);
    const std::uint64_t end = next.offset + next.data.size();
    const std::uint64_t reach = std::uint64_t{2} * window_ * files_.sizes().write;
    while (!in_flight_.empty() && end - *in_flight_.begin() > reach)
      co_await group_.at_most(group_.running() - 1);
  }

  Task<std::optional<PendingWrite>> next_write() {
    PendingWrite pending;
    pending.block = spare_block();
    const MutableBytes buffer = pending.block.bytes().first(files_.sizes().write);
    const Outcome<DataSource::Piece> piece = co_await source_.read(next_, buffer);
    if (!piece) {
      fail(piece.error());
      co_return std::nullopt;
    }
    next_ += piece->hole;
    ends_in_hole_ = piece->hole > 0 && piece->data.empty();
    pending.offset = next_;
    pending.data = piece->data;
    next_ += pending.data.size();
    if (pending.data.data() != buffer.data()) spare_.push_back(std::move(pending.block));
    if (pending.data.empty()) co_return std::nullopt;
    co_return pending;
  }

  Task<void> send(PendingWrite pending, Stability stable) {
    const std::uint64_t begin = pending.offset;
    try {
      in_flight_.insert(begin);
      co_await write(pending, stable);
      if (pending.block) spare_.push_back(std::move(pending.block));
    } catch (...) {
      exception_ = std::current_exception();
    }
    in_flight_.erase(begin);
  }

  Task<void> write(PendingWrite& pending, Stability stable) {
    while (!pending.data.empty() && !failure_ && !exception_) {
      const Outcome<WritePart> part =
          co_await files_.write(file_, pending.offset, pending.data, stable);
      if (!part) {
        fail(part.error());
        break;
      }
      note(*part);
      pending.offset += part->count;
      pending.data = pending.data.subspan(part->count);
    }
  }

  void note(const WritePart& part) {
    if (part.committed != Stability::Unstable) return;
    if (verifier_ && *verifier_ != part.verifier) lost_ = true;
    verifier_ = part.verifier;
  }

  // False: unstable data is lost.
  Task<Outcome<bool>> made_safe() {
    if (lost_) co_return false;
    if (!verifier_) co_return true;
    const Outcome<Verifier> committed = co_await files_.commit(file_);
    if (!committed) co_return Failure{committed.error()};
    co_return *committed == *verifier_;
  }

  void fail(const Error& error) {
    if (!failure_) failure_ = error;
  }

  Block spare_block() {
    if (spare_.empty()) return Block::allocate(files_.sizes().write);
    Block block = std::move(spare_.back());
    spare_.pop_back();
    return block;
  }

  FileSystem& files_;
  const Handle file_;
  DataSource& source_;
  const std::uint64_t begin_;
  const std::uint32_t window_;
  std::uint64_t next_ = 0;            // offset of the next piece of the source
  std::optional<Verifier> verifier_;  // of unstable WRITEs of this pass
  bool lost_ = false;
  bool ends_in_hole_ = false;
  std::optional<Error> failure_;       // the first
  std::exception_ptr exception_;       // of a WRITE
  std::set<std::uint64_t> in_flight_;  // where these WRITEs begin
  std::vector<Block> spare_;
  TaskGroup group_;
};

}  // namespace

Task<Outcome<WritePart>> FileSystem::write(File file, std::uint64_t offset, Bytes data,
                                           Stability stable) {
  return protocol_->write(kWriting, file, offset,
                          data.first(std::min<std::size_t>(data.size(), sizes_.write)), stable);
}

Task<Outcome<Verifier>> FileSystem::commit(Handle file, std::uint64_t offset, std::uint32_t count) {
  return protocol_->commit({"put the file on the server's disk", {}}, file, offset, count);
}

Task<Outcome<std::uint64_t>> FileSystem::write_file(Handle file, DataSource& source,
                                                    std::uint64_t offset) {
  BulkWriter writer(*this, file, source, offset, options_.window);
  co_return co_await writer.run();
}

Task<Outcome<std::uint64_t>> FileSystem::write_from(Handle file, std::uint64_t offset, Bytes from) {
  MemorySource source(from, offset);
  co_return co_await write_file(file, source, offset);
}

}  // namespace stag::nfs::client
