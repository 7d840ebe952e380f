// WRITE and COMMIT, alone and in bulk. A bulk write sends unstable WRITEs, several at a time, and
// commits once; the write verifier tells whether the server still has all of them (RFC 1813 3.3.7).
// When it does not, everything is read from the source and written again.
#include <algorithm>
#include <vector>

#include "base/task_group.h"
#include "nfs/client/file_system.h"

namespace stag::nfs::client {
namespace {

constexpr Doing kWriting{"write the file", {}};
// Restarts of the server that one bulk write survives.
constexpr int kMaxPasses = 5;

class Writing {
 public:
  Writing(FileSystem& files, const Handle& file, DataSource& source, std::uint64_t begin,
          std::uint32_t window)
      : files_(files), file_(file), source_(source), begin_(begin), window_(window) {}

  Task<Outcome<std::uint64_t>> run() {
    for (int pass = 0; pass < kMaxPasses; ++pass) {
      co_await send_all();
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
  struct Load {
    std::uint64_t offset = 0;
    Bytes data{};
    Block block{};
  };

  // One pass over the source. Ends early when it has failed or is in vain.
  Task<void> send_all() {
    next_ = begin_;
    verifier_.reset();
    lost_ = false;
    bool first = true;
    std::optional<Load> load = co_await next_load();
    while (load && !failure_ && !lost_) {
      std::optional<Load> following = co_await next_load();
      // One that is all there is needs no COMMIT.
      const v3::stable_how stable = first && !following ? v3::FILE_SYNC : v3::UNSTABLE;
      first = false;
      co_await group_.at_most(window_ - 1);
      group_.add(fly(std::move(*load), stable));
      load = std::move(following);
    }
    co_await group_.join();
  }

  Task<std::optional<Load>> next_load() {
    Load load;
    load.block = spare_block();
    const MutableBytes room = load.block.bytes().first(files_.sizes().write);
    const Outcome<DataSource::Piece> piece = co_await source_.read(next_, room);
    if (!piece) {
      fail(piece.error());
      co_return std::nullopt;
    }
    next_ += piece->hole;
    ends_in_hole_ = piece->hole > 0 && piece->data.empty();
    load.offset = next_;
    load.data = piece->data;
    next_ += load.data.size();
    if (load.data.data() != room.data()) spare_.push_back(std::move(load.block));
    if (load.data.empty()) co_return std::nullopt;
    co_return load;
  }

  Task<void> fly(Load load, v3::stable_how stable) {
    while (!load.data.empty() && !failure_) {
      const Outcome<FileSystem::WritePart> part =
          co_await files_.write(file_, load.offset, load.data, stable);
      if (!part) {
        fail(part.error());
        break;
      }
      note(*part);
      load.offset += part->count;
      load.data = load.data.subspan(part->count);
    }
    if (load.block) spare_.push_back(std::move(load.block));
  }

  void note(const FileSystem::WritePart& part) {
    if (part.committed != v3::UNSTABLE) return;
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
  std::uint64_t next_ = 0;            // what the source gives next
  std::optional<Verifier> verifier_;  // of unstable WRITEs of this pass
  bool lost_ = false;
  bool ends_in_hole_ = false;
  std::optional<Error> failure_;  // the first
  std::vector<Block> spare_;
  TaskGroup group_;
};

}  // namespace

Task<Outcome<FileSystem::WritePart>> FileSystem::write(Handle file, std::uint64_t offset,
                                                       Bytes data, v3::stable_how stable) {
  const Bytes part = data.first(std::min<std::size_t>(data.size(), sizes_.write));
  v3::WRITE3args args;
  args.file = file;
  args.offset = offset;
  args.count = static_cast<std::uint32_t>(part.size());
  args.stable = stable;
  args.data = Rope::borrow(part);
  const auto resok = co_await caller_.call<v3::NFSPROC3_WRITE>(args, kWriting);
  if (!resok) co_return Failure{resok.error()};
  if (resok->count > part.size())
    co_return Failure{Error::of_protocol(kWriting, "wrote more data than it was given")};
  if (resok->count == 0 && !part.empty())
    co_return Failure{Error::of_protocol(kWriting, "wrote nothing and gave no reason")};
  co_return WritePart{resok->count, resok->committed, resok->verf};
}

Task<Outcome<Verifier>> FileSystem::commit(Handle file, std::uint64_t offset, std::uint32_t count) {
  v3::COMMIT3args args;
  args.file = file;
  args.offset = offset;
  args.count = count;
  const auto resok =
      co_await caller_.call<v3::NFSPROC3_COMMIT>(args, {"put the file on the server's disk", {}});
  if (!resok) co_return Failure{resok.error()};
  co_return resok->verf;
}

Task<Outcome<std::uint64_t>> FileSystem::write_file(Handle file, DataSource& source,
                                                    std::uint64_t offset) {
  Writing writing(*this, file, source, offset, options_.window);
  co_return co_await writing.run();
}

Task<Outcome<std::uint64_t>> FileSystem::write_from(Handle file, std::uint64_t offset, Bytes from) {
  MemorySource source(from, offset);
  co_return co_await write_file(file, source, offset);
}

}  // namespace stag::nfs::client
