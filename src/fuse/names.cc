#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

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
using nfs::client::SetAttributes;
using nfs::client::Special;
using nfs::client::Status;

constexpr mode_t kModeBits = 07777;
constexpr std::string_view kSilly = ".stag-silly-";

std::optional<FileType> special_type(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO:
      return FileType::Fifo;
    case S_IFSOCK:
      return FileType::Socket;
    case S_IFBLK:
      return FileType::BlockDevice;
    case S_IFCHR:
      return FileType::CharacterDevice;
    default:
      return std::nullopt;
  }
}

SetAttributes with_mode(mode_t mode) {
  SetAttributes attributes;
  attributes.mode = mode & kModeBits;
  return attributes;
}

// As answers to RMDIR and RENAME; of version 4 a name that is taken (RFC 8881 18.26.3).
bool says_not_empty(const Outcome<Ok>& done) {
  return !done && (done.error().is(Status::NotEmpty) || done.error().is(Status::Exists));
}

}  // namespace

Task<void> Operations::lookup(fuse_req_t from, std::uint64_t parent, std::string name) {
  Request request(context_, from);
  const Handle directory = handle_of(request, parent);
  if (directory.empty()) co_return;
  if (made_directories_.lacks(parent, name, context_.loop.now())) co_return answer_absent(request);
  const Outcome<Node> node = co_await files_.lookup(directory, std::move(name));
  if (!node && node.error().is(Status::NoEntry)) co_return answer_absent(request);
  if (!node) co_return request.fail(node.error());
  Outcome<Attributes> attributes = node->attributes;
  const std::uint64_t number = inodes_.number_of(node->handle);
  if (lacks_writes(number, attributes)) attributes = co_await written_again(number, node->handle);
  if (!attributes) co_return request.fail(attributes.error());
  answer(request, Outcome<Node>(Node{node->handle, *attributes}));
}

Task<void> Operations::mknod(fuse_req_t from, std::uint64_t parent, std::string name, mode_t mode,
                             dev_t device) {
  Request request(context_, from);
  const Handle directory = handle_of(request, parent);
  if (directory.empty()) co_return;
  const std::optional<FileType> type = special_type(mode);
  if (!type) {
    answer_made(
        request, parent, name,
        co_await files_.create(directory, name, with_mode(mode), nfs::client::CreateMode::Guarded));
    co_return;
  }
  const Special special{*type, {major(device), minor(device)}};
  answer_made(request, parent, name,
              co_await files_.mknod(directory, name, special, with_mode(mode)));
}

Task<void> Operations::mkdir(fuse_req_t from, std::uint64_t parent, std::string name, mode_t mode) {
  Request request(context_, from);
  const Handle directory = handle_of(request, parent);
  if (directory.empty()) co_return;
  const Outcome<Node> node = co_await files_.mkdir(directory, name, with_mode(mode));
  const std::uint64_t number = answer_made(request, parent, name, node);
  if (number != 0) made_directories_.begin(number, node->attributes.change, context_.loop.now());
}

Task<void> Operations::symlink(fuse_req_t from, std::string target, std::uint64_t parent,
                               std::string name) {
  Request request(context_, from);
  const Handle directory = handle_of(request, parent);
  if (directory.empty()) co_return;
  answer_made(request, parent, name, co_await files_.symlink(directory, name, std::move(target)));
}

Task<void> Operations::link(fuse_req_t from, std::uint64_t file, std::uint64_t parent,
                            std::string name) {
  Request request(context_, from);
  const Handle linked = handle_of(request, file);
  if (linked.empty()) co_return;
  const Handle directory = handle_of(request, parent);
  if (directory.empty()) co_return;
  made_directories_.end(parent);
  const Outcome<Ok> done = co_await files_.link(linked, directory, std::move(name));
  if (!done) co_return request.fail(done.error());
  Outcome<Attributes> attributes = co_await files_.getattr(linked);
  if (lacks_writes(file, attributes)) attributes = co_await written_again(file, linked);
  if (!attributes) co_return request.fail(attributes.error());
  answer(request, Outcome<Node>(Node{linked, *attributes}));
}

Task<void> Operations::unlink(fuse_req_t from, std::uint64_t parent, std::string name) {
  Request request(context_, from);
  const Handle directory = handle_of(request, parent);
  if (directory.empty()) co_return;
  if (silly_files_.keeps_open(directory, name)) co_return request.fail(EBUSY);
  made_directories_.end(parent);
  const Outcome<std::optional<Handle>> kept = co_await keep_if_open(directory, name);
  if (!kept) co_return request.fail(kept.error());
  if (*kept) co_return request.done();
  answer(request, co_await files_.remove(directory, std::move(name)));
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
  const Outcome<std::optional<Handle>> kept = co_await keep_if_open(target, new_name);
  if (!kept) co_return request.fail(kept.error());
  Outcome<Ok> renamed = Ok{};
  for (bool asks = true; asks;) {
    std::vector<Handle> before = silly_files_.directories();
    renamed = co_await files_.rename(source, name, target, new_name);
    asks = false;
    if (says_not_empty(renamed)) asks = co_await emptied(target, new_name, std::move(before));
  }
  if (!renamed && *kept) co_await give_name_back(**kept, std::move(new_name));
  answer(request, renamed);
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

Task<Outcome<std::optional<Handle>>> Operations::keep_if_open(Handle directory, std::string name) {
  // Most names are removed while nothing is open, and cost no look-up then.
  if (inodes_.opens() == 0) co_return std::nullopt;
  const Outcome<Node> node = co_await files_.lookup(directory, name);
  if (!node && node.error().is(Status::NoEntry)) co_return std::nullopt;
  if (!node) co_return Failure{node.error()};
  const Inode* inode = inodes_.find(node->handle);
  if (inode == nullptr || inode->opens == 0) co_return std::nullopt;
  // Another link keeps the file.
  const std::uint64_t number = inodes_.number_of(node->handle);
  if (silly_files_.find(number) != nullptr || node->attributes.links > 1) co_return std::nullopt;
  std::string silly = fmt::format("{}{:x}-{:x}", kSilly, node->attributes.file_id, ++silly_names_);
  const Outcome<Ok> renamed = co_await files_.rename(directory, std::move(name), directory, silly);
  if (!renamed) co_return Failure{renamed.error()};
  const Inode* now = inodes_.find(node->handle);
  if (now != nullptr && now->opens > 0)
    silly_files_.add(number, {directory, std::move(silly)});
  else  // Closed meanwhile.
    static_cast<void>(co_await files_.remove(directory, std::move(silly)));
  co_return node->handle;
}

Task<void> Operations::give_name_back(Handle file, std::string name) {
  const std::uint64_t number = inodes_.number_of(file);
  const SillyName* found = silly_files_.find(number);
  if (found == nullptr) co_return;
  const SillyName silly = *found;
  const Outcome<Ok> renamed =
      co_await files_.rename(silly.directory, silly.name, silly.directory, std::move(name));
  if (renamed) silly_files_.forget(number);
}

Task<void> Operations::close_all(CancelToken end) {
  settling_.cancel();
  co_await background_.join();
  co_await unstable_writes_.make_all_safe(context_.loop, end);
  co_await settle_all(TimePoint::max());
  for (const nfs::client::File& file : open_files_.all())
    static_cast<void>(co_await files_.close(file));
  for (const SillyName& silly : silly_files_.names())
    static_cast<void>(co_await files_.remove(silly.directory, silly.name));
}

}  // namespace stag::fuse
