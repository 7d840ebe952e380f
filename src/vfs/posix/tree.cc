#include "vfs/posix/tree.h"

#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <cstring>

#include "vfs/change_rules.h"
#include "vfs/file_format.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/errors.h"
#include "vfs/posix/residence.h"

namespace stag::vfs::posix {
namespace {

Time time_of(const struct statx_timestamp& time) {
  return {time.tv_sec, time.tv_nsec};
}

Residence residence_of_folder(const UniqueFd& folder) {
  struct statfs kind {};
  if (::statfs(ProcPath(folder).text(), &kind) != 0) return Residence::Elsewhere;
  return residence_of(kind.f_type);
}

std::string sentence(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

constexpr unsigned long kLargestBlock = 1 << 30;

bool knows_xattrs(const UniqueFd& root) {
  return ::getxattr(ProcPath(root).text(), "user.none", nullptr, 0) >= 0 || errno != EOPNOTSUPP;
}

}  // namespace

// What is uncommitted is not synced, which may take as long as there is data: its clients write it
// again.
Tree::~Tree() {
  if (losses_ != nullptr && cache_->give_up_uncommitted()) losses_->add();
}

Result<std::shared_ptr<Tree>, std::string> Tree::open(const Options& options) {
  if (would_serve_all_as_root())
    return Failure{"cannot act as the users who ask for files of " + options.root +
                   ": root needs CAP_SETUID and CAP_SETGID for that (or run as another user)"};
  std::shared_ptr<Tree> tree(new Tree);
  tree->durable_names_ = options.durable_names;
  tree->sees_local_programs_ = options.sees_local_programs;
  tree->workers_ = options.workers;
  tree->sync_workers_ = options.sync_workers;
  tree->cache_ = std::make_unique<ObjectCache>(options.cached_objects);
  std::string fault = tree->open_root(options);
  if (!fault.empty()) return Failure{std::move(fault)};
  return tree;
}

std::string Tree::open_root(const Options& options) {
  UniqueFd root(::open(options.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return sentence("cannot open the folder " + options.root);
  struct statvfs space {};
  if (::statvfs(ProcPath(root).text(), &space) != 0)
    return sentence("cannot reach " + options.root + " through /proc");
  struct statx root_stat {};
  if (::statx(root.fd(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &root_stat) != 0)
    return sentence("cannot read the attributes of " + options.root);
  device_ = ::makedev(root_stat.stx_dev_major, root_stat.stx_dev_minor);
  losses_ = &Losses::of(device_);
  // f_fsid stays the same over a restart of the machine where the file system has an identity;
  // device numbers may not.
  file_system_id_ = space.f_fsid != 0 ? space.f_fsid : device_;
  reported_fsid_ = options.file_system_id != 0 ? options.file_system_id : file_system_id_;
  limits_.max_file_size = kLargestFile;
  limits_.max_links =
      static_cast<std::uint32_t>(std::max(1L, ::pathconf(ProcPath(root).text(), _PC_LINK_MAX)));
  limits_.max_name = static_cast<std::uint32_t>(space.f_namemax);
  limits_.read_only = (space.f_flag & ST_RDONLY) != 0;
  limits_.xattrs = knows_xattrs(root);
  limits_.clone_block = static_cast<std::uint32_t>(std::min(space.f_bsize, kLargestBlock));
  const Residence residence = residence_of_folder(root);
  in_memory_ = residence == Residence::Memory;
  is_local_ = residence != Residence::Elsewhere;
  at_once_ = options.at_once == AtOnce::Automatic ? residence != Residence::Elsewhere
                                                  : options.at_once == AtOnce::Always;
  root_ = std::make_shared<Object>(Handle(), std::move(root), FileType::Directory);
  root_inode_ = root_stat.stx_ino;
  apart_by_ = what_tells_inodes_apart(root_stat);
  return choose_handles(options, root_stat);
}

std::string Tree::choose_handles(const Options& options, const struct statx& root) {
  const bool kernel = options.handles != HandleKind::Table && kernel_handles_work();
  if (options.handles == HandleKind::Kernel && !kernel)
    return "the kernel does not open files of " + options.root +
           " by handle (this needs root and a file system that can)";
  if (!kernel) {
    std::string path = InodeTable::kNoFile;
    if (!options.state_directory.empty()) {
      char name[64];
      std::snprintf(name, sizeof name, "/inodes-%016llx-%llu.sqlite",
                    static_cast<unsigned long long>(lasting_id(root)),
                    static_cast<unsigned long long>(root.stx_ino));
      path = options.state_directory + name;
    }
    auto table = InodeTable::open(path);
    if (!table)
      return "cannot keep file handles in " + table.error() +
             "; let the server write there, or move that file away: handles that clients have are "
             "stale then, until they look names up again";
    table_ = *std::move(table);
  }
  const auto handle = handle_of(root_->path, root);
  if (!handle) return "cannot name " + options.root + ": " + std::string(to_string(handle.error()));
  UniqueFd path(::fcntl(root_->path.fd(), F_DUPFD_CLOEXEC, 0));
  if (!path) return sentence("cannot open the folder " + options.root);
  root_ = std::make_shared<Object>(*handle, std::move(path), FileType::Directory);
  identity_ = identity_of(*handle, root);
  return {};
}

Outcome<struct statx> Tree::stat(const UniqueFd& descriptor) const {
  struct statx stat {};
  if (::statx(descriptor.fd(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &stat) != 0)
    return last_error();
  if (stat.stx_nlink == 0)
    return Failure{Status::Stale};  // The object is only kept alive by this open descriptor.
  return stat;
}

Attributes Tree::attributes_of(const struct statx& stat) const {
  Attributes result;
  result.type = type_of_mode(stat.stx_mode);
  result.mode = stat.stx_mode & 07777u;
  result.links = stat.stx_nlink;
  result.uid = stat.stx_uid;
  result.gid = stat.stx_gid;
  result.size = stat.stx_size;
  result.used = stat.stx_blocks * 512;
  result.device = {stat.stx_rdev_major, stat.stx_rdev_minor};
  result.file_system_id = reported_fsid_;
  result.file_id = stat.stx_ino;
  result.accessed = time_of(stat.stx_atime);
  result.modified = time_of(stat.stx_mtime);
  result.changed = time_of(stat.stx_ctime);
  result.change =
      static_cast<std::uint64_t>(stat.stx_ctime.tv_sec) * 1'000'000'000 + stat.stx_ctime.tv_nsec;
  if ((stat.stx_mask & STATX_BTIME) != 0) result.created = time_of(stat.stx_btime);
  return result;
}

Outcome<Attributes> Tree::attributes_of(const Object& object) const {
  const auto stat_result = stat(object.path);
  if (!stat_result) return Failure{stat_result.error()};
  Attributes result = attributes_of(*stat_result);
  result.change = object.change.seen(result.change);
  return result;
}

Outcome<Attributes> Tree::attributes_after_change(const Object& object) const {
  const auto stat_result = stat(object.path);
  if (!stat_result) return Failure{stat_result.error()};
  Attributes result = attributes_of(*stat_result);
  result.change = object.change.changed(result.change);
  return result;
}

Outcome<Usage> Tree::usage() {
  struct statvfs space {};
  if (::statvfs(ProcPath(root_->path).text(), &space) != 0) return last_error();
  Usage usage;
  usage.total_bytes = space.f_blocks * space.f_frsize;
  usage.free_bytes = space.f_bfree * space.f_frsize;
  usage.available_bytes = space.f_bavail * space.f_frsize;
  usage.total_files = space.f_files;
  usage.free_files = space.f_ffree;
  usage.available_files = space.f_favail;
  return usage;
}

// One job at a time: where the disk does not answer, it takes one worker.
void Tree::close_unused() noexcept {
  if (closing_unused_.exchange(true)) return;
  if (!run_by_worker(&Tree::close_unused_now)) closing_unused_ = false;  // The next time.
}

bool Tree::run_by_worker(void (Tree::*work)()) noexcept try {
  const auto workers = workers_.lock();
  if (workers == nullptr) {
    (this->*work)();
    return true;
  }
  Executor::Job job;
  job.work = [weak = weak_from_this(), work, of = workers.get()] {
    prepare_worker_thread(of);
    if (const auto tree = weak.lock()) (tree.get()->*work)();
  };
  job.deliver = [](void*, Executor::Function) {};
  // It may be the last to hold the tree, which is closed where blocking is allowed.
  job.must_run = true;
  return workers->submit(std::move(job));
} catch (const std::bad_alloc&) {
  return false;
}

void Tree::close_unused_now() {
  struct End {
    std::atomic<bool>& closing;
    ~End() { closing = false; }
  } const end{closing_unused_};
  cache_->close_unused_writers();
  close_removed();
}

// What has failed for want of room may be tried again behind a look that began later, by any
// thread.
void Tree::close_removed() {
  const std::uint64_t begun = closing_removed_begun_;
  const std::lock_guard alone(closing_removed_);
  if (closing_removed_begun_ != begun) return;
  ++closing_removed_begun_;
  cache_->drop_removed();
}

bool Tree::make_room() noexcept try {
  if (!is_worker_thread()) return false;
  close_removed();
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// Data that was written before may be lost, although no restart happened. Quota and full disk,
// which some file systems notice only at a sync, keep their own Status, so that the client can
// report them.
Status Tree::lost(int error) {
  losses_->add();
  return is_full(error) ? status_of(error) : Status::Io;
}

// What the server may not read or write (without root, a directory to drop files into) is changed
// nevertheless: that gets to the disk with the next sync of its file system.
Outcome<SharedDescriptor> Tree::prepare_sync(Object& object) {
  const bool syncs = object.type == FileType::Regular || object.type == FileType::Directory;
  if (!durable_names_ || !syncs) return SharedDescriptor();
  auto opened = object.open_to_sync();
  if (!opened && (opened.error() == Status::Access || opened.error() == Status::Perm))
    return SharedDescriptor();
  return opened;
}

std::optional<Status> Tree::sync(Object& object, const SharedDescriptor& prepared) {
  if (prepared == nullptr) return std::nullopt;
  // File systems go on failing where names are lost: there nobody has to wait for others.
  std::unique_lock<std::mutex> alone;
  if (object.type == FileType::Regular) alone = object.sync_alone();
  return flush(object, *prepared, ::fsync);
}

std::optional<Status> Tree::sync(Object& object) {
  const auto prepared = prepare_sync(object);
  return prepared ? sync(object, *prepared) : std::nullopt;
}

std::optional<Status> Tree::flush(Object& object, const UniqueFd& opened, int (*sync)(int)) {
  const std::uint64_t writes = object.unstable_writes();
  std::optional<Status> fault;
  if (sync(opened.fd()) != 0) fault = lost(errno);
  object.note_synced(writes);
  return fault;
}

Tree::Observation::Observation(const Tree& tree, ObjectRef object)
    : tree_(tree),
      object_(std::move(object)),
      ticket_(object_->changes.begin()),
      before_(tree.attributes_of(*object_)) {}

Tree::Observation::~Observation() {
  if (!finished_) object_->changes.end(ticket_);
}

// What others change while the disk writes is not taken for a part of this change.
Outcome<Change> Tree::finish_durably(Observation& observation, const SharedDescriptor& prepared) {
  const Change change = observation.finish();
  if (const auto fault = sync(observation.object(), prepared)) return Failure{*fault};
  return change;
}

Change Tree::Observation::finish(bool changed) {
  Change change;
  const auto after =
      changed ? tree_.attributes_after_change(*object_) : tree_.attributes_of(*object_);
  if (after) change.after = *after;
  finished_ = true;
  const bool alone = object_->changes.end(ticket_);
  if (before_ && alone) change.before = before_of(*before_);
  if (before_ && !alone) change.change_before = before_->change;
  return change;
}

}  // namespace stag::vfs::posix
