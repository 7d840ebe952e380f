#include <cerrno>
#include <new>

#include "fuse/mounted.h"

namespace stag::fuse {
namespace {

Mounted& mounted(fuse_req_t request) {
  return *static_cast<Mounted*>(fuse_req_userdata(request));
}

// Runs an operation, or fails the request when there is no memory to begin it.
template <class Operation>
void run(fuse_req_t request, Operation operation) noexcept {
  try {
    Mounted& mount = mounted(request);
    mount.add(operation(mount.operations()));
  } catch (const std::bad_alloc&) {
    fuse_reply_err(request, ENOMEM);
  }
}

using Info = fuse_file_info*;
using Id = fuse_ino_t;

void begun(void* mount, fuse_conn_info* connection) {
  static_cast<Mounted*>(mount)->agree(*connection);
}
void lookup(fuse_req_t r, Id parent, const char* name) {
  run(r, [&](Operations& o) { return o.lookup(r, parent, name); });
}
void forget(fuse_req_t r, Id id, std::uint64_t lookups) {
  mounted(r).operations().forget(id, lookups);
  fuse_reply_none(r);
}
void forget_multi(fuse_req_t r, std::size_t count, fuse_forget_data* forgotten) {
  for (const fuse_forget_data& one : std::span(forgotten, count))
    mounted(r).operations().forget(one.ino, one.nlookup);
  fuse_reply_none(r);
}
void getattr(fuse_req_t r, Id id, Info) {
  run(r, [&](Operations& o) { return o.getattr(r, id); });
}
// 0: without an open.
std::uint64_t open_of(Info info) {
  return info != nullptr ? info->fh : 0;
}
void setattr(fuse_req_t r, Id id, struct stat* wanted, int to_set, Info info) {
  run(r, [&](Operations& o) { return o.setattr(r, id, open_of(info), *wanted, to_set); });
}
void access(fuse_req_t r, Id id, int mask) {
  run(r, [&](Operations& o) { return o.access(r, id, mask); });
}
void readlink(fuse_req_t r, Id id) {
  run(r, [&](Operations& o) { return o.readlink(r, id); });
}
void mknod(fuse_req_t r, Id parent, const char* name, mode_t mode, dev_t device) {
  run(r, [&](Operations& o) { return o.mknod(r, parent, name, mode, device); });
}
void mkdir(fuse_req_t r, Id parent, const char* name, mode_t mode) {
  run(r, [&](Operations& o) { return o.mkdir(r, parent, name, mode); });
}
void unlink(fuse_req_t r, Id parent, const char* name) {
  run(r, [&](Operations& o) { return o.unlink(r, parent, name); });
}
void rmdir(fuse_req_t r, Id parent, const char* name) {
  run(r, [&](Operations& o) { return o.rmdir(r, parent, name); });
}
void symlink(fuse_req_t r, const char* target, Id parent, const char* name) {
  run(r, [&](Operations& o) { return o.symlink(r, target, parent, name); });
}
void rename(fuse_req_t r, Id parent, const char* name, Id new_parent, const char* new_name,
            unsigned flags) {
  // NFS cannot exchange names, nor refuse a name that is taken.
  if (flags != 0) return static_cast<void>(fuse_reply_err(r, EINVAL));
  run(r, [&](Operations& o) { return o.rename(r, parent, name, new_parent, new_name); });
}
void link(fuse_req_t r, Id file, Id parent, const char* name) {
  run(r, [&](Operations& o) { return o.link(r, file, parent, name); });
}
void create(fuse_req_t r, Id parent, const char* name, mode_t mode, Info info) {
  run(r, [&](Operations& o) { return o.create(r, parent, name, mode, *info); });
}
void open(fuse_req_t r, Id id, Info info) {
  run(r, [&](Operations& o) { return o.open(r, id, *info); });
}
void release(fuse_req_t r, Id id, Info info) {
  mounted(r).operations().release(r, id, info->fh);
}
void read(fuse_req_t r, Id id, std::size_t size, off_t offset, Info info) {
  const auto from = static_cast<std::uint64_t>(offset);
  run(r, [&](Operations& o) { return o.read(r, id, info->fh, size, from); });
}
void write(fuse_req_t r, Id id, const char* data, std::size_t size, off_t offset, Info info) {
  run(r, [&](Operations& o) {
    Mounted& mount = mounted(r);
    return o.write(r, id, info->fh, static_cast<std::uint64_t>(offset), mount.keep_request(),
                   Bytes(reinterpret_cast<const std::byte*>(data), size), mount.requests(),
                   mount.kind_of(r, *info));
  });
}
void flush(fuse_req_t r, Id id, Info info) {
  run(r, [&](Operations& o) { return o.flush(r, id, *info); });
}
void fsync(fuse_req_t r, Id id, int, Info info) {
  run(r, [&](Operations& o) { return o.fsync(r, id, info->fh); });
}
// A change of a directory is on stable storage when it returns.
void fsyncdir(fuse_req_t r, Id, int, Info) {
  fuse_reply_err(r, 0);
}
void opendir(fuse_req_t r, Id id, Info info) {
  run(r, [&](Operations& o) { return o.opendir(r, id, *info); });
}
void readdir(fuse_req_t r, Id id, std::size_t size, off_t offset, Info info) {
  const auto from = static_cast<std::uint64_t>(offset);
  run(r, [&](Operations& o) { return o.readdir(r, id, size, from, info->fh, false); });
}
void readdirplus(fuse_req_t r, Id id, std::size_t size, off_t offset, Info info) {
  const auto from = static_cast<std::uint64_t>(offset);
  run(r, [&](Operations& o) { return o.readdir(r, id, size, from, info->fh, true); });
}
void releasedir(fuse_req_t r, Id, Info info) {
  mounted(r).operations().releasedir(r, info->fh);
}
void statfs(fuse_req_t r, Id id) {
  run(r, [&](Operations& o) { return o.statfs(r, id); });
}

void getxattr(fuse_req_t r, Id id, const char* name, std::size_t most) {
  run(r, [&](Operations& o) { return o.getxattr(r, id, name, most); });
}
void setxattr(fuse_req_t r, Id id, const char* name, const char* value, std::size_t size,
              int flags) {
  run(r, [&](Operations& o) { return o.setxattr(r, id, name, {value, size}, flags); });
}
void listxattr(fuse_req_t r, Id id, std::size_t most) {
  run(r, [&](Operations& o) { return o.listxattr(r, id, most); });
}
void removexattr(fuse_req_t r, Id id, const char* name) {
  run(r, [&](Operations& o) { return o.removexattr(r, id, name); });
}
void lseek(fuse_req_t r, Id id, off_t offset, int whence, Info) {
  const auto from = static_cast<std::uint64_t>(offset);
  run(r, [&](Operations& o) { return o.lseek(r, id, from, whence); });
}
void fallocate(fuse_req_t r, Id id, int mode, off_t offset, off_t length, Info info) {
  const auto from = static_cast<std::uint64_t>(offset), size = static_cast<std::uint64_t>(length);
  run(r, [&](Operations& o) { return o.fallocate(r, id, open_of(info), mode, from, size); });
}
void copy_file_range(fuse_req_t r, Id source, off_t source_offset, Info, Id target,
                     off_t target_offset, Info target_info, std::size_t length, int) {
  const auto from = static_cast<std::uint64_t>(source_offset);
  const auto to = static_cast<std::uint64_t>(target_offset);
  run(r, [&](Operations& o) {
    return o.copy_file_range(r, source, from, target, open_of(target_info), to, length);
  });
}

void getlk(fuse_req_t r, Id id, Info info, struct flock* lock) {
  run(r, [&](Operations& o) { return o.getlk(r, id, *info, *lock); });
}
void setlk(fuse_req_t r, Id id, Info info, struct flock* lock, int waits) {
  run(r, [&](Operations& o) { return o.setlk(r, id, *info, *lock, waits != 0); });
}
void flock_file(fuse_req_t r, Id id, Info info, int how) {
  run(r, [&](Operations& o) { return o.flock(r, id, *info, how); });
}

constexpr fuse_lowlevel_ops functions_without_locks() {
  fuse_lowlevel_ops to{};
  to.init = begun;
  to.lookup = lookup;
  to.forget = forget;
  to.forget_multi = forget_multi;
  to.getattr = getattr;
  to.setattr = setattr;
  to.access = access;
  to.readlink = readlink;
  to.mknod = mknod;
  to.mkdir = mkdir;
  to.unlink = unlink;
  to.rmdir = rmdir;
  to.symlink = symlink;
  to.rename = rename;
  to.link = link;
  to.create = create;
  to.open = open;
  to.release = release;
  to.read = read;
  to.write = write;
  to.flush = flush;
  to.fsync = fsync;
  to.fsyncdir = fsyncdir;
  to.opendir = opendir;
  to.readdir = readdir;
  to.readdirplus = readdirplus;
  to.releasedir = releasedir;
  to.statfs = statfs;
  to.getxattr = getxattr;
  to.setxattr = setxattr;
  to.listxattr = listxattr;
  to.removexattr = removexattr;
  to.lseek = lseek;
  to.fallocate = fallocate;
  to.copy_file_range = copy_file_range;
  return to;
}
constexpr fuse_lowlevel_ops kFunctions = functions_without_locks();

// Without them the kernel keeps locks itself.
constexpr fuse_lowlevel_ops functions_with_locks() {
  fuse_lowlevel_ops to = functions_without_locks();
  to.getlk = getlk;
  to.setlk = setlk;
  to.flock = flock_file;
  return to;
}
constexpr fuse_lowlevel_ops kFunctionsWithLocks = functions_with_locks();

}  // namespace

const fuse_lowlevel_ops& functions(bool locks) {
  return locks ? kFunctionsWithLocks : kFunctions;
}

}  // namespace stag::fuse
