// A FileSystem in front of another one that takes its time and fails as a test says. Every
// operation stops at two points, before it begins and when it has happened; Steps decide there when
// it goes on, and whether with a failure. No clock is involved.
//
//   auto held = std::make_shared<HeldSteps>();
//   SteppedStore store(inner, held);
//   ... two Calls ...                 held->waiting is {{Read, Begin}, {Write, Begin}}
//   held->release(1);                 the second goes on first
//   held->release(0, Status::Io);     the first has failed before it began
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/loop.h"
#include "vfs/vfs.h"

namespace stag::vfs::testing {

enum class Called : std::uint8_t {
  Attributes,
  SetAttributes,
  Lookup,
  Access,
  Readlink,
  Read,
  Write,
  Commit,
  Create,
  Mkdir,
  Symlink,
  Mknod,
  Link,
  Remove,
  Rmdir,
  Rename,
  List,
  Usage,
  Acls,
  SetAcls,
  Seek,
  Allocate,
  Deallocate,
  Clone,
  Copy,
  Xattr,
  SetXattr,
  ListXattrs,
  RemoveXattr,
};

struct Point {
  enum class When : std::uint8_t { Begin, Happened };
  Called operation = Called::Attributes;
  When when = When::Begin;
  friend bool operator==(const Point&, const Point&) = default;
};

// May be asked from several loops at once, as a store may.
class Steps {
 public:
  virtual ~Steps() = default;
  // On the caller's loop; the operation goes on when this ends. With a Status it ends at once: at
  // Begin nothing has happened, at Happened the store has done it and does not know, which is Io.
  virtual Task<std::optional<Status>> pass(Point point, Loop& loop) = 0;
};

// Everything goes on some turns of its loop later, each with another number of turns, so that what
// is under way together ends in another order than it began.
class LaterSteps final : public Steps {
 public:
  explicit LaterSteps(std::vector<int> turns) : turns_(std::move(turns)) {}
  Task<std::optional<Status>> pass(Point, Loop& loop) override {
    for (int left = turns_[next_++ % turns_.size()]; left > 0; --left) co_await resume_on(loop);
    co_return std::nullopt;
  }

 private:
  const std::vector<int> turns_;
  std::atomic<std::size_t> next_{0};
};

// Everything goes on at once, or fails where `fault` says so.
class FailingSteps final : public Steps {
 public:
  using Fault = std::function<std::optional<Status>(Point)>;
  explicit FailingSteps(Fault fault) : fault_(std::move(fault)) {}
  Task<std::optional<Status>> pass(Point point, Loop&) override { co_return fault_(point); }

 private:
  const Fault fault_;
};

// Everything that `holds` says waits until the test lets it go on. For one loop.
class HeldSteps final : public Steps {
 public:
  using Holds = std::function<bool(Point)>;
  explicit HeldSteps(Holds holds = [](Point point) { return point.when == Point::When::Begin; })
      : holds_(std::move(holds)) {}

  struct Waiting {
    Point point;
    std::coroutine_handle<> waiter;
    std::optional<Status>* verdict;
  };
  std::deque<Waiting> waiting;  // in the order of their arrival

  Task<std::optional<Status>> pass(Point point, Loop&) override {
    std::optional<Status> verdict;
    if (holds_(point)) co_await Wait{*this, point, verdict};
    co_return verdict;
  }
  // Runs the operation on to its next stop, or its end.
  void release(std::size_t index, std::optional<Status> verdict = std::nullopt) {
    STAG_CHECK(index < waiting.size());
    const Waiting released = waiting[index];
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(index));
    *released.verdict = verdict;
    released.waiter.resume();
  }
  void release_all() {
    while (!waiting.empty()) release(0);
  }

 private:
  struct Wait {
    HeldSteps& steps;
    Point point;
    std::optional<Status>& verdict;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) {
      steps.waiting.push_back({point, waiter, &verdict});
    }
    void await_resume() const {}
  };
  const Holds holds_;
};

class SteppedStore : public FileSystem {
 public:
  SteppedStore(std::shared_ptr<FileSystem> inner, std::shared_ptr<Steps> steps)
      : inner_(std::move(inner)), steps_(std::move(steps)) {}

  // Cuts an operation off half-way: a write after so many bytes, a listing after so many entries.
  struct Cut {
    std::size_t after = 0;
    // Absent, a write says how much was done, as a store does that ran full.
    std::optional<Status> status;
  };
  std::optional<Cut> cut_write;
  std::optional<Cut> cut_list;
  // What write_verifier_epoch() adds to those of the store behind.
  std::atomic<std::uint64_t> lost{0};

  Handle root() const override { return inner_->root(); }
  std::string identity() const override { return inner_->identity(); }
  std::string handle_space() const override { return inner_->handle_space(); }
  Limits limits() const override { return inner_->limits(); }
  std::uint64_t write_verifier_epoch() const override {
    return inner_->write_verifier_epoch() + lost;
  }
  const Credentials& acting_as(const Credentials& caller) const override {
    return inner_->acting_as(caller);
  }
  Block placement(std::size_t bytes) override { return inner_->placement(bytes); }

  Operation<Attributes> attributes(CallerContext caller, const Handle& object) override {
    return step(Called::Attributes, caller,
                [=, this, &object] { return inner_->attributes(caller, object); });
  }
  Operation<Change> set_attributes(CallerContext caller, const Handle& object,
                                   const SetAttributes& changes,
                                   std::optional<Time> guard) override {
    return step(Called::SetAttributes, caller, [=, this, &object, &changes] {
      return inner_->set_attributes(caller, object, changes, guard);
    });
  }
  Operation<Found> lookup(CallerContext caller, const Handle& directory,
                          std::string_view name) override {
    return step(Called::Lookup, caller,
                [=, this, &directory] { return inner_->lookup(caller, directory, name); });
  }
  Operation<Access> access(CallerContext caller, const Handle& object,
                           std::uint32_t asked) override {
    return step(Called::Access, caller,
                [=, this, &object] { return inner_->access(caller, object, asked); });
  }
  Operation<Link> readlink(CallerContext caller, const Handle& symlink) override {
    return step(Called::Readlink, caller,
                [=, this, &symlink] { return inner_->readlink(caller, symlink); });
  }
  Operation<ReadResult> read(CallerContext caller, const Handle& file, std::uint64_t offset,
                             std::uint32_t count) override {
    return step(Called::Read, caller,
                [=, this, &file] { return inner_->read(caller, file, offset, count); });
  }
  Operation<WriteResult> write(CallerContext caller, const Handle& file, std::uint64_t offset,
                               Rope data, Stability stability) override {
    return step(Called::Write, caller, [=, this, &file, data = std::move(data)]() mutable {
      return written(caller, file, offset, std::move(data), stability);
    });
  }
  Operation<Change> commit(CallerContext caller, const Handle& file, std::uint64_t offset,
                           std::uint32_t count) override {
    return step(Called::Commit, caller,
                [=, this, &file] { return inner_->commit(caller, file, offset, count); });
  }
  Operation<Created> create(CallerContext caller, const Handle& directory, std::string_view name,
                            const CreateHow& how) override {
    return step(Called::Create, caller, [=, this, &directory, &how] {
      return inner_->create(caller, directory, name, how);
    });
  }
  Operation<Created> mkdir(CallerContext caller, const Handle& directory, std::string_view name,
                           const SetAttributes& attributes) override {
    return step(Called::Mkdir, caller, [=, this, &directory, &attributes] {
      return inner_->mkdir(caller, directory, name, attributes);
    });
  }
  Operation<Created> symlink(CallerContext caller, const Handle& directory, std::string_view name,
                             std::string_view target, const SetAttributes& attributes) override {
    return step(Called::Symlink, caller, [=, this, &directory, &attributes] {
      return inner_->symlink(caller, directory, name, target, attributes);
    });
  }
  Operation<Created> mknod(CallerContext caller, const Handle& directory, std::string_view name,
                           Special special, const SetAttributes& attributes) override {
    return step(Called::Mknod, caller, [=, this, &directory, &attributes] {
      return inner_->mknod(caller, directory, name, special, attributes);
    });
  }
  Operation<Linked> link(CallerContext caller, const Handle& file, const Handle& directory,
                         std::string_view name) override {
    return step(Called::Link, caller, [=, this, &file, &directory] {
      return inner_->link(caller, file, directory, name);
    });
  }
  Operation<Change> remove(CallerContext caller, const Handle& directory,
                           std::string_view name) override {
    return step(Called::Remove, caller,
                [=, this, &directory] { return inner_->remove(caller, directory, name); });
  }
  Operation<Change> rmdir(CallerContext caller, const Handle& directory,
                          std::string_view name) override {
    return step(Called::Rmdir, caller,
                [=, this, &directory] { return inner_->rmdir(caller, directory, name); });
  }
  Operation<Renamed> rename(CallerContext caller, const Handle& from_directory,
                            std::string_view from, const Handle& to_directory,
                            std::string_view to) override {
    return step(Called::Rename, caller, [=, this, &from_directory, &to_directory] {
      return inner_->rename(caller, from_directory, from, to_directory, to);
    });
  }
  Operation<Listed> list(CallerContext caller, const Handle& directory, ListFrom from,
                         DirectorySink& sink) override {
    return step(Called::List, caller,
                [=, this, &directory, &sink] { return listed(caller, directory, from, sink); });
  }
  Operation<Usage> usage(CallerContext caller) override {
    return step(Called::Usage, caller, [=, this] { return inner_->usage(caller); });
  }
  Operation<ObjectAcls> acls(CallerContext caller, const Handle& object) override {
    return step(Called::Acls, caller, [=, this, &object] { return inner_->acls(caller, object); });
  }
  Operation<Change> set_acls(CallerContext caller, const Handle& object,
                             const SetAcls& changes) override {
    return step(Called::SetAcls, caller,
                [=, this, &object, &changes] { return inner_->set_acls(caller, object, changes); });
  }

  Operation<Sought> seek(CallerContext caller, const Handle& file, std::uint64_t offset,
                         SeekTo what) override {
    return step(Called::Seek, caller,
                [=, this, &file] { return inner_->seek(caller, file, offset, what); });
  }
  Operation<Change> allocate(CallerContext caller, const Handle& file, std::uint64_t offset,
                             std::uint64_t length) override {
    return step(Called::Allocate, caller,
                [=, this, &file] { return inner_->allocate(caller, file, offset, length); });
  }
  Operation<Change> deallocate(CallerContext caller, const Handle& file, std::uint64_t offset,
                               std::uint64_t length) override {
    return step(Called::Deallocate, caller,
                [=, this, &file] { return inner_->deallocate(caller, file, offset, length); });
  }
  Operation<Change> clone(CallerContext caller, const Handle& from, const Handle& to,
                          CopyRange range) override {
    return step(Called::Clone, caller,
                [=, this, &from, &to] { return inner_->clone(caller, from, to, range); });
  }
  Operation<Copied> copy(CallerContext caller, const Handle& from, const Handle& to,
                         CopyRange range) override {
    return step(Called::Copy, caller,
                [=, this, &from, &to] { return inner_->copy(caller, from, to, range); });
  }
  Operation<std::string> xattr(CallerContext caller, const Handle& object,
                               std::string_view name) override {
    return step(Called::Xattr, caller,
                [=, this, &object] { return inner_->xattr(caller, object, name); });
  }
  Operation<Change> set_xattr(CallerContext caller, const Handle& object, std::string_view name,
                              std::string_view value, XattrMode mode) override {
    return step(Called::SetXattr, caller, [=, this, &object] {
      return inner_->set_xattr(caller, object, name, value, mode);
    });
  }
  Operation<std::vector<std::string>> list_xattrs(CallerContext caller,
                                                  const Handle& object) override {
    return step(Called::ListXattrs, caller,
                [=, this, &object] { return inner_->list_xattrs(caller, object); });
  }
  Operation<Change> remove_xattr(CallerContext caller, const Handle& object,
                                 std::string_view name) override {
    return step(Called::RemoveXattr, caller,
                [=, this, &object] { return inner_->remove_xattr(caller, object, name); });
  }

 private:
  // Stops a listing after a number of entries.
  class CutSink final : public DirectorySink {
   public:
    CutSink(DirectorySink& sink, std::size_t room) : sink_(sink), room_(room) {}
    bool entry(const DirectoryEntry& entry) override {
      if (room_ == 0) return false;
      --room_;
      return sink_.entry(entry);
    }

   private:
    DirectorySink& sink_;
    std::size_t room_;
  };

  // `operate` is called once, with the operation's arguments still there.
  template <class Operate>
  auto step(Called called, CallerContext caller, Operate operate) -> decltype(operate()) {
    auto fault = co_await steps_->pass({called, Point::When::Begin}, caller.loop);
    if (fault) co_return Failure{*fault};
    auto outcome = co_await operate();
    fault = co_await steps_->pass({called, Point::When::Happened}, caller.loop);
    if (fault) co_return Failure{*fault};
    co_return std::move(outcome);
  }
  Operation<WriteResult> written(CallerContext caller, const Handle& file, std::uint64_t offset,
                                 Rope data, Stability stability) {
    if (!cut_write)
      co_return co_await inner_->write(caller, file, offset, std::move(data), stability);
    const Cut cut = *cut_write;
    const std::size_t size = std::min(cut.after, data.size());
    Rope part(Buffer::copy_of(data.flatten().bytes().first(size)));
    auto outcome = co_await inner_->write(caller, file, offset, std::move(part), stability);
    if (outcome && cut.status) co_return Failure{*cut.status};
    co_return std::move(outcome);
  }
  Operation<Listed> listed(CallerContext caller, const Handle& directory, ListFrom from,
                           DirectorySink& sink) {
    if (!cut_list) co_return co_await inner_->list(caller, directory, from, sink);
    const Cut cut = *cut_list;
    CutSink some(sink, cut.after);
    auto outcome = co_await inner_->list(caller, directory, from, some);
    if (outcome && cut.status) co_return Failure{*cut.status};
    co_return std::move(outcome);
  }

  const std::shared_ptr<FileSystem> inner_;
  const std::shared_ptr<Steps> steps_;
};

}  // namespace stag::vfs::testing
