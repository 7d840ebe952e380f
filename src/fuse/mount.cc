#include "fuse/mount.h"

#define FUSE_USE_VERSION 314
#include <fcntl.h>
#include <fmt/format.h>
#include <fuse_lowlevel.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <coroutine>
#include <new>
#include <random>

#include "base/completion.h"
#include "base/task_group.h"
#include "fuse/init_answer.h"
#include "fuse/last_calls.h"
#include "fuse/mount_point.h"
#include "fuse/operations.h"
#include "fuse/values.h"
#include "net/descriptor.h"

namespace stag::fuse {
namespace {

using nfs::client::Error;
using nfs::client::FileSystem;
using nfs::client::Handle;
using nfs::client::Node;
using nfs::client::Outcome;

constexpr std::uint32_t kLargest = 1u << 20;  // bytes of one READ or WRITE of the kernel
constexpr std::uint32_t kBackground = 64;     // requests that the kernel sends unasked
constexpr int kRequestsATurn = 16;
// Requests that may wait in the kernel at a time, for those that wait until these are read.
constexpr std::size_t kLongestQueue = 4096;
constexpr auto kMemoryPause = std::chrono::milliseconds(50);  // before memory is tried for again

struct EndSession {
  void operator()(fuse_session* session) const { fuse_session_destroy(session); }
};

class Mounted final : public Mount, private net::Reader {
 public:
  Mounted(net::EpollLoop& loop, FileSystem& files, const Node& root, const MountOptions& options)
      : loop_(loop),
        files_(files),
        sizes_(files.sizes()),
        locks_(files.has_locks()),
        operations_(loop, files, root.handle, data_, requests_,
                    {.valid = options.valid,
                     .direct = options.direct,
                     .seeks = options.seeks,
                     .home = root.attributes.file_system_id,
                     .own = std::random_device()()}),
        place_(options.directory) {}
  ~Mounted() override {
    files_.set_flush({});
    unmount();
  }

  std::optional<Error> begin(const MountOptions& options);
  Task<void> unmounted() override;
  Task<void> settled(CancelSource& calls) override;
  void unmount() override;

  // What the kernel asks for (the functions of libfuse below).
  Operations& operations() { return operations_; }
  void add(Task<void> task) { tasks_.add(std::move(task)); }
  void agree(fuse_conn_info& connection);
  ssize_t answer(int device, std::span<const iovec> pieces);
  WriteKind kind_of(fuse_req_t write, const fuse_file_info& info) const;
  // The memory of the request that is being processed, which is not used for another one then.
  Memory keep_request() {
    return Memory(static_cast<std::byte*>(std::exchange(next_.mem, nullptr)));
  }
  Buffers& requests() { return requests_; }

 private:
  void on_readable() override;
  // False when there is nothing more to read just now.
  bool read_request();
  void end();
  // As Operations::WhenRead.
  void when_read(Loop::Function function);
  void tell_read();

  // Before a file that the server has delegated for writing is given back.
  Task<bool> flush(Handle file);
  Task<void> flushed(Handle file, Completion<bool>& done);

  net::EpollLoop& loop_;
  FileSystem& files_;
  nfs::client::TransferSizes sizes_;
  const bool locks_;
  const bool by_root_ = geteuid() == 0;  // as whom servers are called, unless told otherwise
  // libfuse allocates them, and knows their size. Enough for what is unstable, and what is in
  // progress.
  Buffers requests_{0, Operations::kMostUnstable / kLargest + 16};
  Buffers data_{kLargest, 16};
  Operations operations_;
  TaskGroup tasks_;
  std::unique_ptr<fuse_session, EndSession> session_;
  MountPoint place_;
  bool ended_ = false;
  std::atomic<bool> agreed_ = false;  // and libfuse's next answer is the one that says so
  fuse_buf next_{};
  net::Descriptor descriptor_;
  Timer again_;
  Timer reading_;
  std::vector<Loop::Function> when_read_;
  std::size_t may_be_queued_ = 0;  // of what those wait for
  std::coroutine_handle<> waiter_;
};

Mounted& mounted(fuse_req_t request) {
  return *static_cast<Mounted*>(fuse_req_userdata(request));
}

// Runs an operation, or fails the request when there is no memory to begin it.
template <class Operation>
void run(fuse_req_t request, Operation operation) noexcept {
  try {
    Mounted& mount = mounted(request);
    mount.add(operation(mount.operations()));
  } catch (const std::bad_alloc&) {
    fuse_reply_err(request, ENOMEM);
  }
}

using Info = fuse_file_info*;
using Id = fuse_ino_t;

void begun(void* mount, fuse_conn_info* connection) {
  static_cast<Mounted*>(mount)->agree(*connection);
}
void lookup(fuse_req_t r, Id parent, const char* name) {
  run(r, [&](Operations& o) { return o.lookup(r, parent, name); });
}
void forget(fuse_req_t r, Id id, std::uint64_t lookups) {
  mounted(r).operations().forget(id, lookups);
  fuse_reply_none(r);
}
void forget_multi(fuse_req_t r, std::size_t count, fuse_forget_data* forgotten) {
  for (const fuse_forget_data& one : std::span(forgotten, count))
    mounted(r).operations().forget(one.ino, one.nlookup);
  fuse_reply_none(r);
}
void getattr(fuse_req_t r, Id id, Info) {
  run(r, [&](Operations& o) { return o.getattr(r, id); });
}
void setattr(fuse_req_t r, Id id, struct stat* wanted, int to_set, Info) {
  run(r, [&](Operations& o) { return o.setattr(r, id, *wanted, to_set); });
}
void access(fuse_req_t r, Id id, int mask) {
  run(r, [&](Operations& o) { return o.access(r, id, mask); });
}
void readlink(fuse_req_t r, Id id) {
  run(r, [&](Operations& o) { return o.readlink(r, id); });
}
void mknod(fuse_req_t r, Id parent, const char* name, mode_t mode, dev_t device) {
  run(r, [&](Operations& o) { return o.mknod(r, parent, name, mode, device); });
}
void mkdir(fuse_req_t r, Id parent, const char* name, mode_t mode) {
  run(r, [&](Operations& o) { return o.mkdir(r, parent, name, mode); });
}
void unlink(fuse_req_t r, Id parent, const char* name) {
  run(r, [&](Operations& o) { return o.unlink(r, parent, name); });
}
void rmdir(fuse_req_t r, Id parent, const char* name) {
  run(r, [&](Operations& o) { return o.rmdir(r, parent, name); });
}
void symlink(fuse_req_t r, const char* target, Id parent, const char* name) {
  run(r, [&](Operations& o) { return o.symlink(r, target, parent, name); });
}
void rename(fuse_req_t r, Id parent, const char* name, Id new_parent, const char* new_name,
            unsigned flags) {
  // NFS cannot exchange names, nor refuse a name that is taken.
  if (flags != 0) return static_cast<void>(fuse_reply_err(r, EINVAL));
  run(r, [&](Operations& o) { return o.rename(r, parent, name, new_parent, new_name); });
}
void link(fuse_req_t r, Id file, Id parent, const char* name) {
  run(r, [&](Operations& o) { return o.link(r, file, parent, name); });
}
void create(fuse_req_t r, Id parent, const char* name, mode_t mode, Info info) {
  run(r, [&](Operations& o) { return o.create(r, parent, name, mode, *info); });
}
void open(fuse_req_t r, Id id, Info info) {
  run(r, [&](Operations& o) { return o.open(r, id, *info); });
}
void release(fuse_req_t r, Id id, Info info) {
  run(r, [&](Operations& o) { return o.release(r, id, *info); });
}
void read(fuse_req_t r, Id id, std::size_t size, off_t offset, Info info) {
  const auto from = static_cast<std::uint64_t>(offset);
  run(r, [&](Operations& o) { return o.read(r, id, info->fh, size, from); });
}
void write(fuse_req_t r, Id id, const char* data, std::size_t size, off_t offset, Info info) {
  run(r, [&](Operations& o) {
    Mounted& mount = mounted(r);
    return o.write(r, id, info->fh, static_cast<std::uint64_t>(offset), mount.keep_request(),
                   Bytes(reinterpret_cast<const std::byte*>(data), size), mount.requests(),
                   mount.kind_of(r, *info));
  });
}
void flush(fuse_req_t r, Id id, Info info) {
  run(r, [&](Operations& o) { return o.flush(r, id, *info); });
}
void fsync(fuse_req_t r, Id id, int, Info info) {
  run(r, [&](Operations& o) { return o.fsync(r, id, info->fh); });
}
// A change of a directory is on stable storage when it returns.
void fsyncdir(fuse_req_t r, Id, int, Info) {
  fuse_reply_err(r, 0);
}
void opendir(fuse_req_t r, Id id, Info info) {
  run(r, [&](Operations& o) { return o.opendir(r, id, *info); });
}
void readdir(fuse_req_t r, Id id, std::size_t size, off_t offset, Info info) {
  const auto from = static_cast<std::uint64_t>(offset);
  run(r, [&](Operations& o) { return o.readdir(r, id, size, from, info->fh, false); });
}
void readdirplus(fuse_req_t r, Id id, std::size_t size, off_t offset, Info info) {
  const auto from = static_cast<std::uint64_t>(offset);
  run(r, [&](Operations& o) { return o.readdir(r, id, size, from, info->fh, true); });
}
void releasedir(fuse_req_t r, Id, Info info) {
  mounted(r).operations().releasedir(r, info->fh);
}
void statfs(fuse_req_t r, Id id) {
  run(r, [&](Operations& o) { return o.statfs(r, id); });
}

void getxattr(fuse_req_t r, Id id, const char* name, std::size_t most) {
  run(r, [&](Operations& o) { return o.getxattr(r, id, name, most); });
}
void setxattr(fuse_req_t r, Id id, const char* name, const char* value, std::size_t size,
              int flags) {
  run(r, [&](Operations& o) { return o.setxattr(r, id, name, {value, size}, flags); });
}
void listxattr(fuse_req_t r, Id id, std::size_t most) {
  run(r, [&](Operations& o) { return o.listxattr(r, id, most); });
}
void removexattr(fuse_req_t r, Id id, const char* name) {
  run(r, [&](Operations& o) { return o.removexattr(r, id, name); });
}
void lseek(fuse_req_t r, Id id, off_t offset, int whence, Info) {
  const auto from = static_cast<std::uint64_t>(offset);
  run(r, [&](Operations& o) { return o.lseek(r, id, from, whence); });
}
void fallocate(fuse_req_t r, Id id, int mode, off_t offset, off_t length, Info) {
  const auto from = static_cast<std::uint64_t>(offset), size = static_cast<std::uint64_t>(length);
  run(r, [&](Operations& o) { return o.fallocate(r, id, mode, from, size); });
}
void copy_file_range(fuse_req_t r, Id source, off_t source_offset, Info, Id target,
                     off_t target_offset, Info, std::size_t length, int) {
  const auto from = static_cast<std::uint64_t>(source_offset);
  const auto to = static_cast<std::uint64_t>(target_offset);
  run(r, [&](Operations& o) { return o.copy_file_range(r, source, from, target, to, length); });
}

void getlk(fuse_req_t r, Id id, Info info, struct flock* lock) {
  run(r, [&](Operations& o) { return o.getlk(r, id, *info, *lock); });
}
void setlk(fuse_req_t r, Id id, Info info, struct flock* lock, int waits) {
  run(r, [&](Operations& o) { return o.setlk(r, id, *info, *lock, waits != 0); });
}
void flock_file(fuse_req_t r, Id id, Info info, int how) {
  run(r, [&](Operations& o) { return o.flock(r, id, *info, how); });
}

// As libfuse reads and writes by itself, but for the answer to FUSE_INIT.
ssize_t answer(int device, iovec* pieces, int count, void* mount) {
  return static_cast<Mounted*>(mount)->answer(device, {pieces, static_cast<std::size_t>(count)});
}
ssize_t receive(int device, void* to, std::size_t size, void*) {
  return ::read(device, to, size);
}
constexpr fuse_custom_io kDevice{answer, receive, nullptr, nullptr};

constexpr fuse_lowlevel_ops functions() {
  fuse_lowlevel_ops to{};
  to.init = begun;
  to.lookup = lookup;
  to.forget = forget;
  to.forget_multi = forget_multi;
  to.getattr = getattr;
  to.setattr = setattr;
  to.access = access;
  to.readlink = readlink;
  to.mknod = mknod;
  to.mkdir = mkdir;
  to.unlink = unlink;
  to.rmdir = rmdir;
  to.symlink = symlink;
  to.rename = rename;
  to.link = link;
  to.create = create;
  to.open = open;
  to.release = release;
  to.read = read;
  to.write = write;
  to.flush = flush;
  to.fsync = fsync;
  to.fsyncdir = fsyncdir;
  to.opendir = opendir;
  to.readdir = readdir;
  to.readdirplus = readdirplus;
  to.releasedir = releasedir;
  to.statfs = statfs;
  to.getxattr = getxattr;
  to.setxattr = setxattr;
  to.listxattr = listxattr;
  to.removexattr = removexattr;
  to.lseek = lseek;
  to.fallocate = fallocate;
  to.copy_file_range = copy_file_range;
  return to;
}
constexpr fuse_lowlevel_ops kFunctions = functions();

// Without them the kernel keeps locks itself.
constexpr fuse_lowlevel_ops functions_with_locks() {
  fuse_lowlevel_ops to = functions();
  to.getlk = getlk;
  to.setlk = setlk;
  to.flock = flock_file;
  return to;
}
constexpr fuse_lowlevel_ops kFunctionsWithLocks = functions_with_locks();

}  // namespace

std::optional<Error> Mounted::begin(const MountOptions& options) {
  std::string list =
      fmt::format("fsname={},subtype=stag,max_read={}", one_word(options.source), kLargest);
  for (const std::string& option : options.options) list += "," + option;
  fuse_args arguments{};
  const auto freed = [](fuse_args* args) { fuse_opt_free_args(args); };
  const std::unique_ptr<fuse_args, decltype(freed)> keep(&arguments, freed);
  for (const char* word : {"stag", "-o", list.c_str()})
    if (fuse_opt_add_arg(&arguments, word) != 0) throw std::bad_alloc();
  const fuse_lowlevel_ops& used = locks_ ? kFunctionsWithLocks : kFunctions;
  files_.set_flush([this](Handle file) { return flush(file); });
  session_.reset(fuse_session_new(&arguments, &used, sizeof(used), this));
  if (!session_) return Error::of_local("an option is none that FUSE knows: see above");
  if (!place_.mount(session_.get(), options.read_ahead)) return cannot_mount(options.directory);
  if (fuse_session_custom_io(session_.get(), &kDevice, fuse_session_fd(session_.get())) != 0)
    throw std::bad_alloc();
  net::UniqueFd device(fcntl(fuse_session_fd(session_.get()), F_DUPFD_CLOEXEC, 0));
  if (!device || fcntl(device.fd(), F_SETFL, O_NONBLOCK) != 0)
    return cannot_mount(options.directory);
  Result<net::Descriptor, Reason> watched = net::Descriptor::watch(loop_, std::move(device));
  if (!watched) return cannot_mount(options.directory);
  descriptor_ = *std::move(watched);
  descriptor_.when_readable(*this);
  operations_.set_invalidate([session = session_.get()](std::uint64_t number, std::int64_t from) {
    constexpr off_t kToTheEnd = 0;
    fuse_lowlevel_notify_inval_inode(session, number, from, kToTheEnd);
  });
  if (options.on_long_waits) operations_.set_on_long_waits(options.on_long_waits);
  if (options.on_given_up)
    operations_.set_on_given_up(
        [tell = options.on_given_up](const Inode& file, std::size_t bytes, const Error& why) {
          tell(file.opened_with ? file.opened_with->file_id : 0, bytes, why);
        });
  operations_.set_when_read([this](Loop::Function function) { when_read(std::move(function)); });
  return std::nullopt;
}

void Mounted::agree(fuse_conn_info& connection) {
  connection.max_write = std::min(connection.max_write, kLargest);
  connection.max_read = kLargest;
  connection.max_readahead = UINT32_MAX;  // the kernel's own limit is the lower one
  connection.max_background = kBackground;
  connection.time_gran = 1;
  agreed_ = true;
}

ssize_t Mounted::answer(int device, std::span<const iovec> pieces) {
  constexpr std::size_t kHeaderAndAnswer = 2;  // an error is a header alone
  if (agreed_ && agreed_.exchange(false) && pieces.size() == kHeaderAndAnswer)
    allow_parallel_directories({static_cast<std::byte*>(pieces[1].iov_base), pieces[1].iov_len});
  return writev(device, pieces.data(), static_cast<int>(pieces.size()));
}

WriteKind Mounted::kind_of(fuse_req_t write, const fuse_file_info& info) const {
  return {.append = (info.flags & O_APPEND) != 0,
          .cached = info.writepage != 0,
          .sync = (info.flags & (O_SYNC | O_DSYNC)) != 0,
          .unprivileged = by_root_ && fuse_req_ctx(write)->uid != 0};
}

void Mounted::on_readable() try {
  for (int i = 0; i < kRequestsATurn && !ended_; ++i)
    if (!read_request()) break;
  if (ended_) return tell_read();
  descriptor_.when_readable(*this);
} catch (const std::bad_alloc&) {
  // No other turn of the loop would read what the kernel asks for next.
  if (!ended_) descriptor_.when_readable(*this);
  throw;
}

bool Mounted::read_request() {
  if (next_.mem == nullptr) next_.mem = requests_.take_kept().release();
  const int got = fuse_session_receive_buf(session_.get(), &next_);
  if (got == -EINTR) return true;
  if (got == -EAGAIN) {
    descriptor_.mark_unreadable();
    tell_read();
    return false;
  }
  if (got == -ENOMEM) {
    again_ = loop_.after(kMemoryPause, [this] { on_readable(); });
    return false;
  }
  if (got <= 0) {
    end();
    return false;
  }
  fuse_session_process_buf(session_.get(), &next_);
  if (may_be_queued_ > 0 && --may_be_queued_ == 0) tell_read();
  if (fuse_session_exited(session_.get())) end();
  return true;
}

// A loop that has seen the queue empty hears of what came later in a later turn only.
void Mounted::when_read(Loop::Function function) {
  when_read_.push_back(std::move(function));
  may_be_queued_ = kLongestQueue;
  reading_ = loop_.after(Duration::zero(), [this] { on_readable(); });
}

void Mounted::tell_read() {
  may_be_queued_ = 0;
  for (Loop::Function& function : std::exchange(when_read_, {})) loop_.post(std::move(function));
}

void Mounted::end() {
  ended_ = true;
  descriptor_.close();
  tell_read();
  if (waiter_) loop_.post([waiter = std::exchange(waiter_, {})] { waiter.resume(); });
}

Task<void> Mounted::unmounted() {
  struct Ended {
    Mounted& mount;
    bool await_ready() const { return mount.ended_; }
    void await_suspend(std::coroutine_handle<> waiter) { mount.waiter_ = waiter; }
    void await_resume() const {}
  };
  co_await Ended{*this};
  unmount();
}

// A task of the mount, so that it does not outlive it.
Task<bool> Mounted::flush(Handle file) {
  Completion<bool> done;
  tasks_.add(flushed(file, done));
  co_return co_await done;
}

Task<void> Mounted::flushed(Handle file, Completion<bool>& done) {
  bool safe = false;
  try {
    safe = co_await operations_.make_safe(file);
  } catch (const std::bad_alloc&) {
  }
  done.complete(safe);
}

// What the server asks back meanwhile is flushed first, as before.
Task<void> Mounted::settled(CancelSource& calls) {
  const LastCalls last(loop_, operations_.unstable_writes(), files_.lease(), calls);
  operations_.stop();
  co_await tasks_.join();
  co_await operations_.close_all(calls);
  files_.set_flush({});
  co_await tasks_.join();
}

// The descriptor is closed first: the kernel waits for nobody who could answer then.
void Mounted::unmount() {
  if (!ended_) end();
  place_.unmount(session_.get());
  Memory(static_cast<std::byte*>(std::exchange(next_.mem, nullptr)));
}

Outcome<std::unique_ptr<Mount>> Mount::open(net::EpollLoop& loop, FileSystem& files,
                                            const Node& root, const MountOptions& options) {
  auto mount = std::make_unique<Mounted>(loop, files, root, options);
  if (std::optional<Error> error = mount->begin(options)) return Failure{*std::move(error)};
  return std::unique_ptr<Mount>(std::move(mount));
}

}  // namespace stag::fuse
