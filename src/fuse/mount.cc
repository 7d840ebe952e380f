#include "fuse/mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "fuse/init_answer.h"
#include "fuse/last_calls.h"
#include "fuse/mounted.h"
#include "fuse/values.h"

namespace stag::fuse {
namespace {

using nfs::client::Error;
using nfs::client::FileSystem;
using nfs::client::Handle;
using nfs::client::Node;
using nfs::client::Outcome;

constexpr std::uint32_t kBackground = 64;  // requests that the kernel sends unasked
constexpr int kRequestsATurn = 16;
// Requests that may wait in the kernel at a time, for those that wait until these are read.
constexpr std::size_t kLongestQueue = 4096;
constexpr auto kMemoryPause = std::chrono::milliseconds(50);  // before memory is tried for again

// As libfuse reads and writes by itself, but for the answer to FUSE_INIT.
ssize_t answer(int device, iovec* pieces, int count, void* mount) {
  return static_cast<Mounted*>(mount)->answer(device, {pieces, static_cast<std::size_t>(count)});
}
ssize_t receive(int device, void* to, std::size_t size, void*) {
  return ::read(device, to, size);
}
constexpr fuse_custom_io kDevice{answer, receive, nullptr, nullptr};

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
  const fuse_lowlevel_ops& used = functions(locks_);
  files_.set_flush([this](Handle file) { return flush(file); });
  session_.reset(fuse_session_new(&arguments, &used, sizeof(used), this));
  if (!session_) return Error::of_local("FUSE does not know one of the options: see above");
  if (!place_.mount(session_.get(), options.read_ahead)) return cannot_mount(options.directory);
  if (fuse_session_custom_io(session_.get(), &kDevice, fuse_session_fd(session_.get())) != 0)
    throw std::bad_alloc();
  UniqueFd device(fcntl(fuse_session_fd(session_.get()), F_DUPFD_CLOEXEC, 0));
  if (!device || fcntl(device.fd(), F_SETFL, O_NONBLOCK) != 0)
    return cannot_mount(options.directory);
  Result<net::Descriptor, Reason> watched = net::Descriptor::watch(loop_, std::move(device));
  if (!watched) return cannot_mount(options.directory);
  descriptor_ = *std::move(watched);
  descriptor_.when_readable(*this);
  const auto invalidate = [session = session_.get()](std::uint64_t number, std::int64_t from) {
    constexpr off_t kToTheEnd = 0;
    fuse_lowlevel_notify_inval_inode(session, number, from, kToTheEnd);
  };
  operations_.invalidations().set_tell(invalidate, &invalidating_);
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
  // By the mode alone it would give a group what the mask of a list allows, and the list denies.
  if (kernel_judges_) connection.want |= connection.capable & FUSE_CAP_POSIX_ACL;
  agreed_ = true;
}

// Where nobody hears the answers any more, libfuse would write a line for each that there is no
// device: as of a request that was interrupted it writes none.
ssize_t Mounted::answer(int device, std::span<const iovec> pieces) {
  if (ended_) {
    errno = ENOENT;
    return -1;
  }
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
  if (!pausing_) descriptor_.when_readable(*this);
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
    pause();
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

// What the kernel asks for stays readable, and would be tried in each turn of the loop.
void Mounted::pause() {
  again_ = loop_.after(kMemoryPause, [this] {
    pausing_ = false;
    on_readable();
  });
  pausing_ = true;
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
  begin_unmount();
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
  try {
    // Of files whose server answers, though what is in progress on others may not end.
    tasks_.add(operations_.make_written_safe(calls));
  } catch (const std::bad_alloc&) {  // close_all() does it
  }
  co_await tasks_.join();
  for (bool closed = false; !closed;) {
    try {
      co_await operations_.close_all(calls);
      closed = true;
    } catch (const std::bad_alloc&) {  // what is left to close is waited for
    }
    if (!closed) co_await sleep_for(loop_, kMemoryPause);
  }
  files_.set_flush({});
  co_await tasks_.join();
}

void Mounted::unmount() try {
  if (std::exchange(unmounting_, true)) return;
  latest_unmount_ = loop_.after(LastCalls::kCourtesy, [this] { begin_unmount(); });
  tasks_.add(unmount_written());
} catch (const std::bad_alloc&) {
  begin_unmount();
}

Task<void> Mounted::unmount_written() {
  try {
    co_await operations_.write_changed_pages();
  } catch (const std::bad_alloc&) {
  }
  begin_unmount();
}

// A thread that has the kernel drop pages uses the device, and keeps whoever unmounts waiting.
void Mounted::begin_unmount() {
  latest_unmount_ = {};
  operations_.invalidations().stop([this] { unmount_now(); });
}

// The descriptor is closed first: the kernel waits for nobody who could answer then.
void Mounted::unmount_now() {
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
