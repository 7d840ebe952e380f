#include <algorithm>
#include <cerrno>

#include "fuse/operations.h"
#include "fuse/values.h"

namespace stag::fuse {
namespace {

using nfs::client::Attributes;
using nfs::client::Entry;
using nfs::client::FileType;
using nfs::client::Handle;
using nfs::client::Outcome;

// "." and "..", which the kernel takes for names only.
Entry dot(std::uint64_t offset) {
  Attributes attributes;
  attributes.type = FileType::Directory;
  attributes.file_id = 1;
  return {.name = offset == 0 ? "." : "..", .file_id = 1, .attributes = attributes};
}

}  // namespace

// An answer to a listing: entries, as far as there is room. `numbers` are those that the kernel is
// told by it, and forgets unless it gets the answer.
struct Operations::Listed {
  Listed(Inodes& inodes, fuse_req_t request, std::size_t size, const OpenDirectory::AsOf& as_of)
      : inodes(inodes), request(request), as_of(as_of), bytes(size) {}
  ~Listed() {
    for (const std::uint64_t number : numbers) inodes.forget(number, 1);
  }

  Inodes& inodes;
  fuse_req_t request;
  const OpenDirectory::AsOf as_of;
  std::vector<char> bytes;
  std::size_t used = 0;
  std::vector<std::uint64_t> numbers{};
};

Task<void> Operations::opendir(fuse_req_t from, std::uint64_t number, fuse_file_info info) {
  Request request(context_, from);
  const Handle directory = handle_of(request, number);
  if (directory.empty()) co_return;
  // A program that lists what is to be removed had better not find what is gone a moment later.
  co_await silly_files_.removed(directory);
  const std::uint64_t opened = next_directory_++;
  directories_.emplace(opened, std::make_shared<OpenDirectory>(files_, directory));
  info.fh = opened;
  const fuse_req_t waiting = request.take();
  if (waiting == nullptr || fuse_reply_open(waiting, &info) != 0) directories_.erase(opened);
}

void Operations::releasedir(fuse_req_t request, std::uint64_t opened) {
  directories_.erase(opened);
  fuse_reply_err(request, 0);
}

Task<void> Operations::readdir(fuse_req_t from, std::uint64_t number, std::size_t size,
                               std::uint64_t offset, std::uint64_t opened, bool plus) {
  Request request(context_, from);
  const auto found = directories_.find(opened);
  if (found == directories_.end()) co_return request.fail(EBADF);
  // A reader that was interrupted may still wait in there.
  if (found->second->busy())
    found->second = std::make_shared<OpenDirectory>(found->second->again());
  // It stays while this waits, also when the kernel closes it after an interruption.
  const std::shared_ptr<OpenDirectory> directory = found->second;
  if (offset == 0) directory->rewind();
  request.holds(files_.sizes().list);
  const OpenDirectory::AsOf now{inodes_.now(), context_.loop.now()};
  const Outcome<Ok> ready = co_await directory->find(std::max(offset, OpenDirectory::kDots), now);
  if (!ready) co_return request.fail(ready.error());
  if (!request.waits()) co_return;
  Listed listed(inodes_, from, std::min(size, buffers_.size()), directory->as_of());
  bool fits = true;
  for (; fits && offset < OpenDirectory::kDots; offset += fits)
    fits = add(listed, number, dot(offset), offset + 1, plus);
  while (const Entry* entry = fits ? directory->at(offset) : nullptr) {
    fits = add(listed, number, *entry, offset + 1, plus);
    offset += fits;
  }
  const fuse_req_t waiting = request.take();
  if (fuse_reply_buf(waiting, listed.bytes.data(), listed.used) == 0) listed.numbers.clear();
}

struct stat Operations::stat_of_listed(const Entry& entry) const {
  if (!entry.attributes) return stat_of_untold(entry.file_id);
  Attributes attributes = *entry.attributes;
  if (entry.handle && !new_files_.empty())
    attributes = new_files_.shown(inodes_.number_of(*entry.handle), attributes);
  return stat_of(attributes, files_.sizes().read, options_.home);
}

// For how many seconds the kernel may use what was listed of an object; 0: it is to be looked up.
// The kernel takes what it is told for what the server says now. It was said before, and may be
// older than what the kernel knows: its size would go back, and pages behind that would be lost.
double Operations::valid_of(const Listed& listed, std::uint64_t parent, const Entry& entry) {
  const Inode* const directory = inodes_.find(parent);
  const Inode* const inode = inodes_.find(*entry.handle);
  const auto is_older = [&](std::uint64_t than) { return listed.as_of.event < than; };
  if (directory == nullptr || is_older(directory->names_lost)) return 0;
  if (inode != nullptr && is_older(inode->told)) return 0;
  // Looked up, it is written again where the server has lost writes of it.
  if (unstable_writes_.kept_bytes() > 0 &&
      lacks_writes(inodes_.number_of(*entry.handle), *entry.attributes))
    return 0;
  return options_.valid - seconds_of(context_.loop.now() - listed.as_of.time);
}

// Whether there was room for `entry`. An entry whose handle the server told is a look-up, too.
bool Operations::add(Listed& listed, std::uint64_t parent, const Entry& entry, std::uint64_t next,
                     bool plus) {
  char* to = listed.bytes.data() + listed.used;
  const std::size_t left = listed.bytes.size() - listed.used;
  const auto offset = static_cast<off_t>(next);
  fuse_entry_param param{};
  param.attr = stat_of_listed(entry);
  if (!plus) {
    const std::size_t needed =
        fuse_add_direntry(listed.request, to, left, entry.name.c_str(), &param.attr, offset);
    if (needed <= left) listed.used += needed;
    return needed <= left;
  }
  const double valid = entry.handle && entry.attributes ? valid_of(listed, parent, entry) : 0;
  const bool known = valid > 0;
  if (known) {
    listed.numbers.push_back(0);  // which is nobody's, should the next line find no memory
    listed.numbers.back() = param.ino = inodes_.enter(*entry.handle);
    param.attr_timeout = param.entry_timeout = valid;
  }
  const std::size_t needed =
      fuse_add_direntry_plus(listed.request, to, left, entry.name.c_str(), &param, offset);
  if (needed > left) {
    if (known) {
      inodes_.forget(param.ino, 1);
      listed.numbers.pop_back();
    }
    return false;
  }
  if (known) {
    inodes_.call(param.ino, parent, entry.name);
    Inode& inode = *inodes_.find(param.ino);
    inode.told = std::max(inode.told, listed.as_of.event);
  }
  listed.used += needed;
  return true;
}

}  // namespace stag::fuse
