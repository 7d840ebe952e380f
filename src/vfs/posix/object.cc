#include "vfs/posix/object.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>

#include "vfs/posix/credentials.h"
#include "vfs/posix/errors.h"

namespace stag::vfs::posix {

namespace {

// In which nobody has used a writer, before it is closed; the first may begin just behind a use.
constexpr int kRounds = 2;
constexpr int kRoundsOfPrecious = 7;

}  // namespace

ProcPath::ProcPath(const UniqueFd& descriptor) {
  std::snprintf(text_, sizeof text_, "/proc/self/fd/%d", descriptor.fd());
}

Outcome<SharedDescriptor> Object::open(SharedDescriptor& slot, int flags) {
  {
    std::lock_guard lock(mutex_);
    if (&slot == &writer_) writer_rounds_ = 0;
    if (slot != nullptr) return slot;
  }
  if (type == FileType::Directory)
    flags |= O_DIRECTORY;
  else if (type != FileType::Regular)
    return Failure{Status::Invalid};
  if (const auto leased = lease()) leased->give_up();
  auto opened = open_file(flags);
  if (!opened) return opened;
  std::lock_guard lock(mutex_);
  if (slot == nullptr) slot = *opened;
  return opened;
}

Outcome<SharedDescriptor> Object::open_file(int flags) {
  const auto open_path = [&] {
    return ::open(ProcPath(path).text(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  };
  int fd = open_path();
  if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
    ObjectCache::drop_all();
    fd = open_path();
  }
  if (fd < 0) return last_error();
  return std::make_shared<const UniqueFd>(UniqueFd(fd));
}

Outcome<SharedDescriptor> Object::open_reader() {
  return open(reader_, O_RDONLY);
}
Outcome<SharedDescriptor> Object::open_writer() {
  return open(writer_, O_WRONLY);
}

SharedMapping Object::mapping_for(std::uint64_t size, std::size_t reading) {
  // To map a page and unmap it again costs three times as much as a mapping saves in one read.
  constexpr std::uint64_t kTimesReadBefore = 2;
  SharedMapping outgrown;
  std::lock_guard lock(mutex_);
  if (mapping_ != nullptr && mapping_->length() >= size) return mapping_;
  bytes_read_ += reading;
  if (reader_ == nullptr || bytes_read_ / kTimesReadBefore < size) return nullptr;
  bytes_read_ = 0;
  outgrown = std::exchange(mapping_, Mapping::of(*reader_, size));
  return mapping_;
}

void Object::set_writer(UniqueFd descriptor) {
  auto opened = std::make_shared<const UniqueFd>(std::move(descriptor));
  keeps_writer_ = is_writer_precious();
  std::lock_guard lock(mutex_);
  writer_rounds_ = 0;
  if (writer_ == nullptr) writer_ = std::move(opened);
}

bool Object::is_writer_precious() const {
  if (can_switch_users()) return false;
  struct stat found {};
  return ::fstat(path.fd(), &found) == 0 && (found.st_mode & S_IWUSR) == 0;
}

// What others have of the descriptor they took under the mutex, or from one who holds it.
bool Object::is_writer_free() const {
  const bool leased = lease_ != nullptr && lease_->descriptor() == writer_;
  return writer_ != nullptr && writer_.use_count() == 1 && !leased && !has_uncommitted();
}

void Object::close_writer() {
  SharedDescriptor closed;
  const bool precious = is_writer_precious();
  std::lock_guard lock(mutex_);
  if (is_writer_free() && !precious) closed.swap(writer_);
  keeps_writer_ = writer_ != nullptr && precious;
}

void Object::reconsider_writer() {
  const bool precious = is_writer_precious();
  std::lock_guard lock(mutex_);
  keeps_writer_ = writer_ != nullptr && precious;
}

bool Object::has_unused_writer() {
  std::lock_guard lock(mutex_);
  return is_writer_free() && ++writer_rounds_ >= kRounds;
}

void Object::close_unused_writer() {
  SharedDescriptor closed;
  const bool precious = is_writer_precious();
  std::lock_guard lock(mutex_);
  if (is_writer_free() && writer_rounds_ >= (precious ? kRoundsOfPrecious : kRounds))
    closed.swap(writer_);
  keeps_writer_ = writer_ != nullptr && precious;
}

Outcome<SharedDescriptor> Object::open_to_sync() {
  if (SharedDescriptor opened = writer()) return opened;
  auto opened = open_reader();
  if (opened || opened.error() != Status::Access || type != FileType::Regular) return opened;
  return open_writer();
}

void Object::note_synced(std::uint64_t writes) {
  std::uint64_t known = synced_writes_.load();
  while (known < writes && !synced_writes_.compare_exchange_weak(known, writes)) {
  }
}

void Object::sync_uncommitted(Losses& losses) {
  struct stat found {};
  if (::fstat(path.fd(), &found) == 0 && found.st_nlink == 0) return;  // it has no name left
  const std::uint64_t writes = unstable_writes();
  SharedDescriptor opened = writer();
  if (opened == nullptr) opened = reader();
  // Not by open_file(), which may close other objects, and these still others.
  UniqueFd own;
  if (opened == nullptr)
    own = UniqueFd(::open(ProcPath(path).text(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  const int fd = opened != nullptr ? opened->fd() : own.fd();
  if (fd < 0 || ::fdatasync(fd) != 0) losses.add();
  note_synced(writes);
}

bool Object::is_removed() const {
  struct statx found {};
  return ::statx(path.fd(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &found) == 0 &&
         (found.stx_mask & STATX_NLINK) != 0 && found.stx_nlink == 0;
}

Object::SyncTurn Object::begin_synced_write(const SharedDescriptor& shared) {
  std::unique_lock alone(syncing_, std::try_to_lock);
  if (alone) return {std::move(alone), shared};
  if (lease() == nullptr)
    if (auto own = open_file(O_WRONLY)) return {{}, *std::move(own)};
  alone.lock();
  return {std::move(alone), shared};
}

bool Object::closes_at_once() const {
  {
    const std::lock_guard lock(mutex_);
    if (reader_ != nullptr || writer_ != nullptr || mapping_ != nullptr) return false;
  }
  struct stat found {};
  return ::fstat(path.fd(), &found) == 0 && found.st_nlink != 0;
}

namespace {

template <class Work>
bool passed_to(const std::weak_ptr<Executor>& workers, Work work) noexcept {
  const auto executor = workers.lock();
  if (executor == nullptr) return false;
  auto prepared = [work = std::move(work), of = executor.get()]() mutable {
    prepare_worker_thread(of);
    work();
  };
  Executor::Job job{std::move(prepared), {}, [](void*, Executor::Function) {}};
  job.must_run = true;
  return executor->submit(std::move(job));
}

// Workers of a store that answers must not wait for one that does not.
bool is_own_worker(const Closing& closing) {
  return is_worker_of(closing.workers) || is_worker_of(closing.sync_workers);
}

// Acts as the server: the last user may let go of the object within a CredentialScope, by what a
// client makes the cache evict.
struct CloseObject {
  void operator()(Object* object) const noexcept {
    const ServerScope as_server;
    if (closing.losses != nullptr && object->has_uncommitted()) return sync_and_close(object);
    if (is_own_worker(closing) || (closing.on_loops && object->closes_at_once())) {
      delete object;
      return;
    }
    auto close = [object, leaving = closing.leaving] {
      delete object;
      if (leaving != nullptr) --leaving->to_close;
    };
    if (closing.leaving != nullptr) ++closing.leaving->to_close;
    if (!passed_to(closing.workers, close)) close();
  }
  void sync_and_close(Object* object) const noexcept {
    auto close = [object, losses = closing.losses, leaving = closing.leaving] {
      object->sync_uncommitted(*losses);
      delete object;
      if (leaving != nullptr) --leaving->to_sync;
    };
    if (closing.leaving != nullptr) ++closing.leaving->to_sync;
    if (!passed_to(closing.sync_workers, close)) close();
  }
  const Closing closing;
};

}  // namespace

ObjectRef make_object(const Handle& handle, UniqueFd path, FileType type, Closing closing) {
  return {new Object(handle, std::move(path), type), CloseObject{std::move(closing)}};
}

// The caches of this process.
struct ObjectCache::Registry {
  std::mutex mutex;
  std::vector<ObjectCache*> caches;
  std::size_t sharing = 0;            // of these
  std::atomic<std::size_t> share{0};  // objects of each that shares

  void divide(std::size_t among) {
    rlimit limit{};
    const std::size_t descriptors = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
    share = std::clamp<std::size_t>(descriptors / 8 / std::max<std::size_t>(among, 1), 64, 8192);
  }
};

// It outlives every cache.
ObjectCache::Registry& ObjectCache::registry() {
  static Registry& one = *new Registry;
  return one;
}

ObjectCache::ObjectCache(std::size_t capacity) : capacity_(capacity) {
  std::vector<ObjectRef> evicted;  // closed after the lock
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  const std::size_t sharing = all.sharing + (capacity_ == 0 ? 1 : 0);
  if (sharing > all.sharing) {
    all.divide(sharing);
    for (ObjectCache* cache : all.caches) cache->evict(cache->kept_by_a_shard(), evicted);
  }
  // The last that may fail: what is registered must live.
  all.caches.push_back(this);
  all.sharing = sharing;
}

ObjectCache::~ObjectCache() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  std::erase(all.caches, this);
  if (capacity_ == 0) all.divide(--all.sharing);
}

std::size_t ObjectCache::kept_by_a_shard() const {
  const std::size_t objects = capacity_ != 0 ? capacity_ : registry().share.load();
  return std::max<std::size_t>(objects / kShards, 4);
}

void ObjectCache::evict(std::size_t keep, std::vector<ObjectRef>& evicted) {
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    evict(shard, keep, evicted);
  }
}

ObjectRef ObjectCache::find(const Handle& handle) {
  Shard& shard = shard_of(handle);
  std::lock_guard lock(shard.mutex);
  const auto at = shard.index.find(handle);
  if (at == shard.index.end()) return nullptr;
  shard.recent.splice(shard.recent.begin(), shard.recent, at->second);
  if ((*at->second)->spared) (*at->second)->spared = false;
  return *at->second;
}

// References are made under the shard's lock only, so that an object without other references has
// none until it is removed from the cache. One pass: what is put in front is not met again.
void ObjectCache::evict(Shard& shard, std::size_t keep, std::vector<ObjectRef>& evicted) const {
  std::size_t spared = kept_by_a_shard() / 4;
  auto behind = shard.recent.end();
  for (std::size_t left = shard.recent.size(); left > 0 && shard.recent.size() > keep; --left) {
    const auto at = std::prev(behind);
    if (at->use_count() > 1) {
      behind = at;
    } else if ((*at)->has_uncommitted() && has_too_much_to_sync()) {
      shard.recent.splice(shard.recent.begin(), shard.recent, at);
    } else if (spared > 0 && !(*at)->spared && (*at)->is_worth_keeping()) {
      --spared;
      (*at)->spared = true;
      shard.recent.splice(shard.recent.begin(), shard.recent, at);
    } else {
      shard.index.erase((*at)->handle);
      evicted.push_back(std::move(*at));
      behind = shard.recent.erase(at);
    }
  }
}

ObjectRef ObjectCache::insert(ObjectRef object) {
  std::vector<ObjectRef> evicted;  // closed after the lock
  Shard& shard = shard_of(object->handle);
  std::lock_guard lock(shard.mutex);
  const auto at = shard.index.find(object->handle);
  if (at != shard.index.end()) {
    evicted.push_back(std::move(object));
    return *at->second;
  }
  shard.recent.push_front(object);
  shard.index.emplace(object->handle, shard.recent.begin());
  evict(shard, kept_by_a_shard(), evicted);
  return object;
}

void ObjectCache::drop(const Handle& handle) {
  ObjectRef dropped;
  Shard& shard = shard_of(handle);
  std::lock_guard lock(shard.mutex);
  const auto at = shard.index.find(handle);
  if (at == shard.index.end()) return;
  dropped = std::move(*at->second);
  shard.recent.erase(at->second);
  shard.index.erase(at);
}

void ObjectCache::close_unused_writers() {
  for (Shard& shard : shards_) {
    std::vector<ObjectRef> unused;
    {
      std::lock_guard lock(shard.mutex);
      for (const ObjectRef& object : shard.recent)
        if (object->has_unused_writer()) unused.push_back(object);
    }
    for (const ObjectRef& object : unused) object->close_unused_writer();
  }
}

// Of a removed file nothing is synced: nobody finds it again.
void ObjectCache::drop_removed() {
  for (Shard& shard : shards_) {
    std::vector<ObjectRef> removed;  // closed after the lock, behind the others
    {
      std::lock_guard lock(shard.mutex);
      removed.assign(shard.recent.begin(), shard.recent.end());
    }
    std::erase_if(removed, [](const ObjectRef& object) { return !object->is_removed(); });
    for (const ObjectRef& object : removed) {
      object->note_synced(object->unstable_writes());
      drop(object->handle);
    }
  }
}

bool ObjectCache::give_up_uncommitted() {
  bool any = false;
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    for (const ObjectRef& object : shard.recent) {
      any = any || object->has_uncommitted();
      object->note_synced(object->unstable_writes());
    }
  }
  return any;
}

void ObjectCache::drop_all() {
  std::vector<ObjectRef> evicted;
  {
    Registry& all = registry();
    std::lock_guard lock(all.mutex);
    for (ObjectCache* cache : all.caches) cache->evict(0, evicted);
  }
  // What this thread closes itself comes last: where that hangs, the others' descriptors are free.
  for (ObjectRef& each : evicted) {
    const auto* const close = std::get_deleter<CloseObject>(each);
    if (close == nullptr || !is_own_worker(close->closing)) each.reset();
  }
}

}  // namespace stag::vfs::posix
