#include "vfs/ceph/ceph.h"

#include <new>

#include "base/loop.h"
#include "base/worker_time.h"
#include "vfs/ceph/tree.h"

namespace stag::vfs {
namespace {

// co_await on_worker(...) runs `work` on a thread of `executor`; Delay when the queue of the
// executor is full. `bytes`: data that stays in memory until then. The times are the caller's.
template <class Work>
auto on_worker(Executor* executor, CallerContext caller, Work work, std::uint64_t bytes = 0) {
  auto timed = [timer = JobTimer(caller.worker_time), work = std::move(work)]() mutable {
    const JobTimer::Work running(timer);
    return work();
  };
  return offloaded_to(executor, caller.client, caller.loop, std::move(timed),
                      Failure{Status::Delay}, bytes);
}

// The same as an Operation. The objects that `work` refers to outlive it.
template <class Work>
auto later(Executor* executor, CallerContext caller, Work work, std::uint64_t bytes = 0)
    -> Operation<typename decltype(work())::Value> {
  co_return co_await on_worker(executor, caller, std::move(work), bytes);
}

}  // namespace

Result<std::unique_ptr<CephFileSystem>, std::string> CephFileSystem::open(const Options& options) {
  auto tree = ceph::Tree::open(options);
  if (!tree) return Failure{tree.error()};
  return std::unique_ptr<CephFileSystem>(new CephFileSystem(*std::move(tree), options));
}

CephFileSystem::CephFileSystem(std::unique_ptr<ceph::Tree> tree, const Options& options)
    : tree_(std::move(tree)), workers_(options.workers), sync_workers_(options.sync_workers) {}

CephFileSystem::~CephFileSystem() {
  if (workers_ == nullptr) return;
  Executor::Job job{[tree = std::move(tree_)] {}, {}, [](void*, Executor::Function) {}};
  job.must_run = true;
  workers_->submit(std::move(job));
}

// One job at a time: where the cluster does not answer, it takes one worker.
void CephFileSystem::close_unused() noexcept try {
  if (workers_ == nullptr || !closing_.expired()) return;
  auto under_way = std::make_shared<const int>();
  closing_ = under_way;
  Executor::Job job;
  job.work = [tree = std::weak_ptr(tree_), under_way = std::move(under_way)] {
    if (const auto still = tree.lock()) still->close_unused();
  };
  job.deliver = [](void*, Executor::Function) {};
  workers_->submit(std::move(job));
} catch (const std::bad_alloc&) {  // the next time
}

Executor* CephFileSystem::changers() const {
  return tree_->durable_names() ? sync_workers_.get() : workers_.get();
}

Handle CephFileSystem::root() const {
  return tree_->root();
}

std::string CephFileSystem::identity() const {
  return tree_->identity();
}

std::string CephFileSystem::handle_space() const {
  return tree_->handle_space();
}

Limits CephFileSystem::limits() const {
  return ceph::Tree::limits();
}

std::uint64_t CephFileSystem::write_verifier_epoch() const {
  return tree_->write_verifier_epoch();
}

Operation<Attributes> CephFileSystem::attributes(CallerContext caller, const Handle& object) {
  return later(workers_.get(), caller, [this, &object] { return tree_->attributes(object); });
}

Operation<Change> CephFileSystem::set_attributes(CallerContext caller, const Handle& object,
                                                 const SetAttributes& changes,
                                                 std::optional<Time> guard) {
  return later(changers(), caller, [this, &who = caller.credentials, &object, &changes, guard] {
    return tree_->set_attributes(who, object, changes, guard);
  });
}

Operation<Found> CephFileSystem::lookup(CallerContext caller, const Handle& directory,
                                        std::string_view name) {
  return later(workers_.get(), caller, [this, &who = caller.credentials, &directory, name] {
    return tree_->lookup(who, directory, name);
  });
}

Operation<Access> CephFileSystem::access(CallerContext caller, const Handle& object,
                                         std::uint32_t asked) {
  return later(workers_.get(), caller, [this, &who = caller.credentials, &object, asked] {
    return tree_->access(who, object, asked);
  });
}

Operation<Link> CephFileSystem::readlink(CallerContext caller, const Handle& symlink) {
  return later(workers_.get(), caller, [this, &symlink] { return tree_->readlink(symlink); });
}

Operation<ReadResult> CephFileSystem::read(CallerContext caller, const Handle& file,
                                           std::uint64_t offset, std::uint32_t count) {
  return later(workers_.get(), caller, [this, &who = caller.credentials, &file, offset, count] {
    return tree_->read(who, file, offset, count);
  });
}

Operation<WriteResult> CephFileSystem::write(CallerContext caller, const Handle& file,
                                             std::uint64_t offset, Rope data, Stability stability) {
  Executor* const writers = stability == Stability::Unstable ? workers_.get() : sync_workers_.get();
  const std::uint64_t bytes = data.size();
  return later(
      writers, caller,
      [this, &who = caller.credentials, &file, offset, data = std::move(data), stability] {
        return tree_->write(who, file, offset, data, stability);
      },
      bytes);
}

Operation<Change> CephFileSystem::commit(CallerContext caller, const Handle& file, std::uint64_t,
                                         std::uint32_t) {
  return later(sync_workers_.get(), caller, [this, &file] { return tree_->commit(file); });
}

Operation<Created> CephFileSystem::create(CallerContext caller, const Handle& directory,
                                          std::string_view name, const CreateHow& how) {
  return later(changers(), caller, [this, &who = caller.credentials, &directory, name, &how] {
    return tree_->create(who, directory, name, how);
  });
}

Operation<Created> CephFileSystem::mkdir(CallerContext caller, const Handle& directory,
                                         std::string_view name, const SetAttributes& attributes) {
  return later(changers(), caller,
               [this, &who = caller.credentials, &directory, name, &attributes] {
                 return tree_->mkdir(who, directory, name, attributes);
               });
}

Operation<Created> CephFileSystem::symlink(CallerContext caller, const Handle& directory,
                                           std::string_view name, std::string_view target,
                                           const SetAttributes& attributes) {
  return later(changers(), caller,
               [this, &who = caller.credentials, &directory, name, target, &attributes] {
                 return tree_->symlink(who, directory, name, target, attributes);
               });
}

Operation<Created> CephFileSystem::mknod(CallerContext caller, const Handle& directory,
                                         std::string_view name, Special special,
                                         const SetAttributes& attributes) {
  return later(changers(), caller,
               [this, &who = caller.credentials, &directory, name, special, &attributes] {
                 return tree_->mknod(who, directory, name, special, attributes);
               });
}

Operation<Linked> CephFileSystem::link(CallerContext caller, const Handle& file,
                                       const Handle& directory, std::string_view name) {
  return later(changers(), caller, [this, &who = caller.credentials, &file, &directory, name] {
    return tree_->link(who, file, directory, name);
  });
}

Operation<Change> CephFileSystem::remove(CallerContext caller, const Handle& directory,
                                         std::string_view name) {
  return later(changers(), caller, [this, &who = caller.credentials, &directory, name] {
    return tree_->remove(who, directory, name);
  });
}

Operation<Change> CephFileSystem::rmdir(CallerContext caller, const Handle& directory,
                                        std::string_view name) {
  return later(changers(), caller, [this, &who = caller.credentials, &directory, name] {
    return tree_->rmdir(who, directory, name);
  });
}

Operation<Renamed> CephFileSystem::rename(CallerContext caller, const Handle& from_directory,
                                          std::string_view from, const Handle& to_directory,
                                          std::string_view to) {
  return later(changers(), caller,
               [this, &who = caller.credentials, &from_directory, from, &to_directory, to] {
                 return tree_->rename(who, from_directory, from, to_directory, to);
               });
}

Operation<Listed> CephFileSystem::list(CallerContext caller, const Handle& directory, ListFrom from,
                                       DirectorySink& sink) {
  const auto page = co_await on_worker(
      workers_.get(), caller, [&] { return tree_->list(caller.credentials, directory, from); });
  if (!page) co_return Failure{page.error()};
  Listed listed = page->listed;
  for (const ceph::Tree::Entry& entry : page->entries) {
    const Node* node = entry.node ? &*entry.node : nullptr;
    if (!sink.entry({entry.name, entry.file_id, entry.cookie, node})) co_return listed;
  }
  listed.eof = page->complete;
  co_return listed;
}

Operation<Usage> CephFileSystem::usage(CallerContext caller) {
  return later(workers_.get(), caller, [this] { return tree_->usage(); });
}

Operation<ObjectAcls> CephFileSystem::acls(CallerContext caller, const Handle& object) {
  return later(workers_.get(), caller, [this, &object] { return tree_->acls(object); });
}

Operation<Change> CephFileSystem::set_acls(CallerContext caller, const Handle& object,
                                           const SetAcls& changes) {
  return later(changers(), caller, [this, &who = caller.credentials, &object, &changes] {
    return tree_->set_acls(who, object, changes);
  });
}

Operation<Change> CephFileSystem::deallocate(CallerContext caller, const Handle& file,
                                             std::uint64_t offset, std::uint64_t length) {
  return later(sync_workers_.get(), caller,
               [this, &who = caller.credentials, &file, offset, length] {
                 return tree_->deallocate(who, file, offset, length);
               });
}

Operation<std::string> CephFileSystem::xattr(CallerContext caller, const Handle& object,
                                             std::string_view name) {
  return later(workers_.get(), caller, [this, &who = caller.credentials, &object, name] {
    return tree_->xattr(who, object, name);
  });
}

Operation<Change> CephFileSystem::set_xattr(CallerContext caller, const Handle& object,
                                            std::string_view name, std::string_view value,
                                            XattrMode mode) {
  return later(changers(), caller, [this, &who = caller.credentials, &object, name, value, mode] {
    return tree_->set_xattr(who, object, name, value, mode);
  });
}

Operation<std::vector<std::string>> CephFileSystem::list_xattrs(CallerContext caller,
                                                                const Handle& object) {
  return later(workers_.get(), caller, [this, &object] { return tree_->list_xattrs(object); });
}

Operation<Change> CephFileSystem::remove_xattr(CallerContext caller, const Handle& object,
                                               std::string_view name) {
  return later(changers(), caller, [this, &who = caller.credentials, &object, name] {
    return tree_->remove_xattr(who, object, name);
  });
}

Operation<std::shared_ptr<Lease>> CephFileSystem::lease(CallerContext, const Handle&, LeaseKind,
                                                        LeaseWanted) {
  return Failure{Status::Access};
}

}  // namespace stag::vfs
