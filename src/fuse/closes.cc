#include "fuse/closes.h"

#include <new>
#include <utility>

namespace stag::fuse {
namespace {

using nfs::client::File;
using nfs::client::LockOwner;
using nfs::client::Outcome;

void throw_without_memory(const Outcome<Ok>& done) {
  if (!done && done.error().out_of_memory()) throw std::bad_alloc();
}

}  // namespace

void Closes::begin(OpenFiles::Node closed) noexcept {
  begin_to_finish(closes_.insert(std::move(closed)).position);
}

void Closes::begin_to_finish(OpenFiles::Files::iterator closed) noexcept {
  closed->second.underway = true;
  try {
    begun_.add(finish(closed));
  } catch (const std::bad_alloc&) {
    closed->second.underway = false;
    ask();
  }
}

Task<void> Closes::finish(OpenFiles::Files::iterator closed) {
  OpenFiles::Ending& ending = closed->second;
  try {
    if (!ending.closed) co_await close(closed->first.inode, ending);
    if (ending.removal) co_await remove(ending.removal->name());
    closes_.erase(closed);
  } catch (const std::bad_alloc&) {
    ending.underway = false;
    ask();
  }
}

// Each step may be done again. To the server the open may be one that others share, or that stays
// with a delegation: locks do not end with it.
Task<void> Closes::close(std::uint64_t inode, OpenFiles::Ending& ending) {
  co_await prepare_(inode, ending.open);
  std::vector<LockOwner>& owners = ending.open.lock_owners;
  for (; !owners.empty(); owners.pop_back())
    co_await unlock(inode, ending.open.file, owners.back());
  ending.unlocking.reset();
  const Outcome<Ok> done = co_await files_.close(ending.open.file);
  throw_without_memory(done);
  ending.closed = true;
}

Task<void> Closes::unlock(std::uint64_t inode, File file, LockOwner owner) {
  const Turns::Turn turn = co_await lock_turns_.alone({inode, owner.space, owner.number});
  const Outcome<Ok> done = co_await files_.unlock(file, owner, {});
  throw_without_memory(done);
}

Task<void> Closes::remove(const SillyName& name) {
  const Outcome<Ok> done = co_await files_.remove(name.directory, name.name);
  throw_without_memory(done);
}

// A loop has room for its timers; one without may leave this to the next that finds no memory.
void Closes::ask() noexcept {
  try {
    soon_.ask();
  } catch (const std::bad_alloc&) {
  }
}

// One that ends may have others end that have waited for it.
void Closes::try_again() noexcept {
  for (auto at = closes_.begin(); at != closes_.end();) {
    const OpenFiles::Key key = at->first;
    if (!at->second.underway) begin_to_finish(at);
    at = closes_.upper_bound(key);
  }
}

Task<void> Closes::end() {
  soon_.end();
  try_again();
  co_await begun_.join();
}

}  // namespace stag::fuse
