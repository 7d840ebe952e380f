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

struct stat stat_of_listed(const Entry& entry, std::uint32_t block) {
  if (entry.attributes) return stat_of(*entry.attributes, block);
  struct stat unknown {};
  unknown.st_ino = entry.file_id;
  return unknown;
}

}  // namespace

// An answer to a listing: entries, as far as there is room. `numbers` are those that the kernel is
// told by it.
struct Operations::Listed {
  fuse_req_t request;
  std::vector<char> bytes;
  std::size_t used = 0;
  std::vector<std::uint64_t> numbers{};
};

Task<void> Operations::opendir(fuse_req_t from, std::uint64_t number, fuse_file_info info) {
  Request request(loop_, from);
  const Handle directory = handle_of(request, number);
  if (directory.empty()) co_return;
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

Task<void> Operations::readdir(fuse_req_t from, std::size_t size, std::uint64_t offset,
                               std::uint64_t opened, bool plus) {
  Request request(loop_, from);
  const auto found = directories_.find(opened);
  if (found == directories_.end()) co_return request.fail(EBADF);
  // It stays while this waits, also when the kernel closes it after an interruption.
  const std::shared_ptr<OpenDirectory> directory = found->second;
  if (offset == 0) directory->rewind();
  const Outcome<Ok> ready = co_await directory->find(std::max(offset, OpenDirectory::kDots));
  if (!ready) co_return request.fail(ready.error());
  std::vector<char> bytes(std::min(size, buffers_.size()));
  Listed listed{.request = request.take(), .bytes = std::move(bytes)};
  if (listed.request == nullptr) co_return;
  bool fits = true;
  for (; fits && offset < OpenDirectory::kDots; offset += fits)
    fits = add(listed, dot(offset), offset + 1, plus);
  while (const Entry* entry = fits ? directory->at(offset) : nullptr) {
    fits = add(listed, *entry, offset + 1, plus);
    offset += fits;
  }
  if (fuse_reply_buf(listed.request, listed.bytes.data(), listed.used) == 0) co_return;
  for (const std::uint64_t number : listed.numbers) inodes_.forget(number, 1);
}

// Whether there was room for `entry`. An entry whose handle the server told is a look-up, too.
bool Operations::add(Listed& listed, const Entry& entry, std::uint64_t next, bool plus) {
  char* to = listed.bytes.data() + listed.used;
  const std::size_t left = listed.bytes.size() - listed.used;
  const auto offset = static_cast<off_t>(next);
  fuse_entry_param param{};
  param.attr = stat_of_listed(entry, files_.sizes().read);
  if (!plus) {
    const std::size_t needed =
        fuse_add_direntry(listed.request, to, left, entry.name.c_str(), &param.attr, offset);
    if (needed <= left) listed.used += needed;
    return needed <= left;
  }
  const bool known = entry.handle && entry.attributes;
  if (known) {
    param.ino = inodes_.enter(*entry.handle);
    param.attr_timeout = param.entry_timeout = options_.valid;
  }
  const std::size_t needed =
      fuse_add_direntry_plus(listed.request, to, left, entry.name.c_str(), &param, offset);
  if (needed > left) {
    if (known) inodes_.forget(param.ino, 1);
    return false;
  }
  if (known) listed.numbers.push_back(param.ino);
  listed.used += needed;
  return true;
}

}  // namespace stag::fuse
