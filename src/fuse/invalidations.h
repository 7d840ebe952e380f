// Invalidations: what the kernel has cached of a file is old, and it is told. Pages it drops in the
// midst of that, and waits for each that it has locked: until it has read or written that, in no
// way that a signal ends, and nobody can unmount meanwhile. A server that has stopped may not let
// it for long, so what is in progress is waited for here before; what begins later reads what the
// server has by then.
//
// Whoever tells the kernel something waits behind who unmounts, and that one for a thread that
// drops pages. These come through the loop: it tells the kernel of nothing but what belongs to a
// request that a program waits for, for nobody unmounts what that has open.
//
// Thread: the loop of the Mount.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/executor.h"
#include "base/loop.h"
#include "base/task.h"
#include "base/unique_function.h"
#include "fuse/ongoing.h"

namespace stag::fuse {

class Invalidations {
 public:
  // Tells the kernel that the attributes of an inode are no longer what it knows, nor what it has
  // cached of the file from this offset on. On the loop, and on other threads, of which several
  // call.
  static constexpr std::int64_t kAttributesOnly = -1;
  using Tell = UniqueFunction<void(std::uint64_t number, std::int64_t from)>;

  explicit Invalidations(Loop& loop) : loop_(loop) {}
  // `threads` are for nothing else: what the kernel waits for may need those of the loop. They
  // outlive this; null: they are those of the loop.
  void set_tell(Tell tell, Executor* threads) {
    tell_ = std::move(tell);
    threads_ = threads;
  }

  // A program waits meanwhile for the answer to a request about the inode.
  void attributes(std::uint64_t number) { tell_(number, kAttributesOnly); }
  // The same where a request may have been given up. Ends when the kernel knows it, or no thread is
  // there to tell it: what it knows is not good for long.
  Task<void> attributes_left(std::uint64_t number);
  // Ends when the kernel has dropped the pages from this offset on. False: no thread was there to
  // tell it, and the pages go with the next open(2), once it knows that the attributes are old.
  Task<bool> pages(std::uint64_t number, std::uint64_t from);
  // The same of all pages of each of these files, side by side: the server of one may not answer.
  Task<void> pages_of(std::vector<std::uint64_t> numbers);
  // The threads begin nothing more. Runs `then` when none of them tells the kernel anything: at
  // once, or after those that lock pages have all been told to give up.
  void stop(UniqueFunction<void()> then);

  // Keeps pages of the file locked in the kernel until end(), or until this is destroyed. The
  // Invalidations outlive it.
  class Lock {
   public:
    // `give_up` runs when the kernel has to go on without the server.
    Lock(Invalidations& all, std::uint64_t number, UniqueFunction<void()> give_up)
        : on_give_up_(all.given_up_, std::move(give_up)) {
      operation_.emplace(all.locked_, number);
    }
    void end() { operation_.reset(); }

   private:
    CancelCallback on_give_up_;
    std::optional<Ongoing::Operation> operation_;
  };

 private:
  Task<void> all_pages(std::uint64_t number);
  Task<bool> tell_by_thread(std::uint64_t number, std::int64_t from);

  Loop& loop_;
  Tell tell_;
  Executor* threads_ = nullptr;
  Ongoing locked_;
  CancelSource given_up_;
  std::size_t telling_ = 0;
  bool stopped_ = false;
  UniqueFunction<void()> then_;
};

}  // namespace stag::fuse
