// Looking up, creating, removing and renaming names. Attributes and handle of a new object are
// asked for if the Reply does not have them.
#include "nfs/client/file_system.h"
#include "nfs/client/protocol/protocol.h"

namespace stag::nfs::client {

Task<Outcome<Node>> FileSystem::with_attributes(const Handle& handle,
                                                const std::optional<Attributes>& attributes) {
  if (attributes) co_return Node{handle, *attributes};
  const Outcome<Attributes> fetched = co_await getattr(handle);
  if (!fetched) co_return Failure{fetched.error()};
  co_return Node{handle, *fetched};
}

Task<Outcome<Node>> FileSystem::completed(const Handle& directory, const std::string& name,
                                          Made made) {
  if (!made.handle) co_return co_await lookup(directory, name);
  Outcome<Node> node = co_await with_attributes(*made.handle, made.attributes);
  if (node) node->directory = made.directory;
  co_return node;
}

Task<Outcome<Node>> FileSystem::find(Handle directory, std::string name, std::string shown) {
  const Outcome<Found> found = co_await protocol_->lookup({"find", shown}, directory, name);
  if (!found) co_return Failure{found.error()};
  co_return co_await with_attributes(found->handle, found->attributes);
}

Task<Outcome<Node>> FileSystem::lookup(Handle directory, std::string name) {
  return find(directory, name, name);
}

Task<Outcome<Node>> FileSystem::create(Handle directory, std::string name, SetAttributes attributes,
                                       CreateMode mode) {
  const Outcome<Made> made =
      co_await protocol_->create({"create", name}, directory, name, attributes, mode);
  if (!made) co_return Failure{made.error()};
  co_return co_await completed_file(directory, std::move(name), *made, attributes, mode);
}

Task<Outcome<Opened>> FileSystem::create_open(Handle directory, std::string name,
                                              SetAttributes attributes, CreateMode mode,
                                              std::uint32_t asked) {
  const Outcome<Made> made =
      co_await protocol_->create_open({"create", name}, directory, name, attributes, mode, asked);
  if (!made) co_return Failure{made.error()};
  const Outcome<Node> node =
      co_await completed_file(directory, std::move(name), *made, attributes, mode);
  if (node)
    co_return Opened{{node->handle, made->open},
                     node->attributes,
                     node->directory,
                     mode == CreateMode::ExclusiveButTimes && made->attributes_set};
  if (made->open != 0) static_cast<void>(co_await close({*made->handle, made->open}));
  co_return Failure{node.error()};
}

Task<Outcome<Node>> FileSystem::completed_file(Handle directory, std::string name, Made made,
                                               SetAttributes attributes, CreateMode mode) {
  Outcome<Node> node = co_await completed(directory, name, made);
  if (!node || !is_exclusive(mode)) co_return node;
  if (mode == CreateMode::ExclusiveButTimes && made.attributes_set) co_return node;
  // The server may keep the verifier in the times (RFC 1813 3.3.8), so they are set in any case.
  if (attributes.accessed.how == SetTime::How::Keep) attributes.accessed = SetTime::now();
  if (attributes.modified.how == SetTime::How::Keep) attributes.modified = SetTime::now();
  const Outcome<Attributes> set = co_await change(node->handle, attributes);
  if (!set) co_return Failure{set.error()};
  node->attributes = *set;
  co_return node;
}

Task<Outcome<Node>> FileSystem::mkdir(Handle directory, std::string name,
                                      SetAttributes attributes) {
  const Outcome<Made> made =
      co_await protocol_->mkdir({"create the directory", name}, directory, name, attributes);
  if (!made) co_return Failure{made.error()};
  co_return co_await completed(directory, name, *made);
}

Task<Outcome<Node>> FileSystem::symlink(Handle directory, std::string name, std::string target,
                                        SetAttributes attributes) {
  const Outcome<Made> made = co_await protocol_->symlink(
      {"create the symbolic link", name}, directory, name, std::move(target), attributes);
  if (!made) co_return Failure{made.error()};
  co_return co_await completed(directory, name, *made);
}

Task<Outcome<Node>> FileSystem::mknod(Handle directory, std::string name, Special special,
                                      SetAttributes attributes) {
  const Outcome<Made> made = co_await protocol_->mknod({"create the special file", name}, directory,
                                                       name, special, attributes);
  if (!made) co_return Failure{made.error()};
  co_return co_await completed(directory, name, *made);
}

Task<Outcome<Ok>> FileSystem::remove(Handle directory, std::string name) {
  co_return co_await protocol_->remove({"remove", name}, directory, name);
}

Task<Outcome<Ok>> FileSystem::rmdir(Handle directory, std::string name) {
  co_return co_await protocol_->rmdir({"remove", name}, directory, name);
}

Task<Outcome<Ok>> FileSystem::rename(Handle from_directory, std::string from, Handle to_directory,
                                     std::string to) {
  co_return co_await protocol_->rename({"rename", from}, from_directory, from, to_directory, to);
}

Task<Outcome<Ok>> FileSystem::link(Handle file, Handle directory, std::string name) {
  co_return co_await protocol_->link({"create the link", name}, file, directory, name);
}

}  // namespace stag::nfs::client
