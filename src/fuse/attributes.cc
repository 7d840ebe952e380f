#include <sys/statvfs.h>

#include <cerrno>

#include "fuse/operations.h"
#include "fuse/values.h"

namespace stag::fuse {

using nfs::client::Attributes;
using nfs::client::Error;
using nfs::client::File;
using nfs::client::FileSystemUsage;
using nfs::client::FileType;
using nfs::client::Handle;
using nfs::client::NameLimits;
using nfs::client::Outcome;
using nfs::client::SetAttributes;
using nfs::client::Status;

Task<void> Operations::getattr(fuse_req_t from, std::uint64_t number) {
  Request request(context_, from);
  const Handle object = handle_of(request, number);
  if (object.empty()) co_return;
  if (const auto known = new_files_.known(number, context_.loop.now()))
    co_return answer_once(request, number, *known);
  const std::uint64_t version = new_files_.version(number);
  Outcome<Attributes> attributes = co_await files_.getattr(object);
  if (lacks_writes(number, attributes)) attributes = co_await written_again(number, object);
  if (attributes) new_files_.on_told(number, version, *attributes, context_.loop.now());
  answer(request, number, attributes);
}

Task<void> Operations::setattr(fuse_req_t from, std::uint64_t number, std::uint64_t opened,
                               struct stat wanted, int to_set) {
  Request request(context_, from);
  const File object = file_of(request, number, opened);
  if (object.handle.empty()) co_return;
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) {
    if (!co_await begin_change(request, number)) co_return;
    // What is written again after a restart of the server would make the file longer.
    const Outcome<Ok> committed = co_await unstable_writes_.commit(number);
    if (!committed) co_return request.fail(committed.error());
  }
  SetAttributes changes = changes_of(wanted, to_set);
  const std::optional<Turns::Turn> turn = co_await turn_of_change(number);
  if (const auto known = new_files_.absorb(number, changes, context_.loop.now())) {
    settling_.ask();
    co_return answer_once(request, number, *known);
  }
  const std::uint64_t version = new_files_.version(number);
  Outcome<Attributes> set = co_await files_.change(object, changes);
  if (lacks_writes(number, set)) set = co_await written_again(number, object.handle);
  if (set) new_files_.on_set(number, version, changes, *set, context_.loop.now());
  if (set) remember_mode(number, set->mode);
  answer(request, number, set);
}

Task<std::optional<Turns::Turn>> Operations::turn_of_change(std::uint64_t number) {
  if (!new_files_.knows(number)) co_return std::nullopt;
  Turns::Turn turn = co_await turns_.alone(number);
  co_return std::optional<Turns::Turn>(std::move(turn));
}

Task<std::optional<Turns::Turn>> Operations::turn_of_write(std::uint64_t number) {
  if (!new_files_.knows(number)) co_return std::nullopt;
  Turns::Turn turn = co_await turns_.together(number);
  co_return std::optional<Turns::Turn>(std::move(turn));
}

Task<void> Operations::access(fuse_req_t from, std::uint64_t number, int mask) {
  Request request(context_, from);
  const Handle object = handle_of(request, number);
  if (object.empty()) co_return;
  const Outcome<Attributes> attributes = co_await files_.getattr(object);
  if (!attributes) co_return request.fail(attributes.error());
  const bool directory = attributes->type == FileType::Directory;
  const std::uint32_t asked = access_of_mask(mask, directory);
  if (asked == 0) co_return request.done();
  const Outcome<std::uint32_t> granted = co_await files_.access(object, asked);
  if (!granted) co_return request.fail(granted.error());
  request.fail(grants(*granted, mask, directory) ? 0 : EACCES);
}

Task<void> Operations::readlink(fuse_req_t from, std::uint64_t number) {
  Request request(context_, from);
  const Handle object = handle_of(request, number);
  if (object.empty()) co_return;
  // With the size known a text goes inline: Linux's server (6.1) spoils one that goes into a chunk,
  // by version 4.
  const Outcome<Attributes> attributes = co_await files_.getattr(object);
  if (!attributes) co_return request.fail(attributes.error());
  const Outcome<std::string> text = co_await files_.readlink(object, attributes->size);
  if (!text) co_return request.fail(text.error());
  if (const fuse_req_t waiting = request.take()) fuse_reply_readlink(waiting, text->c_str());
}

Task<void> Operations::statfs(fuse_req_t from, std::uint64_t number) {
  Request request(context_, from);
  const Handle object = handle_of(request, number);
  if (object.empty()) co_return;
  const Outcome<FileSystemUsage> usage = co_await files_.usage(object);
  if (!usage) co_return request.fail(usage.error());
  const Outcome<NameLimits> limits = co_await files_.name_limits(object);
  if (!limits) co_return request.fail(limits.error());
  constexpr std::uint64_t kBlock = 4096;
  struct statvfs to {};
  to.f_bsize = files_.sizes().read;
  to.f_frsize = kBlock;
  to.f_blocks = usage->total_bytes / kBlock;
  to.f_bfree = usage->free_bytes / kBlock;
  to.f_bavail = usage->available_bytes / kBlock;
  to.f_files = usage->total_files;
  to.f_ffree = usage->free_files;
  to.f_favail = usage->available_files;
  to.f_namemax = limits->max_name;
  if (const fuse_req_t waiting = request.take()) fuse_reply_statfs(waiting, &to);
}

}  // namespace stag::fuse
