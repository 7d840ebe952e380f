// RemoteEndpoint: files of an NFS server as one end of a copy.
#include <algorithm>
#include <utility>

#include "cli/copy/remote_temp_file.h"
#include "cli/support/entry_trouble.h"
#include "nfs/client/acl.h"

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

// Bytes of the extended attributes of one object that are kept in memory; none has as many.
constexpr std::size_t kMostXattrBytes = 16u << 20;

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
  object.owner = owner_of(attributes);
  object.size = attributes.size;
  object.used = attributes.used;
  object.accessed = attributes.accessed;
  object.modified = attributes.modified;
  object.changed = attributes.changed;
  object.file_id = attributes.file_id;
  object.fsid = attributes.file_system_id;
  if (object.kind == Kind::Other)
    object.special = nfs::client::Special{attributes.type, attributes.device};
  return object;
}

// Whether this user, or anybody, can have no special file of that kind there.
bool refuses_the_kind(const Error& error) {
  using nfs::client::Status;
  return error.is(Status::NotOwner) || error.is(Status::NotSupported) ||
         error.is(Status::BadType) || error.is(Status::Invalid);
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
      Outcome<std::optional<CopyObject>> object = co_await object_for(entry);
      const std::optional<Error> trouble = object ? std::nullopt : entry_trouble(object.error());
      if (trouble) object = std::optional(CopyObject{.path = below(directory_, entry.name)});
      if (!object) co_return Failure{object.error()};
      if (*object) members.push_back({std::move(entry.name), **object, trouble});
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
  RemoteEndpoint(Remote& remote, Progress& progress)
      : remote_(remote), acl_support_(remote.url().version.value_or(0)), progress_(progress) {}

  Task<Outcome<std::optional<CopyObject>>> find(std::string path, Follow follow) override {
    const Links links = follow == Follow::Yes ? Links::Follow : Links::FollowAllButLast;
    co_return found(co_await remote_.walk(path, links), path);
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
  Task<Outcome<Extras>> extras(CopyObject object, ExtraKinds kinds) override {
    Extras extras;
    // Directories get theirs after an interruption, too.
    FileSystem& files = remote_.settling();
    if (kinds.xattrs) {
      const Outcome<std::vector<std::string>> names = co_await files.list_xattrs(object.handle);
      if (!names) co_return Failure{names.error()};
      std::size_t bytes = 0;
      for (const std::string& name : *names) {
        Outcome<std::string> value = co_await files.xattr(object.handle, name);
        // One that was removed meanwhile.
        if (!value && value.error().is(nfs::client::Status::NoXattr)) continue;
        if (!value) co_return Failure{value.error()};
        bytes += value->size();
        if (bytes > kMostXattrBytes)
          co_return Failure{Error::of_protocol({"read the extended attributes of", object.path},
                                               "sent more than a file has")};
        extras.xattrs.emplace_back(name, *std::move(value));
      }
    }
    if (!kinds.acls) co_return extras;
    extras.of_directory = object.kind == Kind::Directory;
    if (acl_support_.has_nfs4_acls()) {
      Outcome<nfs::client::Nfs4Acl> nfs4_acl =
          co_await acl_support_.ask(object.fsid, files.nfs4_acl(object.handle));
      if (!nfs4_acl) co_return Failure{nfs4_acl.error()};
      if (beyond_mode(*nfs4_acl, extras.of_directory)) extras.nfs4_acl = *std::move(nfs4_acl);
      co_return extras;
    }
    Outcome<nfs::client::Acls> acls =
        co_await acl_support_.ask(object.fsid, files.acls(object.handle));
    if (!acls) co_return Failure{acls.error()};
    if (acls->beyond_mode()) extras.acls = *std::move(acls);
    co_return extras;
  }
  Task<Outcome<std::uint64_t>> feed(CopyObject file, TempFile& temp_file,
                                    std::uint64_t from) override {
    if (from == 0 && ways_.any() && file.size > 0) {
      const Outcome<std::optional<std::uint64_t>> copied =
          co_await temp_file.copy_by_server(remote_, file, ways_);
      if (!copied) co_return Failure{copied.error()};
      if (*copied) co_return **copied;
    }
    if (seeks_ && file.used < file.size) {
      const NextHole next = [this, &file](std::uint64_t at) { return next_hole(file, at); };
      const Outcome<Ok> punched = co_await punch_holes(next, temp_file, from);
      if (!punched) co_return Failure{punched.error()};
      const Outcome<std::optional<std::uint64_t>> fed =
          co_await feed_data(file, temp_file.sink(), from);
      if (!fed) co_return Failure{fed.error()};
      if (*fed) co_return **fed;
    }
    if (from > 0) co_return co_await feed_rest(std::move(file), temp_file.sink(), from);
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
  Task<Outcome<Ok>> symlink(CopyObject directory, std::string name, std::string target,
                            Finish finish) override {
    const TempFileNames names = temp_file_names(directory, std::move(name));
    FileSystem& files = remote_.settling();
    const Outcome<Node> made =
        co_await files.symlink(names.directory, names.temporary, std::move(target));
    if (!made && !is_answer(made.error())) co_await remove_temp_file(remote_, progress_, names);
    if (!made) co_return named_by_place(names, made.error());
    co_await finish_symlink(object_of("", made->handle, made->attributes), finish);
    const Outcome<Ok> renamed =
        co_await files.rename(names.directory, names.temporary, names.directory, names.name);
    if (renamed) co_return renamed;
    co_await remove_temp_file(remote_, progress_, names);
    co_return named_by_place(names, renamed.error());
  }
  Task<Outcome<std::string>> mknod(CopyObject directory, std::string name,
                                   nfs::client::Special special, Finish finish) override {
    const TempFileNames names = temp_file_names(directory, std::move(name));
    FileSystem& files = remote_.settling();
    const Outcome<Node> made =
        co_await files.mknod(names.directory, names.temporary, special, {.mode = 0600});
    if (!made && !is_answer(made.error())) co_await remove_temp_file(remote_, progress_, names);
    if (!made && refuses_the_kind(made.error()))
      co_return named_by_place(names, made.error()).error.sentence;
    if (!made) co_return named_by_place(names, made.error());
    // Version 2 has no call for it: a server that does not know how others say it makes a file.
    const bool right = made->attributes.type == special.type;
    Outcome<Ok> done{Ok{}};
    if (right)
      done = co_await finish_remote(files, object_of("", made->handle, made->attributes), finish);
    if (right && done)
      done = co_await files.rename(names.directory, names.temporary, names.directory, names.name);
    if (right && done) co_return std::string();
    co_await remove_temp_file(remote_, progress_, names);
    if (!right) co_return std::string("the server makes something else");
    co_return named_by_place(names, done.error());
  }
  Task<Outcome<std::unique_ptr<TempFile>>> temp_file(CopyObject directory, std::string name,
                                                     TempFilePlan plan) override {
    return open_remote_temp_file(remote_, acl_support_, progress_,
                                 temp_file_names(directory, std::move(name)), std::move(plan));
  }
  Task<Outcome<std::uint64_t>> unordered_bytes() override {
    // As FileSystem::write_file() has it: further apart no WRITEs are in flight. Those of the copy
    // that was interrupted may have been larger than this session's, by its URL and its version.
    const Outcome<nfs::client::FileSystemInfo> info = co_await remote_.files().info();
    if (!info) co_return Failure{info.error()};
    const std::uint64_t parts = std::uint64_t{2} * nfs::client::FileSystemOptions{}.window;
    const std::uint64_t bytes =
        parts * std::max(nfs::client::TransferSizes{}.write, info->write_max);
    co_return bytes;
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
  Task<Outcome<Ok>> adopt(CopyObject object, Extras extras) override {
    return adopt_remote(remote_.settling(), acl_support_, std::move(object), std::move(extras));
  }
  Task<Outcome<Ok>> rename(CopyObject directory, std::string name, std::string to) override {
    return remote_.settling().rename(directory.handle, std::move(name), directory.handle,
                                     std::move(to));
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
  Task<Outcome<nfs::client::Time>> modified(CopyObject object) override {
    const Outcome<Attributes> now = co_await remote_.settling().getattr(object.handle);
    if (!now) co_return Failure{now.error()};
    co_return now->modified;
  }
  Task<void> finish_symlink(CopyObject link, Finish finish) override {
    nfs::client::SetAttributes attributes;
    if (finish.owner && can_own(*finish.owner)) {
      attributes.uid = finish.owner->uid;
      attributes.gid = finish.owner->gid;
      static_cast<void>(co_await remote_.files().setattr(link.handle, attributes));
    }
    if (!finish.times) co_return;
    attributes = {};
    attributes.accessed = nfs::client::SetTime::to(finish.accessed);
    attributes.modified = nfs::client::SetTime::to(finish.modified);
    static_cast<void>(co_await remote_.files().setattr(link.handle, attributes));
  }
  TimeRange times() const override { return remote_.times(); }

 private:
  // As NextHole; nullopt also where the server does not know holes (RFC 7862 15.11).
  Task<Outcome<std::optional<nfs::client::FileRange>>> next_hole(CopyObject file,
                                                                 std::uint64_t at) {
    using nfs::client::Content;
    using Hole = std::optional<nfs::client::FileRange>;
    const auto hole = co_await remote_.files().seek(file.handle, at, Content::Hole);
    if (!hole && hole.error().kind == Error::Kind::Nfs) co_return Hole();
    if (!hole) co_return Failure{hole.error()};
    if (!*hole || **hole >= file.size) co_return Hole();
    const auto data = co_await remote_.files().seek(file.handle, **hole, Content::Data);
    if (!data) co_return Failure{data.error()};
    const std::uint64_t end = std::max(data->value_or(file.size), **hole);
    // Another client may have written there meanwhile.
    if (end == **hole) co_return Hole();
    co_return Hole({**hole, end - **hole});
  }
  // Reads a file but for its holes from byte `from` on, and yields its length, which may have
  // changed meanwhile; nullopt where the server does not know them.
  Task<Outcome<std::optional<std::uint64_t>>> feed_data(CopyObject file,
                                                        nfs::client::DataSink& sink,
                                                        std::uint64_t from) {
    using nfs::client::Content;
    std::vector<std::byte> buffer;
    std::uint64_t at = from;
    while (at < file.size) {
      const auto data = co_await remote_.files().seek(file.handle, at, Content::Data);
      if (!data && at == from && data.error().kind == Error::Kind::Nfs) {
        if (of_all_files(data.error())) seeks_ = false;
        co_return std::optional<std::uint64_t>();
      }
      if (!data) co_return Failure{data.error()};
      if (*data && **data < at) co_return Failure{misled(file)};
      // Nothing but a hole is left, or the file ends before `at`: reading tells.
      if (!*data) co_return co_await feed_last_hole(std::move(file), sink, at);
      progress_.bytes += **data - at;
      const auto hole = co_await remote_.files().seek(file.handle, **data, Content::Hole);
      if (!hole) co_return Failure{hole.error()};
      const std::uint64_t end = hole->value_or(file.size);
      const Outcome<std::uint64_t> fed = co_await feed_range(file, sink, **data, end, buffer);
      if (!fed) co_return Failure{fed.error()};
      if (end <= at) co_return Failure{misled(file)};
      const bool shrank = *fed < end;
      // Without a byte of data, the file ends in the hole before.
      if (!shrank || *fed > **data) at = *fed;
      if (shrank) break;
    }
    co_return some(co_await feed_rest(std::move(file), sink, at));
  }
  // Passes over what is left of a file if it still has the length that is known of it.
  Task<Outcome<std::optional<std::uint64_t>>> feed_last_hole(CopyObject file,
                                                             nfs::client::DataSink& sink,
                                                             std::uint64_t at) {
    std::byte last{};
    const Outcome<std::uint64_t> got =
        co_await remote_.files().read_into(file.handle, file.size - 1, MutableBytes(&last, 1));
    if (!got) co_return Failure{got.error()};
    if (*got == 1) progress_.bytes += file.size - at;
    const std::uint64_t from = *got == 1 ? file.size : at;
    co_return some(co_await feed_rest(std::move(file), sink, from));
  }
  static Outcome<std::optional<std::uint64_t>> some(const Outcome<std::uint64_t>& length) {
    if (!length) return Failure{length.error()};
    return std::optional(*length);
  }
  // What it finds must be behind what it was asked for, or a file would have no end.
  static Error misled(const CopyObject& file) {
    return Error::of_protocol({"look for data of", file.path},
                              "finds it before the place asked for");
  }
  // Yields where it ended: before `end` where the file does.
  Task<Outcome<std::uint64_t>> feed_range(const CopyObject& file, nfs::client::DataSink& sink,
                                          std::uint64_t at, std::uint64_t end,
                                          std::vector<std::byte>& buffer) {
    constexpr std::uint64_t kMost = std::uint64_t{8} << 20;
    buffer.resize(std::max<std::uint64_t>(buffer.size(), std::min(kMost, end - at)));
    while (at < end) {
      const auto wanted = std::min<std::uint64_t>(buffer.size(), end - at);
      const Outcome<std::uint64_t> got =
          co_await remote_.files().read_into(file.handle, at, MutableBytes(buffer).first(wanted));
      if (!got) co_return Failure{got.error()};
      if (*got == 0) break;
      const Outcome<Ok> written = co_await sink.write(at, Bytes(buffer).first(*got));
      if (!written) co_return Failure{written.error()};
      at += *got;
    }
    co_return at;
  }
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
  AclSupport acl_support_;
  ServerCopies ways_;  // until one is not copied by servers
  bool seeks_ = true;  // until the server does not know where holes are
  Progress& progress_;
};

}  // namespace

std::unique_ptr<CopyEndpoint> remote_endpoint(Remote& remote, Progress& progress) {
  return std::make_unique<RemoteEndpoint>(remote, progress);
}

}  // namespace stag::cli
