// Extended attributes, holes and copies: what NFS version 4.2 has; and access control lists, which
// every version has, and the kernel in extended attributes. Where version, server or one of
// its file systems lacks it that is EOPNOTSUPP. Not ENOSYS, with which the kernel would do without
// in the whole mount from then on, of which another file system may have it. A file system that
// cannot tell its holes has none.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "fuse/operations.h"
#include "fuse/values.h"
#include "nfs/client/acl.h"

namespace stag::fuse {
namespace {

using nfs::client::AclEntry;
using nfs::client::Acls;
using nfs::client::Attributes;
using nfs::client::Content;
using nfs::client::File;
using nfs::client::FileRange;
using nfs::client::Handle;
using nfs::client::Nfs4Acl;
using nfs::client::Outcome;
using nfs::client::Status;
using nfs::client::XattrMode;

// The answer of FUSE has 32 bits for how much was copied.
constexpr std::uint64_t kMostCopied = std::uint64_t{1} << 31;

// RFC 8276 has attributes of users only, and names them without this.
constexpr std::string_view kUser = "user.";
constexpr std::string_view kAccessList = "system.posix_acl_access";
constexpr std::string_view kDefaultList = "system.posix_acl_default";

constexpr std::size_t kEntriesOfMode = 3;  // of a list that says no more than it does

bool is_list(std::string_view name) {
  return name == kAccessList || name == kDefaultList;
}

bool can_have_xattrs(nfs::client::FileType type) {
  return type == nfs::client::FileType::Regular || type == nfs::client::FileType::Directory;
}

void answer_bytes(Request& request, std::string_view bytes, std::size_t most) {
  if (most != 0 && bytes.size() > most) return request.fail(ERANGE);
  const fuse_req_t waiting = request.take();
  if (waiting == nullptr) return;
  if (most == 0)
    fuse_reply_xattr(waiting, bytes.size());
  else
    fuse_reply_buf(waiting, bytes.data(), bytes.size());
}

}  // namespace

Task<void> Operations::getxattr(fuse_req_t from, std::uint64_t number, std::string name,
                                std::size_t most) {
  Request request(context_, from);
  const Handle object = handle_of(request, number);
  if (object.empty()) co_return;
  if (options_.lists && is_list(name))
    co_return co_await answer_list(request, object, name == kDefaultList, most);
  // The kernel itself looks for some of these, again and again.
  if (!name.starts_with(kUser)) co_return request.fail(ENODATA);
  const Outcome<std::string> value = co_await files_.xattr(object, name.substr(kUser.size()));
  if (!value) co_return request.fail(value.error());
  answer_bytes(request, *value, most);
}

Task<void> Operations::answer_list(Request& request, Handle object, bool defaults,
                                   std::size_t most) {
  const Outcome<Acls> lists = co_await files_.acls(object);
  if (lists) {
    const std::vector<AclEntry>& list = defaults ? lists->defaults : lists->access;
    if (list.size() <= (defaults ? 0 : kEntriesOfMode)) co_return request.fail(ENODATA);
    co_return answer_bytes(request, xattr_of(list), most);
  }
  if (!means_no_acls(lists.error())) co_return request.fail(lists.error());
  // A list that POSIX cannot say lets nobody in: the mode may say more than it does.
  const Outcome<Nfs4Acl> unsaid = co_await files_.nfs4_acl(object);
  if (!unsaid && !means_no_acls(unsaid.error())) co_return request.fail(unsaid.error());
  request.fail(unsaid ? EACCES : ENODATA);
}

// One that is empty is none: the mode stays as it is.
Task<void> Operations::set_list(Request& request, std::uint64_t number, Handle object,
                                bool defaults, std::vector<AclEntry> list) {
  Acls lists;
  Outcome<Ok> done = Ok{};
  const std::optional<Turns::Turn> turn = co_await turn_of_change(number);
  if (defaults) {
    Outcome<Acls> before = co_await files_.acls(object);
    if (before)
      lists = {std::move(before->access), std::move(list)};
    else
      done = Failure{before.error()};
  } else {
    lists.access = std::move(list);
  }
  if (done) {
    done = co_await files_.set_acls(object, std::move(lists), defaults);
    outdate(request, number);
  }
  if (!done && means_no_acls(done.error())) co_return request.fail(EOPNOTSUPP);
  answer(request, done);
}

Task<void> Operations::setxattr(fuse_req_t from, std::uint64_t number, std::string name,
                                std::string value, int flags) {
  Request request(context_, from);
  const Handle object = handle_of(request, number);
  if (object.empty()) co_return;
  if (options_.lists && is_list(name)) {
    std::optional<std::vector<AclEntry>> list = list_of_xattr(value);
    if (!list) co_return request.fail(EINVAL);
    co_return co_await set_list(request, number, object, name == kDefaultList, *std::move(list));
  }
  if (!name.starts_with(kUser)) co_return request.fail(EOPNOTSUPP);
  const XattrMode mode = flags & XATTR_CREATE    ? XattrMode::Create
                         : flags & XATTR_REPLACE ? XattrMode::Replace
                                                 : XattrMode::Either;
  const Outcome<Ok> set =
      co_await files_.set_xattr(object, name.substr(kUser.size()), std::move(value), mode);
  if (!set) co_return request.fail(set.error());
  request.done();
}

Task<void> Operations::listxattr(fuse_req_t from, std::uint64_t number, std::size_t most) {
  Request request(context_, from);
  const Handle object = handle_of(request, number);
  if (object.empty()) co_return;
  Outcome<std::vector<std::string>> names = co_await files_.list_xattrs(object);
  // NFS4ERR_WRONG_TYPE (RFC 8276 8.4.3): no error for the kernel, which asks of any object.
  if (!names && names.error().is(Status::Invalid)) {
    const Outcome<Attributes> attributes = co_await files_.getattr(object);
    if (attributes && !can_have_xattrs(attributes->type)) names = std::vector<std::string>();
  }
  if (!names) co_return request.fail(names.error());
  std::string list;
  for (const std::string& name : *names) {
    list += kUser;
    list += name;
    list.push_back('\0');
  }
  answer_bytes(request, list, most);
}

Task<void> Operations::removexattr(fuse_req_t from, std::uint64_t number, std::string name) {
  Request request(context_, from);
  const Handle object = handle_of(request, number);
  if (object.empty()) co_return;
  if (options_.lists && is_list(name))
    co_return co_await set_list(request, number, object, name == kDefaultList, {});
  if (!name.starts_with(kUser)) co_return request.fail(EOPNOTSUPP);
  const Outcome<Ok> removed = co_await files_.remove_xattr(object, name.substr(kUser.size()));
  if (!removed) co_return request.fail(removed.error());
  request.done();
}

Task<void> Operations::lseek(fuse_req_t from, std::uint64_t number, std::uint64_t offset,
                             int whence) {
  Request request(context_, from);
  const Handle file = handle_of(request, number);
  if (file.empty()) co_return;
  // The kernel then takes every file of the mount for data without holes by itself.
  if (!options_.seeks) co_return request.fail(ENOSYS);
  if (unstable_writes_.is_doubtful(number)) {
    const Outcome<Ok> committed = co_await unstable_writes_.commit(number);
    if (!committed) co_return request.fail(committed.error());
  }
  std::optional<std::uint64_t> at;
  // The kernel asks before it writes what programs have changed in a mapping, and nothing here has
  // it write all: an invalidation does not wait for WRITEs that are underway (before Linux 6.16).
  bool is_all_data = open_files_.may_have_changed_pages(number);
  if (!is_all_data) {
    const Outcome<std::optional<std::uint64_t>> found =
        co_await files_.seek(file, offset, whence == SEEK_DATA ? Content::Data : Content::Hole);
    is_all_data = !found && found.error().is(Status::NotSupported);
    if (!found && !is_all_data) co_return request.fail(found.error());
    if (found) at = *found;
  }
  if (is_all_data) {
    const Outcome<Attributes> attributes = co_await files_.getattr(file);
    if (!attributes) co_return request.fail(attributes.error());
    at = sought_in_data(attributes->size, offset, whence);
  }
  if (!at) co_return request.fail(ENXIO);
  if (const fuse_req_t waiting = request.take()) fuse_reply_lseek(waiting, static_cast<off_t>(*at));
}

Task<void> Operations::fallocate(fuse_req_t from, std::uint64_t number, std::uint64_t opened,
                                 int mode, std::uint64_t offset, std::uint64_t length) {
  Request request(context_, from);
  const File file = file_of(request, number, opened);
  if (file.handle.empty()) co_return;
  const FileRange range{offset, length};
  if (mode != 0 && mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE))
    co_return request.fail(EOPNOTSUPP);
  if (!co_await begin_change(request, number)) co_return;
  // What is written again after a restart of the server must not fill the hole.
  Outcome<Ok> done = co_await unstable_writes_.commit(number);
  if (!done) co_return request.fail(done.error());
  const std::optional<Turns::Turn> turn = co_await turn_of_write(number);
  new_files_.outdate(number);
  if (mode == 0)
    done = co_await files_.allocate(file, range);
  else
    done = co_await files_.deallocate(file, range);
  inodes_.on_told(number);
  if (done) new_files_.on_change(number);
  answer(request, done);
}

Task<void> Operations::copy_file_range(fuse_req_t from, std::uint64_t source,
                                       std::uint64_t source_offset, std::uint64_t target,
                                       std::uint64_t target_opened, std::uint64_t target_offset,
                                       std::uint64_t length) {
  CancelSource interrupted;
  Request request(context_, from);
  request.ends(interrupted);
  const Handle source_file = handle_of(request, source);
  if (source_file.empty()) co_return;
  const File target_file = file_of(request, target, target_opened);
  if (target_file.handle.empty()) co_return;
  // COPY refuses a source that is the target, too (RFC 7862 15.2.3); the kernel copies it then.
  if (source == target) co_return request.fail(EOPNOTSUPP);
  if (!co_await begin_change(request, target)) co_return;
  const Outcome<Ok> committed = co_await unstable_writes_.commit(target);
  if (!committed) co_return request.fail(committed.error());
  // What sets times meanwhile would hear how much is copied so far.
  const std::optional<Turns::Turn> turn = co_await turn_of_write(target);
  new_files_.outdate(target);
  const nfs::client::CopyWatch watch{{}, interrupted};
  Outcome<std::uint64_t> copied = std::uint64_t{0};
  do {
    // copy_file_range(2) ends with the file, COPY fails beyond its end.
    Outcome<Attributes> attributes = co_await files_.getattr(source_file);
    if (lacks_writes(source, attributes)) attributes = co_await written_again(source, source_file);
    if (!attributes) co_return request.fail(attributes.error());
    const std::uint64_t left = attributes->size - std::min(source_offset, attributes->size);
    const FileRange range{source_offset, std::min({length, left, kMostCopied})};
    if (range.length > 0)
      copied = co_await files_.copy_range(source_file, range, target_file, target_offset, watch);
  } while (copied && unstable_writes_.is_doubtful(source));
  inodes_.on_told(target);
  const bool changes = copied ? *copied > 0 : !copied.error().is(Status::NotSupported);
  if (changes) new_files_.on_change(target);
  if (!copied) co_return request.fail(copied.error());
  if (const fuse_req_t waiting = request.take()) fuse_reply_write(waiting, *copied);
}

}  // namespace stag::fuse
