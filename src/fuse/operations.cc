#include "fuse/operations.h"

#include <cerrno>

#include "fuse/values.h"

namespace stag::fuse {
namespace {

Duration duration_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

using nfs::client::Attributes;
using nfs::client::File;
using nfs::client::FileSystem;
using nfs::client::Handle;
using nfs::client::Node;
using nfs::client::Outcome;

Operations::Operations(Loop& loop, FileSystem& files, const Handle& root, Buffers& data,
                       Buffers& requests, const OperationOptions& options)
    : context_{loop},
      files_(files),
      buffers_(data),
      options_(options),
      made_directories_(duration_of(options.valid)),
      inodes_(root),
      invalidations_(loop),
      changes_(inodes_),
      unstable_writes_(files, inodes_, requests, kMostUnstable),
      new_files_(duration_of(options.valid)),
      settling_(loop, files, new_files_, turns_),
      closes_(loop, files, lock_turns_, [this](std::uint64_t number, const OpenFiles::Open& open) {
        return prepare_close(number, open);
      }) {
  inodes_.set_on_gone([this](std::uint64_t number) {
    made_directories_.end(number);
    removals_.forget(number);
  });
}

Handle Operations::handle_of(Request& request, std::uint64_t number) {
  if (const Inode* inode = inodes_.find(number)) return inode->handle;
  request.fail(ESTALE);
  return {};
}

File Operations::file_of(Request& request, std::uint64_t number, std::uint64_t opened) {
  const File* file = open_files_.find(number, opened);
  return file != nullptr ? *file : File(handle_of(request, number));
}

fuse_entry_param Operations::entry_of(const Node& node, std::uint64_t number) const {
  fuse_entry_param entry{};
  entry.ino = number;
  entry.attr =
      stat_of(new_files_.shown(number, node.attributes), files_.sizes().read, options_.home);
  entry.attr_timeout = options_.valid;
  entry.entry_timeout = options_.valid;
  return entry;
}

std::uint64_t Operations::answer(Request& request, std::uint64_t parent, const std::string& name,
                                 const Outcome<Node>& node) {
  if (!node) {
    request.fail(node.error());
    return 0;
  }
  const fuse_entry_param entry = entry_of(*node, inodes_.enter(node->handle));
  inodes_.call(entry.ino, parent, name);
  inodes_.on_told(entry.ino);
  const fuse_req_t waiting = request.take();
  // A request that the kernel gave up is no lookup.
  if (waiting != nullptr && fuse_reply_entry(waiting, &entry) == 0) return entry.ino;
  forget(entry.ino, 1);
  return 0;
}

std::uint64_t Operations::answer_made(Request& request, std::uint64_t parent,
                                      const std::string& name, const Outcome<Node>& node) {
  if (node)
    made_directories_.on_made(parent, name, node->directory, context_.loop.now());
  else
    made_directories_.end(parent);
  return answer(request, parent, name, node);
}

void Operations::answer_once(Request& request, std::uint64_t number, const Attributes& attributes) {
  inodes_.on_told(number);
  const struct stat to = stat_of(attributes, files_.sizes().read, options_.home);
  if (const fuse_req_t waiting = request.take()) fuse_reply_attr(waiting, &to, 0);
}

void Operations::answer_absent(Request& request, double valid) const {
  fuse_entry_param none{};
  none.entry_timeout = valid;
  if (const fuse_req_t waiting = request.take()) fuse_reply_entry(waiting, &none);
}

void Operations::answer(Request& request, std::uint64_t number,
                        const Outcome<Attributes>& attributes) {
  // Also where nobody hears of it, or it failed: it may have been changed.
  inodes_.on_told(number);
  if (!attributes) return request.fail(attributes.error());
  const struct stat to =
      stat_of(new_files_.shown(number, *attributes), files_.sizes().read, options_.home);
  if (const fuse_req_t waiting = request.take()) fuse_reply_attr(waiting, &to, options_.valid);
}

void Operations::answer(Request& request, const Outcome<Ok>& done) {
  if (!done) return request.fail(done.error());
  request.done();
}

}  // namespace stag::fuse
