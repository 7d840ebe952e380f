#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "fuse/operations.h"
#include "fuse/values.h"

namespace stag::fuse {
namespace {

using nfs::client::Attributes;
using nfs::client::CreateMode;
using nfs::client::Error;
using nfs::client::File;
using nfs::client::FileSystem;
using nfs::client::FileType;
using nfs::client::Handle;
using nfs::client::LockOwner;
using nfs::client::Node;
using nfs::client::Opened;
using nfs::client::Outcome;
using nfs::client::ReadPart;
using nfs::client::SetAttributes;
using nfs::client::Status;

// Whether what the kernel has cached of a file is what the server has. Versions 2 and 3 have no
// `change`; by them a file may be changed twice within one tick of the server's clock.
bool unchanged(const Attributes& before, const Attributes& now) {
  return before.changed == now.changed && before.modified == now.modified &&
         before.size == now.size && before.change == now.change;
}

// Whether a file could not be made because something else has the name by now.
Task<bool> is_taken(FileSystem& files, const Handle& directory, const std::string& name,
                    const Error& refusal) {
  if (refusal.kind != Error::Kind::Nfs) co_return false;
  const Outcome<Node> there = co_await files.lookup(directory, name);
  co_return there && there->attributes.type != FileType::Regular;
}

}  // namespace

// What is appended goes where the server's file ends, which the kernel's pages do not know.
bool Operations::is_direct(int flags) const {
  return options_.direct || (flags & O_APPEND) != 0;
}

// Whether close(2) has something to do: to commit what was written, or to unlock.
bool Operations::flushes(int flags) const {
  return files_.has_locks() || (flags & O_ACCMODE) != O_RDONLY;
}

std::uint64_t Operations::add_open(std::uint64_t number, const File& file,
                                   const fuse_file_info& info) {
  return open_files_.add(number, {.file = file,
                                  .known_failures = unstable_writes_.failures(number),
                                  .direct = info.direct_io != 0,
                                  .writes = (info.flags & O_ACCMODE) != O_RDONLY,
                                  .reads = (info.flags & O_ACCMODE) != O_WRONLY});
}

Task<void> Operations::create(fuse_req_t from, std::uint64_t parent, std::string name, mode_t mode,
                              fuse_file_info info) {
  Request request(context_, from);
  const Handle directory = handle_of(request, parent);
  if (directory.empty()) co_return;
  SetAttributes attributes;
  attributes.mode = mode & 07777;
  const bool exclusive = (info.flags & O_EXCL) != 0;
  if (!exclusive && (info.flags & O_TRUNC)) attributes.size = 0;
  const bool closes = flushes(info.flags);
  const CreateMode how = !exclusive ? CreateMode::Unchecked
                         : closes   ? CreateMode::ExclusiveButTimes
                                    : CreateMode::Exclusive;
  const Outcome<Opened> opened =
      co_await files_.create_open(directory, name, attributes, how, access_of_open(info.flags));
  if (!opened) {
    made_directories_.end(parent);
    bool taken = false;
    if (!exclusive) taken = co_await is_taken(files_, directory, name, opened.error());
    // The kernel, to which the name was free, looks it up again.
    if (taken) co_return request.fail(ESTALE);
    co_return request.fail(opened.error());
  }
  const File& file = opened->file;
  const TimePoint now = context_.loop.now();
  made_directories_.on_made(parent, name, opened->directory, now);
  const std::uint64_t number = inodes_.enter(file.handle);
  // One that is made anew is known to be nobody else's.
  if (exclusive && closes) {
    new_files_.begin(number, file.handle, opened->attributes, opened->times_due, now);
    settling_.ask();
  }
  const fuse_entry_param entry = entry_of({file.handle, opened->attributes}, number);
  inodes_.call(number, parent, name);
  inodes_.on_told(number);
  Inode& inode = *inodes_.find(number);
  inodes_.open(inode);
  inode.opened_with = opened->attributes;
  info.direct_io = is_direct(info.flags);
  info.fh = add_open(number, file, info);
  info.noflush = !closes;
  const fuse_req_t waiting = request.take();
  if (waiting != nullptr && fuse_reply_create(waiting, &entry, &info) == 0) co_return;
  // The kernel gave the request up, and will neither close nor forget.
  begin_close(number, info.fh);
  forget(number, 1);
}

Task<bool> Operations::begin_change(Request& request, std::uint64_t number) {
  co_await changes_.left_ended(number);
  if (!request.waits()) co_return false;
  request.begin_change(changes_, number);
  co_return true;
}

Task<Outcome<Attributes>> Operations::truncated(std::uint64_t number, Handle file) {
  // What is written again after a restart of the server would make the file longer.
  const Outcome<Ok> committed = co_await unstable_writes_.commit(number);
  if (!committed) co_return Failure{committed.error()};
  SetAttributes empty;
  empty.size = 0;
  const std::optional<Turns::Turn> turn = co_await turn_of_write(number);
  new_files_.outdate(number);
  Outcome<Attributes> emptied = co_await files_.change(file, empty);
  inodes_.on_told(number);
  if (emptied) new_files_.on_change(number);
  co_return emptied;
}

Task<void> Operations::open(fuse_req_t from, std::uint64_t number, fuse_file_info info) {
  Request request(context_, from);
  const Handle handle = handle_of(request, number);
  if (handle.empty()) co_return;
  // Before the server is asked, so that who removes the file meanwhile keeps it.
  Use use(*this, number);
  const Outcome<Opened> opened = co_await open_there(number, handle, access_of_open(info.flags));
  if (!opened) co_return request.fail(opened.error());
  const File& file = opened->file;
  Outcome<Attributes> attributes = opened->attributes;
  bool emptying = (info.flags & O_TRUNC) != 0;
  if (emptying) emptying = co_await begin_change(request, number);
  if (emptying)
    attributes = co_await truncated(number, handle);
  else if (lacks_writes(number, attributes))
    attributes = co_await written_again(number, handle);
  if (!attributes) request.fail(attributes.error());
  const fuse_req_t waiting = request.take();
  if (waiting != nullptr) {
    Inode* const inode = inodes_.find(number);
    info.keep_cache = inode->opened_with && unchanged(*inode->opened_with, *attributes);
    info.direct_io = is_direct(info.flags);
    info.noflush = !flushes(info.flags);
    // The answer to an open has no attributes; the size that the kernel knows may be an old one.
    if (!info.keep_cache) invalidations_.attributes(number);
    inode->opened_with = *attributes;
    inodes_.on_told(number);
    info.fh = add_open(number, file, info);
    if (fuse_reply_open(waiting, &info) == 0) co_return use.keep();
    open_files_.remove(number, info.fh);
  }
  static_cast<void>(co_await files_.close(file));
}

// The kernel looks the name up again where it hears ESTALE.
Task<Outcome<Opened>> Operations::open_there(std::uint64_t number, Handle file,
                                             std::uint32_t asked) {
  co_await removals_.ended(number);
  // One that lost its name before, and has just been closed for the last time, is opened in vain.
  while (removals_.lost(number) != nullptr && silly_files_.being_removed(file)) {
    co_await silly_files_.name_removed(file);
    co_await removals_.ended(number);
  }
  Outcome<Opened> opened = co_await files_.open(file, asked);
  const DirectoryName* const found = removals_.lost(number);
  if (found == nullptr) co_return opened;
  const DirectoryName lost = *found;
  // Some servers open what has no name any more, for as long as they happen to have it open.
  if (opened && opened->attributes.links == 0) {
    static_cast<void>(co_await files_.close(opened->file));
    opened = Failure{Error::of_status({"open", {}}, Status::Stale)};
  }
  const bool stale = !opened && opened.error().is(Status::Stale);
  if (stale) removals_.contend(lost);
  const SillyName* const kept = stale ? silly_files_.find(number) : nullptr;
  if (kept == nullptr) co_return opened;
  // Version 4.0 opens by the name that was found last.
  static_cast<void>(co_await files_.lookup(kept->directory, kept->name));
  co_return co_await files_.open(file, asked);
}

void Operations::release(fuse_req_t from, std::uint64_t number, std::uint64_t opened) noexcept {
  begin_close(number, opened);
  fuse_reply_err(from, 0);
}

// Before the kernel can ask for anything that would meet the name of a removed file, or locks that
// nobody has any more.
void Operations::begin_close(std::uint64_t number, std::uint64_t opened) noexcept {
  OpenFiles::Node gone = open_files_.remove(number, opened);
  std::optional<SillyFiles::Removal> removal = closed(number);
  if (!gone) return;
  OpenFiles::Ending& ending = gone.mapped();
  if (removal) ending.removal.emplace(*std::move(removal));
  if (!ending.open.lock_owners.empty()) ending.unlocking.emplace(unlocks_, number);
  closes_.begin(std::move(gone));
}

Task<void> Operations::prepare_close(std::uint64_t number, const OpenFiles::Open& open) {
  // What killed programs have left in progress may be kept as well.
  co_await changes_.left_ended(number);
  // Pages of a mapping are written after close(2), when it ends. What there is no memory for is
  // tried again, with all that it is about.
  const Outcome<Ok> committed = co_await unstable_writes_.commit(number);
  if (!committed && committed.error().out_of_memory()) throw std::bad_alloc();
  const Outcome<Ok> settled = co_await settling_.settle(number);
  if (!settled && settled.error().out_of_memory()) throw std::bad_alloc();
  const Inode* inode = inodes_.find(number);
  if (inode == nullptr || inode->opens == 0) {
    unstable_writes_.forget(number);
    new_files_.end(number);
  }
  unstable_writes_.on_close(number, open.file, open_files_.find_writing(number));
}

Task<void> Operations::read(fuse_req_t from, std::uint64_t number, std::uint64_t opened,
                            std::size_t size, std::uint64_t offset) {
  Request request(context_, from);
  const Ongoing::Operation transfer(transfers_, number);
  if (!open_files_.is_direct(number, opened)) request.locks_pages(invalidations_, number);
  const File file = file_of(request, number, opened);
  if (file.handle.empty() || !request.waits()) co_return;
  Memory memory = buffers_.take();
  if (!memory) co_return request.fail(ENOMEM);
  const MutableBytes to(memory.get(), std::min(size, buffers_.size()));
  request.holds(to.size());
  Outcome<std::size_t> filled = std::size_t{0};
  Outcome<Ok> committed = Ok{};
  do {
    const std::uint64_t kept_end = unstable_writes_.kept_end(number);
    filled = co_await read_all(file, offset, to);
    const bool ends_early = filled && *filled < to.size() && offset + *filled < kept_end;
    if (!ends_early && !unstable_writes_.is_doubtful(number)) break;
    committed = co_await unstable_writes_.commit(number);
  } while (committed);
  if (!committed)
    request.fail(committed.error());
  else if (!filled)
    request.fail(filled.error());
  else if (const fuse_req_t waiting = request.take())
    fuse_reply_buf(waiting, reinterpret_cast<const char*>(to.data()), *filled);
  buffers_.give_back(std::move(memory));
}

// To the kernel a short answer is the end of the file.
Task<Outcome<std::size_t>> Operations::read_all(File file, std::uint64_t offset, MutableBytes to) {
  std::size_t filled = 0;
  ReadPart part;
  while (filled < to.size() && !part.eof) {
    const std::size_t most = std::min<std::size_t>(to.size() - filled, files_.sizes().read);
    const Outcome<ReadPart> read =
        co_await files_.read(file, offset + filled, to.subspan(filled, most));
    if (!read) co_return Failure{read.error()};
    part = *read;
    filled += part.count;
    if (part.count == 0 && !part.eof) co_return Failure{Error::of_local("the server sent no data")};
  }
  co_return filled;
}

Task<void> Operations::write(fuse_req_t from, std::uint64_t number, std::uint64_t opened,
                             std::uint64_t offset, Memory memory, Bytes data, Buffers& used,
                             WriteKind kind) {
  Request request(context_, from);
  const Ongoing::Operation transfer(transfers_, number);
  if (kind.cached || !open_files_.is_direct(number, opened))
    request.locks_pages(invalidations_, number);
  const File file = file_of(request, number, opened);
  const std::size_t size = data.size();
  request.holds(size);
  // The kernel may send the pieces of one write(2) side by side, in order.
  std::optional<Turns::Turn> appending;
  if (kind.append) appending.emplace(co_await appends_.alone(number));
  const bool begun = co_await begin_change(request, number);
  std::size_t written = 0;
  bool failed = !begun;
  const bool clears_set_ids =
      kind.unprivileged && open_files_.is_direct(number, opened) && has_set_ids(number);
  if ((kind.append || clears_set_ids) && !failed) {
    const Outcome<Attributes> now =
        co_await begin_direct(request, number, file.handle, kind.unprivileged);
    failed = !now;
    if (failed)
      request.fail(now.error());
    else if (kind.append)
      offset = now->size;
  }
  if (!failed) {
    // Times that were set before are set before.
    const std::optional<Turns::Turn> turn = co_await turn_of_write(number);
    const Outcome<std::size_t> done =
        co_await unstable_writes_.write(number, file, offset, memory, data);
    inodes_.on_told(number);
    if (!done) request.fail(done.error());
    if (done) written = *done;
    if (done) new_files_.on_write(number, offset, written);
    // To write(2) a part is an answer; of changed pages the rest would be lost.
    if (kind.cached && written < size) request.fail(EIO);
  }
  appending.reset();
  // Of other files the kernel sends an FSYNC, once for all the WRITEs of a write(2).
  if (kind.sync && written > 0 && open_files_.is_direct(number, opened)) {
    const Outcome<Ok> synced = co_await sync(number, opened);
    if (!synced) request.fail(synced.error());
  }
  // It is done: a program that holds pages that are dropped may wait for it.
  request.end_change();
  if (kind.append) co_await outdate_cached(request, number, opened, offset);
  if (const fuse_req_t waiting = request.take()) fuse_reply_write(waiting, written);
  used.give_back(std::move(memory));
}

// Before the program that has written hears of it. By an open that is not cached some kernels write
// past the pages that others have (Linux 6.1): a program that reads behind the old end of the file
// finds zeros there until the kernel has asked for the attributes, which it does not believe where
// an invalidation comes after its question. By a cached one the kernel has written to its pages,
// and keeps them locked until it is answered.
Task<void> Operations::outdate_cached(const Request& request, std::uint64_t number,
                                      std::uint64_t opened, std::uint64_t offset) {
  const bool drops = open_files_.is_direct(number, opened) && open_files_.is_any_cached(number);
  bool told = false;
  if (drops) told = co_await invalidations_.pages(number, offset);
  if (!drops && !request.waits()) co_await invalidations_.attributes_left(number);
  if (!told && request.waits()) invalidations_.attributes(number);
}

// The kernel appends where it believes that the file ends; others may have written meanwhile.
Task<Outcome<Attributes>> Operations::begin_direct(const Request& request, std::uint64_t number,
                                                   Handle file, bool unprivileged) {
  Outcome<Attributes> now = co_await files_.getattr(file);
  if (now && unprivileged && (now->mode & kSetIds) != 0)
    now = co_await without_set_ids(request, number, file, *now);
  if (lacks_writes(number, now)) now = co_await written_again(number, file);
  co_return now;
}

// As the kernel does before it writes to pages. A server clears them where another one than root
// writes, also where it takes root for nobody, whom it lets change no mode.
Task<Outcome<Attributes>> Operations::without_set_ids(const Request& request, std::uint64_t number,
                                                      Handle file, Attributes before) {
  SetAttributes cleared;
  cleared.mode = before.mode & ~kSetIds;
  const std::optional<Turns::Turn> turn = co_await turn_of_change(number);
  Outcome<Attributes> set = co_await files_.change(file, cleared);
  outdate(request, number);
  if (set) remember_mode(number, set->mode);
  if (!set && (set.error().is(Status::Access) || set.error().is(Status::NotOwner)))
    co_return before;
  co_return set;
}

bool Operations::has_set_ids(std::uint64_t number) {
  const Inode* inode = inodes_.find(number);
  return inode != nullptr && inode->opened_with && (inode->opened_with->mode & kSetIds) != 0;
}

void Operations::remember_mode(std::uint64_t number, std::uint32_t mode) {
  Inode* inode = inodes_.find(number);
  if (inode != nullptr && inode->opened_with) inode->opened_with->mode = mode;
}

bool Operations::lacks_writes(std::uint64_t number, const Outcome<Attributes>& attributes) const {
  if (!attributes) return false;
  return attributes->size < unstable_writes_.kept_end(number) ||
         unstable_writes_.is_doubtful(number);
}

Task<Outcome<Attributes>> Operations::written_again(std::uint64_t number, Handle file) {
  const Outcome<Ok> committed = co_await unstable_writes_.commit(number);
  if (!committed) co_return Failure{committed.error()};
  co_return co_await files_.getattr(file);
}

Outcome<Ok> Operations::told(std::uint64_t number, std::uint64_t opened, Outcome<Ok> committed,
                             Tell tell) {
  std::uint64_t* known = open_files_.known_failures(number, opened);
  const std::uint64_t failures = unstable_writes_.failures(number);
  if (known == nullptr || *known == failures) return committed;
  if (tell == Tell::Once) *known = failures;
  return Failure{unstable_writes_.failure(number)};
}

Task<bool> Operations::make_safe(Handle file) {
  const std::uint64_t number = inodes_.number_of(file);
  if (number == 0) co_return true;
  co_return co_await unstable_writes_.make_safe(number);
}

Task<void> Operations::write_changed_pages() {
  co_await invalidations_.pages_of(open_files_.with_changed_pages());
}

Task<Outcome<Ok>> Operations::sync(std::uint64_t number, std::uint64_t opened) {
  Outcome<Ok> committed = co_await unstable_writes_.commit(number);
  Outcome<Ok> settled = co_await settling_.settle(number);
  const Outcome<Ok> done = told(number, opened, std::move(committed), Tell::Once);
  if (!done) co_return done;
  co_return settled;
}

Task<void> Operations::fsync(fuse_req_t from, std::uint64_t number, std::uint64_t opened) {
  Request request(context_, from);
  const Outcome<Ok> done = co_await sync(number, opened);
  answer(request, done);
}

}  // namespace stag::fuse
