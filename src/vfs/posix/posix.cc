#include "vfs/posix/posix.h"

#include "base/loop.h"
#include "vfs/posix/credentials.h"

namespace stag::vfs {
namespace {

// Runs `work` by `executor`, on a thread prepared for it; Delay when that has no room.
template <class Work>
auto blocking(const std::shared_ptr<Executor>& executor, Caller caller, Work work) {
  const auto prepared = [work = std::move(work)] {
    posix::prepare_worker_thread();
    return work();
  };
  return offloaded_to(executor.get(), caller.client, caller.loop, prepared, Failure{Status::Delay});
}

}  // namespace

Result<std::unique_ptr<PosixFileSystem>, std::string> PosixFileSystem::open(
    const Options& options) {
  auto tree = posix::Tree::open(options);
  if (!tree) return Failure{tree.error()};
  return std::unique_ptr<PosixFileSystem>(new PosixFileSystem(*std::move(tree), options));
}

PosixFileSystem::PosixFileSystem(std::unique_ptr<posix::Tree> tree, const Options& options)
    : tree_(std::move(tree)), workers_(options.workers), sync_workers_(options.sync_workers) {}

PosixFileSystem::~PosixFileSystem() {
  if (workers_ == nullptr) return;
  // To close what is open may block as much as to use it.
  Executor::Job job{[tree = std::move(tree_)] {}, {}, [](void*, Executor::Function) {}};
  job.must_run = true;
  workers_->submit(std::move(job));
}

const std::shared_ptr<Executor>& PosixFileSystem::changers() const {
  return tree_->durable_names() ? sync_workers_ : workers_;
}

bool PosixFileSystem::serves_all_as_one() {
  return !posix::can_switch_users();
}

Operation<Attributes> PosixFileSystem::attributes(Caller caller, const Handle& object) {
  if (auto answer = tree_->attributes_at_once(object)) co_return *std::move(answer);
  co_return co_await blocking(workers_, caller, [&] { return tree_->attributes(object); });
}

Operation<Change> PosixFileSystem::set_attributes(Caller caller, const Handle& object,
                                                  const SetAttributes& changes,
                                                  std::optional<Time> guard) {
  co_return co_await blocking(changers(), caller, [&] {
    return tree_->set_attributes(caller.credentials, object, changes, guard);
  });
}

Operation<Found> PosixFileSystem::lookup(Caller caller, const Handle& directory,
                                         std::string_view name) {
  if (auto answer = tree_->lookup_at_once(caller.credentials, directory, name))
    co_return *std::move(answer);
  co_return co_await blocking(workers_, caller,
                              [&] { return tree_->lookup(caller.credentials, directory, name); });
}

Operation<Access> PosixFileSystem::access(Caller caller, const Handle& object,
                                          std::uint32_t asked) {
  if (auto answer = tree_->access_at_once(caller.credentials, object, asked))
    co_return *std::move(answer);
  co_return co_await blocking(workers_, caller,
                              [&] { return tree_->access(caller.credentials, object, asked); });
}

Operation<Link> PosixFileSystem::readlink(Caller caller, const Handle& symlink) {
  co_return co_await blocking(workers_, caller, [&] { return tree_->readlink(symlink); });
}

Operation<ReadResult> PosixFileSystem::read(Caller caller, const Handle& file, std::uint64_t offset,
                                            std::uint32_t count) {
  if (auto answer = tree_->read_at_once(caller.credentials, file, offset, count))
    co_return *std::move(answer);
  co_return co_await blocking(workers_, caller,
                              [&] { return tree_->read(caller.credentials, file, offset, count); });
}

Operation<WriteResult> PosixFileSystem::write(Caller caller, const Handle& file,
                                              std::uint64_t offset, Rope data,
                                              Stability stability) {
  if (auto answer = tree_->write_at_once(caller.credentials, file, offset, data, stability))
    co_return *std::move(answer);
  co_return co_await blocking(
      stability == Stability::Unstable ? workers_ : sync_workers_, caller,
      [&] { return tree_->write(caller.credentials, file, offset, data, stability); });
}

Operation<Change> PosixFileSystem::commit(Caller caller, const Handle& file, std::uint64_t,
                                          std::uint32_t) {
  co_return co_await blocking(sync_workers_, caller, [&] { return tree_->commit(file); });
}

Operation<Created> PosixFileSystem::create(Caller caller, const Handle& directory,
                                           std::string_view name, const CreateHow& how) {
  co_return co_await blocking(
      changers(), caller, [&] { return tree_->create(caller.credentials, directory, name, how); });
}

Operation<Created> PosixFileSystem::mkdir(Caller caller, const Handle& directory,
                                          std::string_view name, const SetAttributes& attributes) {
  co_return co_await blocking(changers(), caller, [&] {
    return tree_->mkdir(caller.credentials, directory, name, attributes);
  });
}

Operation<Created> PosixFileSystem::symlink(Caller caller, const Handle& directory,
                                            std::string_view name, std::string_view target,
                                            const SetAttributes& attributes) {
  co_return co_await blocking(changers(), caller, [&] {
    return tree_->symlink(caller.credentials, directory, name, target, attributes);
  });
}

Operation<Created> PosixFileSystem::mknod(Caller caller, const Handle& directory,
                                          std::string_view name, Special special,
                                          const SetAttributes& attributes) {
  co_return co_await blocking(changers(), caller, [&] {
    return tree_->mknod(caller.credentials, directory, name, special, attributes);
  });
}

Operation<Linked> PosixFileSystem::link(Caller caller, const Handle& file, const Handle& directory,
                                        std::string_view name) {
  co_return co_await blocking(
      changers(), caller, [&] { return tree_->link(caller.credentials, file, directory, name); });
}

Operation<Change> PosixFileSystem::remove(Caller caller, const Handle& directory,
                                          std::string_view name) {
  co_return co_await blocking(changers(), caller,
                              [&] { return tree_->remove(caller.credentials, directory, name); });
}

Operation<Change> PosixFileSystem::rmdir(Caller caller, const Handle& directory,
                                         std::string_view name) {
  co_return co_await blocking(changers(), caller,
                              [&] { return tree_->rmdir(caller.credentials, directory, name); });
}

Operation<Renamed> PosixFileSystem::rename(Caller caller, const Handle& from_directory,
                                           std::string_view from, const Handle& to_directory,
                                           std::string_view to) {
  co_return co_await blocking(changers(), caller, [&] {
    return tree_->rename(caller.credentials, from_directory, from, to_directory, to);
  });
}

Operation<Listed> PosixFileSystem::list(Caller caller, const Handle& directory, ListFrom from,
                                        DirectorySink& sink) {
  const auto page = co_await blocking(
      workers_, caller, [&] { return tree_->list(caller.credentials, directory, from); });
  if (!page) co_return Failure{page.error()};
  Listed listed = page->listed;
  for (const posix::Tree::Entry& entry : page->entries) {
    const Node* node = entry.node ? &*entry.node : nullptr;
    if (!sink.entry({entry.name, entry.file_id, entry.cookie, node})) co_return listed;
  }
  listed.eof = page->complete;
  co_return listed;
}

Operation<Usage> PosixFileSystem::usage(Caller caller) {
  co_return co_await blocking(workers_, caller, [&] { return tree_->usage(); });
}

Operation<ObjectAcls> PosixFileSystem::acls(Caller caller, const Handle& object) {
  co_return co_await blocking(workers_, caller, [&] { return tree_->acls(object); });
}

Operation<Change> PosixFileSystem::set_acls(Caller caller, const Handle& object,
                                            const SetAcls& changes) {
  co_return co_await blocking(changers(), caller,
                              [&] { return tree_->set_acls(caller.credentials, object, changes); });
}

}  // namespace stag::vfs
