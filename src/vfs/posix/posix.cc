#include "vfs/posix/posix.h"

#include "base/loop.h"
#include "base/worker_time.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/state_overlap.h"
#include "vfs/posix/tree.h"

namespace stag::vfs {
namespace {

// co_await blocking(...) runs `work` on a prepared thread of `executor`; Delay when the queue of
// the executor is full. `bytes`: data that stays in memory until then. The times are the caller's.
template <class Work>
auto blocking(Executor* executor, CallerContext caller, Work work, std::uint64_t bytes = 0) {
  auto prepared = [executor, timer = JobTimer(caller.worker_time),
                   work = std::move(work)]() mutable {
    const JobTimer::Work timed(timer);
    posix::prepare_worker_thread(executor);
    return work();
  };
  return offloaded_to(executor, caller.client, caller.loop, std::move(prepared),
                      Failure{Status::Delay}, bytes);
}

// The same as an Operation, for operations that cannot end at once: the coroutine starts here and
// not before (decision 0007). The objects that `work` refers to outlive the Operation.
template <class Work>
auto by_workers(Executor* executor, CallerContext caller, Work work, std::uint64_t bytes = 0)
    -> Operation<typename decltype(work())::Value> {
  co_return co_await blocking(executor, caller, std::move(work), bytes);
}

}  // namespace

Result<std::unique_ptr<PosixFileSystem>, std::string> PosixFileSystem::open(
    const Options& options) {
  if (!options.state_directory.empty())
    if (std::string overlap = posix::state_overlap(options.root, options.state_directory);
        !overlap.empty())
      return Failure{std::move(overlap)};
  auto tree = posix::Tree::open(options);
  if (!tree) return Failure{tree.error()};
  return std::unique_ptr<PosixFileSystem>(new PosixFileSystem(*std::move(tree), options));
}

PosixFileSystem::PosixFileSystem(std::shared_ptr<posix::Tree> tree, const Options& options)
    : tree_(std::move(tree)), workers_(options.workers), sync_workers_(options.sync_workers) {}

PosixFileSystem::~PosixFileSystem() {
  if (workers_ == nullptr) return;
  // To close descriptors may block as much as to use them.
  auto close = [tree = std::move(tree_), workers = workers_.get()]() mutable {
    posix::prepare_worker_thread(workers);
    tree.reset();
  };
  Executor::Job job{std::move(close), {}, [](void*, Executor::Function) {}};
  job.must_run = true;
  workers_->submit(std::move(job));
}

void PosixFileSystem::close_unused() noexcept {
  tree_->close_unused();
}

Executor* PosixFileSystem::changers() const {
  return tree_->durable_names() ? sync_workers_.get() : workers_.get();
}

bool PosixFileSystem::serves_all_as_one() {
  return !posix::can_switch_users();
}

const Credentials& PosixFileSystem::acting_as(const Credentials& caller) const {
  return posix::acting_as(caller);
}

bool PosixFileSystem::uses_kernel_handles() const {
  return tree_->uses_kernel_handles();
}

bool PosixFileSystem::answers_at_once() const {
  return tree_->answers_at_once();
}

Handle PosixFileSystem::root() const {
  return tree_->root();
}

std::string PosixFileSystem::identity() const {
  return tree_->identity();
}

std::string PosixFileSystem::handle_space() const {
  return tree_->handle_space();
}

Limits PosixFileSystem::limits() const {
  return tree_->limits();
}

std::uint64_t PosixFileSystem::write_verifier_epoch() const {
  return tree_->write_verifier_epoch();
}

Operation<Attributes> PosixFileSystem::attributes(CallerContext caller, const Handle& object) {
  if (auto answer = tree_->attributes_at_once(object)) return *std::move(answer);
  return by_workers(workers_.get(), caller, [this, &object] { return tree_->attributes(object); });
}

Operation<Change> PosixFileSystem::set_attributes(CallerContext caller, const Handle& object,
                                                  const SetAttributes& changes,
                                                  std::optional<Time> guard) {
  return by_workers(changers(), caller,
                    [this, &who = caller.credentials, &object, &changes, guard] {
                      return tree_->set_attributes(who, object, changes, guard);
                    });
}

Operation<Found> PosixFileSystem::lookup(CallerContext caller, const Handle& directory,
                                         std::string_view name) {
  if (auto answer = tree_->lookup_at_once(caller.credentials, directory, name))
    return *std::move(answer);
  return by_workers(workers_.get(), caller, [this, &who = caller.credentials, &directory, name] {
    return tree_->lookup(who, directory, name);
  });
}

Operation<Access> PosixFileSystem::access(CallerContext caller, const Handle& object,
                                          std::uint32_t asked) {
  if (auto answer = tree_->access_at_once(caller.credentials, object, asked))
    return *std::move(answer);
  return by_workers(workers_.get(), caller, [this, &who = caller.credentials, &object, asked] {
    return tree_->access(who, object, asked);
  });
}

Operation<Link> PosixFileSystem::readlink(CallerContext caller, const Handle& symlink) {
  return by_workers(workers_.get(), caller, [this, &symlink] { return tree_->readlink(symlink); });
}

Operation<ReadResult> PosixFileSystem::read(CallerContext caller, const Handle& file,
                                            std::uint64_t offset, std::uint32_t count) {
  if (auto answer = tree_->read_at_once(caller.credentials, file, offset, count))
    return *std::move(answer);
  return by_workers(workers_.get(), caller,
                    [this, &who = caller.credentials, &file, offset, count] {
                      return tree_->read(who, file, offset, count);
                    });
}

Operation<WriteResult> PosixFileSystem::write(CallerContext caller, const Handle& file,
                                              std::uint64_t offset, Rope data, Stability asked) {
  const Stability stability = tree_->stability_of_write(file, asked);
  if (auto answer = tree_->write_at_once(caller.credentials, file, offset, data, stability))
    return *std::move(answer);
  Executor* const writers = stability == Stability::Unstable ? workers_.get() : sync_workers_.get();
  const std::uint64_t bytes = data.size();
  return by_workers(
      writers, caller,
      [this, &who = caller.credentials, &file, offset, data = std::move(data), stability] {
        return tree_->write(who, file, offset, data, stability);
      },
      bytes);
}

Operation<Change> PosixFileSystem::commit(CallerContext caller, const Handle& file, std::uint64_t,
                                          std::uint32_t) {
  return by_workers(sync_workers_.get(), caller, [this, &file] { return tree_->commit(file); });
}

Operation<Created> PosixFileSystem::create(CallerContext caller, const Handle& directory,
                                           std::string_view name, const CreateHow& how) {
  return by_workers(changers(), caller, [this, &who = caller.credentials, &directory, name, &how] {
    return tree_->create(who, directory, name, how);
  });
}

Operation<Created> PosixFileSystem::mkdir(CallerContext caller, const Handle& directory,
                                          std::string_view name, const SetAttributes& attributes) {
  return by_workers(changers(), caller,
                    [this, &who = caller.credentials, &directory, name, &attributes] {
                      return tree_->mkdir(who, directory, name, attributes);
                    });
}

Operation<Created> PosixFileSystem::symlink(CallerContext caller, const Handle& directory,
                                            std::string_view name, std::string_view target,
                                            const SetAttributes& attributes) {
  return by_workers(changers(), caller,
                    [this, &who = caller.credentials, &directory, name, target, &attributes] {
                      return tree_->symlink(who, directory, name, target, attributes);
                    });
}

Operation<Created> PosixFileSystem::mknod(CallerContext caller, const Handle& directory,
                                          std::string_view name, Special special,
                                          const SetAttributes& attributes) {
  return by_workers(changers(), caller,
                    [this, &who = caller.credentials, &directory, name, special, &attributes] {
                      return tree_->mknod(who, directory, name, special, attributes);
                    });
}

Operation<Linked> PosixFileSystem::link(CallerContext caller, const Handle& file,
                                        const Handle& directory, std::string_view name) {
  return by_workers(changers(), caller, [this, &who = caller.credentials, &file, &directory, name] {
    return tree_->link(who, file, directory, name);
  });
}

Operation<Change> PosixFileSystem::remove(CallerContext caller, const Handle& directory,
                                          std::string_view name) {
  return by_workers(changers(), caller, [this, &who = caller.credentials, &directory, name] {
    return tree_->remove(who, directory, name);
  });
}

Operation<Change> PosixFileSystem::rmdir(CallerContext caller, const Handle& directory,
                                         std::string_view name) {
  return by_workers(changers(), caller, [this, &who = caller.credentials, &directory, name] {
    return tree_->rmdir(who, directory, name);
  });
}

Operation<Renamed> PosixFileSystem::rename(CallerContext caller, const Handle& from_directory,
                                           std::string_view from, const Handle& to_directory,
                                           std::string_view to) {
  return by_workers(changers(), caller,
                    [this, &who = caller.credentials, &from_directory, from, &to_directory, to] {
                      return tree_->rename(who, from_directory, from, to_directory, to);
                    });
}

Operation<Listed> PosixFileSystem::list(CallerContext caller, const Handle& directory,
                                        ListFrom from, DirectorySink& sink) {
  const auto page = co_await blocking(
      workers_.get(), caller, [&] { return tree_->list(caller.credentials, directory, from); });
  if (!page) co_return Failure{page.error()};
  Listed listed = page->listed;
  for (const posix::Tree::Entry& entry : page->entries) {
    const Node* node = entry.node ? &*entry.node : nullptr;
    if (!sink.entry({entry.name, entry.file_id, entry.cookie, node})) co_return listed;
  }
  listed.eof = page->complete;
  co_return listed;
}

Operation<Usage> PosixFileSystem::usage(CallerContext caller) {
  return by_workers(workers_.get(), caller, [this] { return tree_->usage(); });
}

Operation<ObjectAcls> PosixFileSystem::acls(CallerContext caller, const Handle& object) {
  return by_workers(workers_.get(), caller, [this, &object] { return tree_->acls(object); });
}

Operation<Change> PosixFileSystem::set_acls(CallerContext caller, const Handle& object,
                                            const SetAcls& changes) {
  return by_workers(changers(), caller, [this, &who = caller.credentials, &object, &changes] {
    return tree_->set_acls(who, object, changes);
  });
}

Operation<Sought> PosixFileSystem::seek(CallerContext caller, const Handle& file,
                                        std::uint64_t offset, SeekTo what) {
  return by_workers(workers_.get(), caller, [this, &who = caller.credentials, &file, offset, what] {
    return tree_->seek(who, file, offset, what);
  });
}

Operation<Change> PosixFileSystem::allocate(CallerContext caller, const Handle& file,
                                            std::uint64_t offset, std::uint64_t length) {
  return by_workers(changers(), caller, [this, &who = caller.credentials, &file, offset, length] {
    return tree_->allocate(who, file, offset, length);
  });
}

Operation<Change> PosixFileSystem::deallocate(CallerContext caller, const Handle& file,
                                              std::uint64_t offset, std::uint64_t length) {
  return by_workers(changers(), caller, [this, &who = caller.credentials, &file, offset, length] {
    return tree_->deallocate(who, file, offset, length);
  });
}

Operation<Change> PosixFileSystem::clone(CallerContext caller, const Handle& from, const Handle& to,
                                         CopyRange range) {
  return by_workers(changers(), caller, [this, &who = caller.credentials, &from, &to, range] {
    return tree_->clone(who, from, to, range);
  });
}

Operation<Copied> PosixFileSystem::copy(CallerContext caller, const Handle& from, const Handle& to,
                                        CopyRange range) {
  return by_workers(workers_.get(), caller, [this, &who = caller.credentials, &from, &to, range] {
    return tree_->copy(who, from, to, range);
  });
}

Operation<std::string> PosixFileSystem::xattr(CallerContext caller, const Handle& object,
                                              std::string_view name) {
  return by_workers(workers_.get(), caller, [this, &who = caller.credentials, &object, name] {
    return tree_->xattr(who, object, name);
  });
}

Operation<Change> PosixFileSystem::set_xattr(CallerContext caller, const Handle& object,
                                             std::string_view name, std::string_view value,
                                             XattrMode mode) {
  return by_workers(changers(), caller,
                    [this, &who = caller.credentials, &object, name, value, mode] {
                      return tree_->set_xattr(who, object, name, value, mode);
                    });
}

Operation<std::vector<std::string>> PosixFileSystem::list_xattrs(CallerContext caller,
                                                                 const Handle& object) {
  return by_workers(workers_.get(), caller, [this, &object] { return tree_->list_xattrs(object); });
}

Operation<Change> PosixFileSystem::remove_xattr(CallerContext caller, const Handle& object,
                                                std::string_view name) {
  return by_workers(changers(), caller, [this, &who = caller.credentials, &object, name] {
    return tree_->remove_xattr(who, object, name);
  });
}

Operation<std::shared_ptr<Lease>> PosixFileSystem::lease(CallerContext caller, const Handle& file,
                                                         LeaseKind kind, LeaseWanted wanted) {
  co_return co_await blocking(workers_.get(), caller, [this, &file, kind, &wanted] {
    return tree_->lease(file, kind, std::move(wanted), workers_);
  });
}

Operation<std::unique_ptr<LocalLocks>> PosixFileSystem::local_locks(CallerContext caller,
                                                                    const Handle& file) {
  return by_workers(workers_.get(), caller,
                    [this, &file] { return tree_->local_locks(file, workers_); });
}

}  // namespace stag::vfs
