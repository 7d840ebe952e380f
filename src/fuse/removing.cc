// Names that are taken from objects. A file that programs have open, or are about to open, loses
// its last one only after it has got another one by which it stays (SillyFiles).
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/completion.h"
#include "fuse/operations.h"

namespace stag::fuse {
namespace {

using nfs::client::Attributes;
using nfs::client::Error;
using nfs::client::FileType;
using nfs::client::Handle;
using nfs::client::Node;
using nfs::client::Outcome;
using nfs::client::Status;

// As answers to RMDIR and RENAME; of version 4 a name that is taken (RFC 8881 18.26.3).
bool says_not_empty(const Outcome<Ok>& done) {
  return !done && (done.error().is(Status::NotEmpty) || done.error().is(Status::Exists));
}

}  // namespace

// A name that is being taken from what has it, and what that is.
struct Operations::Removing {
  Removing(std::uint64_t parent, const Handle& directory, const std::string& name)
      : parent(parent), name{directory, name} {}

  std::uint64_t parent;
  DirectoryName name;
  std::uint64_t number = 0;  // 0: nothing that the kernel knows
  bool contended = false;
  bool moved = false;  // it has lost the name already, and has that by which it stays
  std::optional<Removals::Removal> removal{};
  std::optional<Use> use{};  // while it gets that
};

Operations::Use::Use(Operations& all, std::uint64_t number) : all_(all), number_(number) {
  all_.inodes_.open(*all_.inodes_.find(number));
}

Operations::Use::~Use() {
  if (number_ != 0) all_.unused(number_);
}

Task<void> Operations::unlink(fuse_req_t from, std::uint64_t parent, std::string name) {
  Request request(context_, from);
  const Handle directory = handle_of(request, parent);
  if (directory.empty()) co_return;
  if (silly_files_.keeps_open(directory, name)) co_return request.fail(EBUSY);
  made_directories_.end(parent);
  Removing removing(parent, directory, name);
  Outcome<Ok> done = co_await begin(removing, Keep::ByRename);
  if (done && !removing.moved) done = co_await files_.remove(directory, std::move(name));
  inodes_.on_names_lost(parent);
  end(removing, done.ok());
  answer(request, done);
}

Task<void> Operations::rmdir(fuse_req_t from, std::uint64_t parent, std::string name) {
  Request request(context_, from);
  const Handle directory = handle_of(request, parent);
  if (directory.empty()) co_return;
  made_directories_.end(parent);
  Outcome<Ok> done = Ok{};
  for (bool asks = true; asks;) {
    std::vector<Handle> before = silly_files_.directories();
    done = co_await files_.rmdir(directory, name);
    asks = false;
    if (says_not_empty(done)) asks = co_await emptied(directory, name, std::move(before));
  }
  inodes_.on_names_lost(parent);
  answer(request, done);
}

Task<void> Operations::rename(fuse_req_t from, std::uint64_t parent, std::string name,
                              std::uint64_t new_parent, std::string new_name) {
  Request request(context_, from);
  const Handle source = handle_of(request, parent);
  if (source.empty()) co_return;
  const Handle target = handle_of(request, new_parent);
  if (target.empty()) co_return;
  if (silly_files_.keeps_open(source, name) || silly_files_.keeps_open(target, new_name))
    co_return request.fail(EBUSY);
  made_directories_.end(parent);
  made_directories_.end(new_parent);
  Removing replaced(new_parent, target, new_name);
  Outcome<Ok> done = co_await begin(replaced, Keep::ByLink);
  for (bool asks = done.ok(); asks;) {
    std::vector<Handle> before = silly_files_.directories();
    done = co_await files_.rename(source, name, target, new_name);
    asks = false;
    if (says_not_empty(done)) asks = co_await emptied(target, new_name, std::move(before));
  }
  if (!done && replaced.moved) co_await give_name_back(replaced.number, replaced.name);
  inodes_.on_names_lost(parent);
  inodes_.on_names_lost(new_parent);
  if (done) inodes_.rename(parent, name, new_parent, new_name);
  end(replaced, done.ok());
  answer(request, done);
}

// As with Linux's NFS client a directory waits for removals that are in progress, and holds what is
// open. Whether a file is open the kernel knows better: it queues its last close before the request
// that this is about, or else behind transfers of the file that go on.
Task<bool> Operations::emptied(Handle parent, std::string name, std::vector<Handle> before) {
  if (before.empty()) co_return false;
  const Outcome<Node> node = co_await files_.lookup(parent, std::move(name));
  if (!node) co_return false;
  const Handle directory = node->handle;
  const auto count = [&](const std::vector<Handle>& all) {
    return std::ranges::count(all, directory);
  };
  if (count(before) == 0) co_return false;
  for (const std::uint64_t number : silly_files_.open_in(directory))
    co_await transfers_.ended(number);
  Completion<Ok> read;
  when_read_([&read] { read.complete(Ok{}); });
  co_await read;
  co_await silly_files_.removed(directory);
  co_return count(silly_files_.directories()) < count(before);
}

// What has the name, where it may have to be kept; nullopt: nothing does, or nobody has a file
// open. No name of it is being removed.
Task<Outcome<std::optional<Node>>> Operations::found_to_keep(DirectoryName name, bool contended) {
  // Most names are removed while nothing is open, and cost no look-up then.
  while (contended || inodes_.opens() > 0) {
    const Outcome<Node> node = co_await files_.lookup(name.directory, name.name);
    if (!node && node.error().is(Status::NoEntry)) break;
    if (!node) co_return Failure{node.error()};
    const std::uint64_t number = inodes_.number_of(node->handle);
    if (!removals_.in_progress(number) && !silly_files_.being_removed(node->handle))
      co_return std::optional<Node>(*node);
    co_await removals_.ended(number);
    co_await silly_files_.name_removed(node->handle);
  }
  co_return std::nullopt;
}

// A program that opens the file from now on waits until it is known what came of the removal.
Task<Outcome<Ok>> Operations::begin(Removing& removing, Keep how) {
  const DirectoryName& name = removing.name;
  removing.removal.emplace(removals_, name);
  const bool contended = removals_.is_contended(name);
  if (contended) co_await removals_.looked(name);
  const Outcome<std::optional<Node>> found = co_await found_to_keep(name, contended);
  if (!found) co_return Failure{found.error()};
  // Perhaps since: who looks it up from now on waits.
  removing.contended = removals_.is_contended(name);
  const std::optional<Node>& node = *found;
  removing.number =
      node ? inodes_.number_of(node->handle) : inodes_.named(removing.parent, name.name);
  const Inode* const inode = inodes_.find(removing.number);
  if (inode == nullptr) co_return Ok{};
  removing.removal->is_of(removing.number);
  if (!node || (inode->opens == 0 && !removing.contended)) co_return Ok{};
  // Another link keeps the file; it may be a silly one.
  if (node->attributes.links > 1 || node->attributes.type == FileType::Directory) co_return Ok{};
  removing.use.emplace(*this, removing.number);
  co_return co_await keep(removing, *node, how);
}

// In a directory with the sticky bit a user who may link a file may not be allowed to remove the
// link: a renaming is refused at once.
Task<Outcome<Operations::Keep>> Operations::way_to_keep(Handle directory) {
  const Outcome<Attributes> attributes = co_await files_.getattr(directory);
  if (!attributes) co_return Failure{attributes.error()};
  co_return (attributes->mode & S_ISVTX) != 0 ? Keep::ByRename : Keep::ByLink;
}

// Where no Reply came the silly name may still appear.
Task<Outcome<Ok>> Operations::keep(Removing& removing, Node file, Keep how) {
  const std::uint64_t number = removing.number;
  SillyName silly = silly_name(number, removing.name.directory, file.attributes.file_id);
  Outcome<Ok> kept = Ok{};
  if (how == Keep::ByLink) {
    const Outcome<Keep> way = co_await way_to_keep(silly.directory);
    if (!way) co_return Failure{way.error()};
    how = *way;
  }
  if (how == Keep::ByLink) kept = co_await link_silly(file.handle, silly);
  // Another client was faster, and there is nothing to keep.
  if (!kept && kept.error().is(Status::Stale)) co_return Ok{};
  const bool no_links = !kept && kept.error().kind == Error::Kind::Nfs;
  const bool renames = how == Keep::ByRename || no_links;
  if (renames) {
    kept = co_await rename_to_silly(file.handle, removing.name, silly);
    removing.moved = kept.ok();
  }
  const bool unknown = !kept && kept.error().kind != Error::Kind::Nfs;
  if ((kept || unknown) && silly_files_.find(number) == nullptr)
    silly_files_.add(number, file.handle, std::move(silly));
  if (unknown && renames) co_await give_name_back(number, removing.name);
  co_return kept;
}

SillyName Operations::silly_name(std::uint64_t number, const Handle& directory,
                                 std::uint64_t file_id) {
  if (const SillyName* const known = silly_files_.find(number)) return *known;
  return {directory,
          fmt::format(".stag-silly-{:x}-{:x}-{:x}", file_id, options_.own, ++silly_names_)};
}

Task<Outcome<Ok>> Operations::link_silly(Handle file, SillyName silly) {
  Outcome<Ok> linked = co_await files_.link(file, silly.directory, silly.name);
  // The name is this mount's alone: it was the same LINK, repeated.
  if (!linked && linked.error().is(Status::Exists)) linked = Ok{};
  // Version 4.0 opens the file by the name that it was found by last.
  if (linked) static_cast<void>(co_await files_.lookup(silly.directory, silly.name));
  co_return linked;
}

Task<Outcome<Ok>> Operations::rename_to_silly(Handle file, DirectoryName name, SillyName silly) {
  Outcome<Ok> renamed =
      co_await files_.rename(name.directory, name.name, silly.directory, silly.name);
  // A repetition says that there is no such name.
  if (!renamed && renamed.error().is(Status::NoEntry)) {
    const Outcome<Node> there = co_await files_.lookup(silly.directory, silly.name);
    if (there && there->handle == file) renamed = Ok{};
  }
  co_return renamed;
}

// RENAME may have been executed whatever was heard of it: then the name is another file's.
Task<void> Operations::give_name_back(std::uint64_t number, DirectoryName name) {
  const SillyName* const found = silly_files_.find(number);
  if (found == nullptr) co_return;
  const SillyName silly = *found;
  const Outcome<Node> there = co_await files_.lookup(name.directory, name.name);
  if (there || !there.error().is(Status::NoEntry)) co_return;
  const Outcome<Ok> renamed =
      co_await files_.rename(silly.directory, silly.name, name.directory, std::move(name.name));
  if (renamed) silly_files_.forget(number);
}

void Operations::end(Removing& removing, bool done) {
  if (removing.removal && done) removing.removal->done();
  // A program that has looked up a contended name may not have opened the file yet.
  Inode* const inode = inodes_.find(removing.number);
  if (removing.use && removing.contended && done && inode->lookups > 0 && !inode->pinned) {
    removing.use->keep();
    inode->pinned = true;
  }
  // It has fewer links now, or a silly one more.
  new_files_.outdate(removing.number);
  inodes_.on_told(removing.number);
  removing.use.reset();
  removing.removal.reset();
}

void Operations::forget(std::uint64_t number, std::uint64_t lookups) noexcept {
  inodes_.forget(number, lookups);
  Inode* const inode = inodes_.find(number);
  if (inode == nullptr) return;
  if (inode->lookups == 0 && std::exchange(inode->pinned, false)) unused(number);
}

std::optional<SillyFiles::Removal> Operations::closed(std::uint64_t number) noexcept {
  const bool last = inodes_.close(number);
  if (!last) return std::nullopt;
  return silly_files_.closed(number);
}

void Operations::unused(std::uint64_t number) noexcept {
  std::optional<SillyFiles::Removal> removal = closed(number);
  const Inode* const inode = inodes_.find(number);
  if (inode == nullptr || inode->opens == 0) {
    unstable_writes_.forget(number);
    new_files_.end(number);
  }
  if (!removal) return;
  try {
    background_.add(remove(*std::move(removal)));
  } catch (const std::bad_alloc&) {  // the file keeps that name
  }
}

Task<void> Operations::remove(SillyFiles::Removal removal) {
  const SillyName name = removal.name();
  static_cast<void>(co_await files_.remove(name.directory, name.name));
}

Task<void> Operations::make_written_safe(CancelToken end) {
  return unstable_writes_.make_all_safe(context_.loop, end);
}

Task<void> Operations::close_all(CancelToken end) {
  co_await closes_.end();
  co_await settling_.end();
  co_await background_.join();
  co_await unstable_writes_.make_all_safe(context_.loop, end);
  for (const std::uint64_t number : new_files_.due(TimePoint::max()))
    static_cast<void>(co_await settling_.settle(number));
  for (const nfs::client::File& file : open_files_.all())
    static_cast<void>(co_await files_.close(file));
  for (const SillyName& silly : silly_files_.names())
    static_cast<void>(co_await files_.remove(silly.directory, silly.name));
}

}  // namespace stag::fuse
