// Making and unmaking names (RFC 1813 3.3.8 to 3.3.15).
#include "nfs/client/file_system.h"

namespace stag::nfs::client {
namespace {

v3::diropargs3 entry(const Handle& directory, std::string name) {
  v3::diropargs3 args;
  args.dir = directory;
  args.name = std::move(name);
  return args;
}

}  // namespace

// Handle and attributes of what was made, asked for where the server did not send them along.
Task<Outcome<Node>> FileSystem::completed(const Handle& directory, const std::string& name,
                                          const v3::post_op_fh3& handle,
                                          const v3::post_op_attr& attributes) {
  if (!handle.handle_follows) return lookup(directory, name);
  return with_attributes(handle.handle(), attributes);
}

Task<Outcome<Node>> FileSystem::create(Handle directory, std::string name, SetAttributes attributes,
                                       CreateMode mode) {
  if (mode == CreateMode::Exclusive)
    co_return co_await create_exclusively(directory, name, attributes);
  v3::CREATE3args args;
  args.where = entry(directory, name);
  args.how.mode = mode == CreateMode::Guarded ? v3::GUARDED : v3::UNCHECKED;
  args.how.obj_attributes() = to_sattr3(attributes);
  const auto resok = co_await caller_.call<v3::NFSPROC3_CREATE>(args, {"create", name});
  if (!resok) co_return Failure{resok.error()};
  co_return co_await completed(directory, name, resok->obj, resok->obj_attributes);
}

Task<Outcome<Node>> FileSystem::create_exclusively(const Handle& directory, const std::string& name,
                                                   const SetAttributes& attributes) {
  v3::CREATE3args args;
  args.where = entry(directory, name);
  args.how.mode = v3::EXCLUSIVE;
  // RFC 1813 3.3.8: unlike that of any other request; time and XID of this client are.
  const std::uint64_t now = channel().loop().now().time_since_epoch().count();
  store_be(args.how.verf().data(), static_cast<std::uint32_t>(now >> 16));
  store_be(args.how.verf().data() + 4, channel().next_xid());
  const auto resok = co_await caller_.call<v3::NFSPROC3_CREATE>(args, {"create", name});
  if (!resok) co_return Failure{resok.error()};
  const Outcome<Node> made = co_await completed(directory, name, resok->obj, resok->obj_attributes);
  if (!made) co_return made;
  // The server may keep the verifier in the times, so they are set in any case.
  SetAttributes changes = attributes;
  if (changes.accessed.how == SetTime::How::Keep) changes.accessed = SetTime::now();
  if (changes.modified.how == SetTime::How::Keep) changes.modified = SetTime::now();
  const Outcome<Ok> set = co_await setattr(made->handle, changes);
  if (!set) co_return Failure{set.error()};
  co_return co_await with_attributes(made->handle, {});
}

Task<Outcome<Node>> FileSystem::mkdir(Handle directory, std::string name,
                                      SetAttributes attributes) {
  v3::MKDIR3args args;
  args.where = entry(directory, name);
  args.attributes = to_sattr3(attributes);
  const auto resok =
      co_await caller_.call<v3::NFSPROC3_MKDIR>(args, {"create the directory", name});
  if (!resok) co_return Failure{resok.error()};
  co_return co_await completed(directory, name, resok->obj, resok->obj_attributes);
}

Task<Outcome<Node>> FileSystem::symlink(Handle directory, std::string name, std::string target,
                                        SetAttributes attributes) {
  v3::SYMLINK3args args;
  args.where = entry(directory, name);
  args.symlink.symlink_attributes = to_sattr3(attributes);
  args.symlink.symlink_data = std::move(target);
  const auto resok =
      co_await caller_.call<v3::NFSPROC3_SYMLINK>(args, {"create the symbolic link", name});
  if (!resok) co_return Failure{resok.error()};
  co_return co_await completed(directory, name, resok->obj, resok->obj_attributes);
}

Task<Outcome<Node>> FileSystem::mknod(Handle directory, std::string name, Special special,
                                      SetAttributes attributes) {
  v3::MKNOD3args args;
  args.where = entry(directory, name);
  args.what.type = special.type;
  if (special.type == v3::NF3BLK || special.type == v3::NF3CHR) {
    args.what.device().dev_attributes = to_sattr3(attributes);
    args.what.device().spec = special.device;
  } else {
    args.what.pipe_attributes() = to_sattr3(attributes);
  }
  const auto resok =
      co_await caller_.call<v3::NFSPROC3_MKNOD>(args, {"create the special file", name});
  if (!resok) co_return Failure{resok.error()};
  co_return co_await completed(directory, name, resok->obj, resok->obj_attributes);
}

Task<Outcome<Ok>> FileSystem::remove(Handle directory, std::string name) {
  v3::REMOVE3args args;
  args.object = entry(directory, name);
  const auto resok = co_await caller_.call<v3::NFSPROC3_REMOVE>(args, {"remove", name});
  if (!resok) co_return Failure{resok.error()};
  co_return Ok{};
}

Task<Outcome<Ok>> FileSystem::rmdir(Handle directory, std::string name) {
  v3::RMDIR3args args;
  args.object = entry(directory, name);
  const auto resok = co_await caller_.call<v3::NFSPROC3_RMDIR>(args, {"remove", name});
  if (!resok) co_return Failure{resok.error()};
  co_return Ok{};
}

Task<Outcome<Ok>> FileSystem::rename(Handle from_directory, std::string from, Handle to_directory,
                                     std::string to) {
  v3::RENAME3args args;
  args.from = entry(from_directory, from);
  args.to = entry(to_directory, std::move(to));
  const auto resok = co_await caller_.call<v3::NFSPROC3_RENAME>(args, {"rename", from});
  if (!resok) co_return Failure{resok.error()};
  co_return Ok{};
}

Task<Outcome<Ok>> FileSystem::link(Handle file, Handle directory, std::string name) {
  v3::LINK3args args;
  args.file = file;
  args.link = entry(directory, name);
  const auto resok = co_await caller_.call<v3::NFSPROC3_LINK>(args, {"create the link", name});
  if (!resok) co_return Failure{resok.error()};
  co_return Ok{};
}

}  // namespace stag::nfs::client
