// The sweep of the inode table, in which names stay that local programs have removed or moved. It
// goes round and round, in short steps, and looks at kRowsForAName rows for each name that is
// recorded anew: when the table has grown by a quarter, each row was looked at. So the table has at
// most about twice the names that lead somewhere, and names that are known cost nothing.
#include "vfs/posix/credentials.h"
#include "vfs/posix/tree.h"

namespace stag::vfs::posix {
namespace {

constexpr std::int64_t kRowsForAName = 4;
constexpr std::uint32_t kRowsInAStep = 64;
constexpr int kStepsInAJob = 16;

}  // namespace

void Tree::sweep_now_and_then() {
  if (rows_due_.fetch_add(kRowsForAName) + kRowsForAName < kRowsInAStep) return;
  if (sweeping_.exchange(true)) return;
  if (!begin_sweep()) sweeping_ = false;
}

// By whoever has set sweeping_. False: nobody sweeps, as memory or room for the job has run out;
// the next name that is recorded tries again.
bool Tree::begin_sweep() try {
  const auto workers = workers_.lock();
  if (workers == nullptr) {
    sweep();
    return true;
  }
  Executor::Job job;
  job.work = [weak = weak_from_this()] {
    prepare_worker_thread();
    if (const auto tree = weak.lock()) tree->sweep();
  };
  job.deliver = [](void*, Executor::Function) {};
  // It may be the last to hold the tree, which is closed where blocking is allowed.
  job.must_run = true;
  return workers->submit(std::move(job));
} catch (const std::bad_alloc&) {
  return false;
}

// By whoever has set sweeping_.
void Tree::sweep() {
  struct End {
    std::atomic<bool>& sweeping;
    ~End() { sweeping = false; }
  } const end{sweeping_};
  for (int step = 0; step < kStepsInAJob && rows_due_ >= kRowsInAStep; ++step) sweep_step();
}

void Tree::sweep_step() {
  rows_due_ -= kRowsInAStep;
  const auto rows = table_->rows_behind(swept_, kRowsInAStep);
  if (!rows) return;
  swept_ = rows->size() < kRowsInAStep ? InodeTable::before_all() : rows->back();
  std::vector<InodeTable::Row> dead;
  Outcome<ObjectRef> directory = Failure{Status::Delay};
  const InodeTable::Row* before = nullptr;
  for (const InodeTable::Row& row : *rows) {
    if (before == nullptr || before->directory != row.directory)
      directory = find_directory(row.directory);
    before = &row;
    const bool gone = directory ? leads_elsewhere(**directory, row.name, row.object)
                                : directory.error() == Status::Stale;
    if (gone) dead.push_back(row);
  }
  table_->retire(dead);
}

}  // namespace stag::vfs::posix
