// RemoteEndpoint: files of an NFS server as one end of a copy.
#include <utility>

#include "cli/copy/remote_temp_file.h"

namespace stag::cli {
namespace {

using nfs::client::Attributes;
using nfs::client::Entry;
using nfs::client::Error;
using nfs::client::FileSystem;
using nfs::client::Handle;
using nfs::client::Links;
using nfs::client::Listing;
using nfs::client::Node;

Kind kind_of(nfs::client::FileType type) {
  if (type == nfs::client::FileType::Regular) return Kind::File;
  if (type == nfs::client::FileType::Directory) return Kind::Directory;
  return type == nfs::client::FileType::Symlink ? Kind::Symlink : Kind::Other;
}

CopyObject object_of(std::string path, const Handle& handle, const Attributes& attributes) {
  CopyObject object;
  object.path = std::move(path);
  object.handle = handle;
  object.kind = kind_of(attributes.type);
  object.mode = attributes.mode & 07777;
  object.links = attributes.links;
  object.owner = {attributes.uid, attributes.gid};
  object.size = attributes.size;
  object.used = attributes.used;
  object.accessed = attributes.accessed;
  object.modified = attributes.modified;
  object.changed = attributes.changed;
  object.file_id = attributes.file_id;
  object.fsid = attributes.file_system_id;
  return object;
}

std::string below(const CopyObject& directory, const std::string& name) {
  const bool root = directory.path.empty() || directory.path == ".";
  return root ? name : directory.path + "/" + name;
}

Outcome<std::optional<CopyObject>> found(Outcome<Node> node, std::string path) {
  if (!node && node.error().is(nfs::client::Status::NoEntry)) return std::optional<CopyObject>();
  if (!node) return Failure{node.error()};
  return std::optional<CopyObject>(object_of(std::move(path), node->handle, node->attributes));
}

class RemoteDirIterator final : public DirIterator {
 public:
  RemoteDirIterator(FileSystem& files, const CopyObject& directory)
      : files_(files),
        directory_(directory),
        listing_(files.list(directory.handle, Listing::Detail::Attributes)) {}

  Task<Outcome<std::vector<Member>>> next() override {
    Outcome<std::vector<Entry>> batch = co_await listing_.next();
    if (!batch) co_return Failure{batch.error()};
    std::vector<Member> members;
    for (Entry& entry : *batch) {
      const Outcome<std::optional<CopyObject>> object = co_await object_for(entry);
      if (!object) co_return Failure{object.error()};
      if (*object) members.push_back({std::move(entry.name), **object});
    }
    // All entries of a batch may have been removed meanwhile; an empty batch would end the listing.
    if (members.empty() && !batch->empty()) co_return co_await next();
    co_return members;
  }

 private:
  Task<Outcome<std::optional<CopyObject>>> object_for(const Entry& entry) {
    std::string path = below(directory_, entry.name);
    if (entry.attributes && entry.handle)
      co_return std::optional<CopyObject>(
          object_of(std::move(path), *entry.handle, *entry.attributes));
    co_return found(co_await files_.lookup(directory_.handle, entry.name), std::move(path));
  }

  FileSystem& files_;
  const CopyObject directory_;
  Listing listing_;
};

class RemoteEndpoint final : public CopyEndpoint {
 public:
  RemoteEndpoint(Remote& remote, Progress& progress) : remote_(remote), progress_(progress) {}

  Task<Outcome<std::optional<CopyObject>>> find(std::string path, Follow follow) override {
    const Links links = follow == Follow::Yes ? Links::Follow : Links::FollowAllButLast;
    co_return found(co_await remote_.files().walk(path, links), path);
  }
  Task<Outcome<std::optional<CopyObject>>> find_in(CopyObject directory,
                                                   std::string name) override {
    co_return found(co_await remote_.files().lookup(directory.handle, name),
                    below(directory, name));
  }
  std::string shown_path(const std::string& path) const override {
    nfs::client::Url url = remote_.url();
    url.path = remote_.files().root_path();
    if (!path.empty()) url.path += (url.path.ends_with('/') ? "" : "/") + path;
    return to_string(url);
  }

  std::unique_ptr<DirIterator> members(const CopyObject& directory) override {
    return std::make_unique<RemoteDirIterator>(remote_.files(), directory);
  }
  Task<Outcome<std::string>> readlink(CopyObject symlink) override {
    return remote_.files().readlink(symlink.handle, symlink.size);
  }
  Task<Outcome<std::uint64_t>> feed(CopyObject file, TempFile& temp_file,
                                    std::uint64_t from) override {
    if (from > 0) co_return co_await feed_rest(std::move(file), temp_file.sink(), from);
    // A server may fill holes when it copies.
    const bool holes = file.used < file.size;
    if (server_copies_ && !holes && file.size > 0) {
      const Outcome<std::optional<std::uint64_t>> copied =
          co_await temp_file.copy_within(remote_.url(), file);
      if (!copied) co_return Failure{copied.error()};
      if (*copied) co_return **copied;
      server_copies_ = false;
    }
    co_return co_await remote_.files().read_file(file.handle, temp_file.sink(), file.size);
  }
  Task<Outcome<std::uint64_t>> read_at(CopyObject file, std::uint64_t offset,
                                       MutableBytes to) override {
    return remote_.files().read_into(file.handle, offset, to);
  }

  Task<Outcome<CopyObject>> mkdir(CopyObject directory, std::string name,
                                  std::uint32_t mode) override {
    const Outcome<Node> made =
        co_await remote_.settling().mkdir(directory.handle, name, {.mode = mode});
    if (!made) co_return Failure{made.error()};
    co_return object_of(below(directory, name), made->handle, made->attributes);
  }
  Task<Outcome<Ok>> symlink(CopyObject directory, std::string name, std::string target) override {
    const TempFileNames names = temp_file_names(directory, std::move(name));
    FileSystem& files = remote_.settling();
    const Outcome<Node> made =
        co_await files.symlink(names.directory, names.temporary, std::move(target));
    if (!made && !is_answer(made.error())) co_await remove_temp_file(remote_, progress_, names);
    if (!made) co_return named_by_place(names, made.error());
    const Outcome<Ok> renamed =
        co_await files.rename(names.directory, names.temporary, names.directory, names.name);
    if (renamed) co_return renamed;
    co_await remove_temp_file(remote_, progress_, names);
    co_return named_by_place(names, renamed.error());
  }
  Task<Outcome<std::unique_ptr<TempFile>>> temp_file(CopyObject directory, std::string name,
                                                     TempFilePlan plan) override {
    return open_remote_temp_file(remote_, progress_, temp_file_names(directory, std::move(name)),
                                 std::move(plan));
  }
  std::uint64_t unordered_bytes() const override {
    // Those that may be in flight at a time, and as many again for the server.
    const std::uint64_t parts = std::uint64_t{2} * nfs::client::FileSystemOptions{}.window;
    return parts * remote_.files().sizes().write;
  }
  Task<Outcome<Ok>> link(CopyObject file, CopyObject directory, std::string name) override {
    const TempFileNames names = temp_file_names(directory, std::move(name));
    FileSystem& files = remote_.settling();
    const Outcome<Ok> made = co_await files.link(file.handle, names.directory, names.temporary);
    if (!made && !is_answer(made.error())) co_await remove_temp_file(remote_, progress_, names);
    if (!made) co_return named_by_place(names, made.error());
    const Outcome<Ok> renamed =
        co_await files.rename(names.directory, names.temporary, names.directory, names.name);
    // RFC 1813 3.3.14: nothing happens where both names are of one file already.
    co_await remove_temp_file(remote_, progress_, names);
    if (!renamed) co_return named_by_place(names, renamed.error());
    co_return renamed;
  }
  Task<Outcome<Ok>> remove(CopyObject directory, Member member) override {
    FileSystem& files = remote_.settling();
    if (member.object.kind == Kind::Directory)
      return files.rmdir(directory.handle, std::move(member.name));
    return files.remove(directory.handle, std::move(member.name));
  }
  Task<Outcome<Ok>> finish(CopyObject object, Finish finish) override {
    return finish_remote(remote_.settling(), std::move(object), std::move(finish));
  }

 private:
  // Reads what is behind byte `at` of a file, piece by piece.
  Task<Outcome<std::uint64_t>> feed_rest(CopyObject file, nfs::client::DataSink& sink,
                                         std::uint64_t at) {
    constexpr std::size_t kPiece = std::size_t{8} << 20;
    std::vector<std::byte> buffer(kPiece);
    for (;;) {
      const Outcome<std::uint64_t> got =
          co_await remote_.files().read_into(file.handle, at, buffer);
      if (!got) co_return Failure{got.error()};
      if (*got == 0) co_return at;
      const Outcome<Ok> written = co_await sink.write(at, Bytes(buffer).first(*got));
      if (!written) co_return Failure{written.error()};
      at += *got;
    }
  }
  TempFileNames temp_file_names(const CopyObject& directory, std::string name) const {
    TempFileNames names;
    names.directory = directory.handle;
    names.temporary = temporary_name();
    names.temporary_place = shown_path(below(directory, names.temporary));
    names.place = shown_path(below(directory, name));
    names.name = std::move(name);
    return names;
  }

  Remote& remote_;
  bool server_copies_ = true;  // until one is not copied by the server
  Progress& progress_;
};

}  // namespace

std::unique_ptr<CopyEndpoint> remote_endpoint(Remote& remote, Progress& progress) {
  return std::make_unique<RemoteEndpoint>(remote, progress);
}

}  // namespace stag::cli
