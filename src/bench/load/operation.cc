#include "bench/load/operation.h"

#include "base/task_group.h"

namespace stag::bench {

namespace {

constexpr const char* kFileName = "file";

}  // namespace

Task<bool> Workload::open(nfs::client::FileSystem& files) {
  files_ = &files;
  nfs::client::SetAttributes attributes;
  attributes.mode = 0644;
  const auto file = co_await files.create(files.root(), kFileName, attributes);
  if (!file) co_return false;
  file_ = file->handle;
  const auto written = co_await files.write_from(file_, 0, memory_);
  co_return written.ok();
}

Task<bool> Workload::use_nfs4() {
  nfs4_file_.emplace();
  const auto opened =
      co_await nfs4_file_->open(files_->channel(), rpc::Credentials::sys("bench", 0, 0), kFileName);
  co_return opened.ok();
}

Task<bool> Workload::run(Operation operation, std::uint64_t count, unsigned depth) {
  left_ = count;
  TaskGroup group;
  for (unsigned i = 0; i < depth; ++i) group.add(worker(operation, i));
  co_await group.join();
  co_return good_;
}

Task<void> Workload::worker(Operation operation, unsigned index) {
  const MutableBytes block = MutableBytes(memory_).subspan(index % kBlocks * kBlock, kBlock);
  while (left_ > 0 && good_) {
    --left_;
    const bool done = co_await once(operation, block);
    good_ = good_ && done;
  }
}

namespace {

template <class T>
using Operating = Task<nfs::client::Outcome<T>>;

// How an operation ends, without a coroutine that waits for it.
template <class T>
Eventual<bool> succeeded(Workload& workload, Operating<T> operation) {
  constexpr auto kJudge = [](const nfs::client::Outcome<T>& outcome, Workload&) {
    return outcome.ok();
  };
  return Eventual<bool>::converted<kJudge>(std::move(operation), workload);
}
template <class T>
Eventual<bool> moved(Workload& workload, Operating<T> operation) {
  constexpr auto kJudge = [](const nfs::client::Outcome<T>& outcome, Workload&) {
    return outcome.ok() && outcome->count == Workload::kBlock;
  };
  return Eventual<bool>::converted<kJudge>(std::move(operation), workload);
}

}  // namespace

Eventual<bool> Workload::once(Operation operation, MutableBytes block) {
  const std::uint64_t at = next_++ * 5 % kBlocks * kBlock;
  if (operation == Operation::Null) return succeeded(*this, files_->ping());
  if (nfs4_file_) return once_by_nfs4(operation, at, block);
  if (operation == Operation::Getattr) return succeeded(*this, files_->getattr(file_));
  if (operation == Operation::Read) return moved(*this, files_->read(file_, at, block));
  return moved(*this, files_->write(file_, at, block, nfs::client::Stability::Unstable));
}

Eventual<bool> Workload::once_by_nfs4(Operation operation, std::uint64_t at, MutableBytes block) {
  if (operation == Operation::Getattr) return nfs4_file_->getattr();
  if (operation == Operation::Read) return nfs4_file_->read(at, block);
  return nfs4_file_->write(at, block);
}

}  // namespace stag::bench
