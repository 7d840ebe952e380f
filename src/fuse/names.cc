#include <sys/sysmacros.h>

#include <optional>

#include "fuse/operations.h"
#include "fuse/values.h"

namespace stag::fuse {
namespace {

using nfs::client::Attributes;
using nfs::client::FileType;
using nfs::client::Handle;
using nfs::client::Node;
using nfs::client::Outcome;
using nfs::client::SetAttributes;
using nfs::client::Special;
using nfs::client::Status;

constexpr mode_t kModeBits = 07777;

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

}  // namespace

Task<void> Operations::lookup(fuse_req_t from, std::uint64_t parent, std::string name) {
  Request request(context_, from);
  const Handle directory = handle_of(request, parent);
  if (directory.empty()) co_return;
  const Duration free = made_directories_.lacks(parent, name, context_.loop.now());
  if (free > Duration::zero()) co_return answer_absent(request, seconds_of(free));
  // What is found must not vanish before it is opened: that was tried already.
  std::optional<Removals::Look> look;
  if (const DirectoryName called{directory, name}; removals_.is_contended(called)) {
    co_await removals_.ended(called);
    look.emplace(removals_, called);
  }
  const Outcome<Node> node = co_await files_.lookup(directory, name);
  if (!node && node.error().is(Status::NoEntry)) co_return answer_absent(request, options_.valid);
  if (!node) co_return request.fail(node.error());
  Outcome<Attributes> attributes = node->attributes;
  const std::uint64_t number = inodes_.number_of(node->handle);
  if (lacks_writes(number, attributes)) attributes = co_await written_again(number, node->handle);
  if (!attributes) co_return request.fail(attributes.error());
  answer(request, parent, name, Outcome<Node>(Node{node->handle, *attributes}));
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
  const Outcome<Ok> done = co_await files_.link(linked, directory, name);
  new_files_.outdate(file);
  if (!done) co_return request.fail(done.error());
  Outcome<Attributes> attributes = co_await files_.getattr(linked);
  if (lacks_writes(file, attributes)) attributes = co_await written_again(file, linked);
  if (!attributes) co_return request.fail(attributes.error());
  answer(request, parent, name, Outcome<Node>(Node{linked, *attributes}));
}

}  // namespace stag::fuse
