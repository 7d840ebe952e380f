// The sweep of the inode table, in which names stay that local programs have removed or moved. It
// goes round and round, in short steps, and looks at kRowsForAName rows for each name that is
// recorded anew: when the table has grown by a quarter, each row was looked at. So the table has at
// most about twice the names that lead somewhere, and names that are known cost nothing.
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
  // The next name that is recorded tries again.
  if (!run_by_worker(&Tree::sweep)) sweeping_ = false;
}

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
