// Files of an NFS server as one end of a copy.
#include <utility>

#include "cli/remote.h"
#include "cli/side.h"

namespace stag::cli {
namespace {

using nfs::client::Attributes;
using nfs::client::CreateMode;
using nfs::client::DataSink;
using nfs::client::DataSource;
using nfs::client::Entry;
using nfs::client::Error;
using nfs::client::FileSystem;
using nfs::client::Handle;
using nfs::client::Links;
using nfs::client::Listing;
using nfs::client::Node;
using nfs::client::SetAttributes;
using nfs::client::SetTime;

Kind kind_of(nfs::v3::ftype3 type) {
  if (type == nfs::v3::NF3REG) return Kind::File;
  if (type == nfs::v3::NF3DIR) return Kind::Directory;
  return type == nfs::v3::NF3LNK ? Kind::Symlink : Kind::Other;
}

Object object_of(std::string path, const Handle& handle, const Attributes& attributes) {
  Object object;
  object.path = std::move(path);
  object.handle = handle;
  object.kind = kind_of(attributes.type);
  object.mode = attributes.mode & 07777;
  object.size = attributes.size;
  object.used = attributes.used;
  object.accessed = attributes.atime;
  object.modified = attributes.mtime;
  return object;
}

std::string below(const Object& directory, const std::string& name) {
  const bool root = directory.path.empty() || directory.path == ".";
  return root ? name : directory.path + "/" + name;
}

SetAttributes attributes_of(const Finish& finish) {
  SetAttributes attributes;
  attributes.mode = finish.mode;
  if (finish.times) {
    attributes.accessed = SetTime::to(finish.accessed);
    attributes.modified = SetTime::to(finish.modified);
  }
  return attributes;
}

Outcome<std::optional<Object>> found(Outcome<Node> node, std::string path) {
  if (!node && node.error().is(nfs::v3::NFS3ERR_NOENT)) return std::optional<Object>();
  if (!node) return Failure{node.error()};
  return std::optional<Object>(object_of(std::move(path), node->handle, node->attributes));
}

// The user knows a file that is being made by `place`, which it is to have, and not by its
// temporary name.
Failure<Error> told_of(const std::string& place, const std::string& temporary, Error error) {
  const std::size_t at = error.sentence.find(temporary);
  if (at != std::string::npos) error.sentence.replace(at, temporary.size(), place);
  return Failure{std::move(error)};
}

// Counts what a source gives.
class CountedSource final : public DataSource {
 public:
  CountedSource(DataSource& source, Tally& tally) : source_(source), tally_(tally) {}
  Task<Outcome<Piece>> read(std::uint64_t offset, MutableBytes room) override {
    Outcome<Piece> piece = co_await source_.read(offset, room);
    if (piece) tally_.bytes += piece->hole + piece->data.size();
    co_return piece;
  }

 private:
  DataSource& source_;
  Tally& tally_;
};

// Data that comes in order and in pieces: written as it comes, put on disk at the end.
class PieceWriter final : public DataSink {
 public:
  PieceWriter(FileSystem& files, const Handle& file, bool sparse, Tally& tally)
      : files_(files), file_(file), sparse_(sparse), tally_(tally) {}

  Task<Outcome<Ok>> write(std::uint64_t offset, Bytes data) override {
    tally_.bytes += data.size();
    while (!data.empty()) {
      const Stretch stretch =
          sparse_ ? next_stretch(data, offset) : Stretch{.length = data.size(), .zeros = false};
      std::size_t done = stretch.length;
      if (!stretch.zeros) {
        const Outcome<FileSystem::WritePart> part =
            co_await files_.write(file_, offset, data.first(stretch.length), nfs::v3::UNSTABLE);
        if (!part) co_return Failure{part.error()};
        note(*part);
        done = part->count;
      }
      offset += done;
      data = data.subspan(done);
      if (!stretch.zeros) written_end_ = offset;
    }
    co_return Ok{};
  }

  // Puts on disk what was written; a hole at the end makes the file `size` bytes long.
  Task<Outcome<Ok>> complete(std::uint64_t size) {
    if (sparse_ && written_end_ < size) {
      SetAttributes attributes;
      attributes.size = size;
      const Outcome<Ok> set = co_await files_.setattr(file_, attributes);
      if (!set) co_return Failure{set.error()};
    }
    if (!verifier_) co_return Ok{};
    const Outcome<nfs::client::Verifier> committed = co_await files_.commit(file_);
    if (!committed) co_return Failure{committed.error()};
    // RFC 1813 3.3.21: another verifier says that the server may have lost what came before.
    if (!lost_ && *committed == *verifier_) co_return Ok{};
    co_return Failure{Error::of_local("the server restarted during the copy; copy again")};
  }

 private:
  void note(const FileSystem::WritePart& part) {
    if (part.committed != nfs::v3::UNSTABLE) return;
    lost_ = lost_ || (verifier_ && *verifier_ != part.verifier);
    verifier_ = part.verifier;
  }

  FileSystem& files_;
  const Handle file_;
  const bool sparse_;
  Tally& tally_;
  std::uint64_t written_end_ = 0;
  std::optional<nfs::client::Verifier> verifier_;  // of what was written unstably
  bool lost_ = false;
};

class RemoteDraft final : public Draft {
 public:
  // `place` is the file in messages.
  struct Names {
    std::string temporary, name, place;
  };
  RemoteDraft(Remote& remote, Tally& tally, const Object& directory, Names names, const Node& node,
              bool sparse)
      : remote_(remote),
        tally_(tally),
        directory_(directory.handle),
        names_(std::move(names)),
        file_(node.handle),
        mode_(node.attributes.mode & 07777),
        pieces_(remote.files(), node.handle, sparse, tally) {}

  Task<Outcome<std::uint64_t>> fill(DataSource& source) override {
    CountedSource counted(source, tally_);
    co_return co_await remote_.files().write_file(file_, counted);
  }
  DataSink& sink() override {
    in_pieces_ = true;
    return pieces_;
  }

  Task<Outcome<Ok>> publish(std::uint64_t size, Finish finish) override {
    FileSystem& files = remote_.files();
    Outcome<Ok> done{Ok{}};
    if (in_pieces_) done = co_await pieces_.complete(size);
    if (done && (finish.times || finish.mode != mode_))
      done = co_await files.setattr(file_, attributes_of(finish));
    if (!done) co_return done;
    done = co_await files.rename(directory_, names_.temporary, directory_, names_.name);
    if (!done) co_return told_of(names_.place, names_.temporary, done.error());
    co_return done;
  }
  Task<void> discard() override {
    // What stood in the way of the copy may stand in the way of this too; it has been told.
    static_cast<void>(co_await remote_.cleaner().remove(directory_, names_.temporary));
  }

 private:
  Remote& remote_;
  Tally& tally_;
  const Handle directory_;
  const Names names_;
  const Handle file_;
  const std::uint32_t mode_;
  PieceWriter pieces_;
  bool in_pieces_ = false;
};

class RemoteMembers final : public Members {
 public:
  RemoteMembers(FileSystem& files, const Object& directory)
      : files_(files),
        directory_(directory),
        listing_(files.list(directory.handle, Listing::Detail::Attributes)) {}

  Task<Outcome<std::vector<Member>>> next() override {
    Outcome<std::vector<Entry>> batch = co_await listing_.next();
    if (!batch) co_return Failure{batch.error()};
    std::vector<Member> members;
    for (Entry& entry : *batch) {
      const Outcome<std::optional<Object>> object = co_await object_for(entry);
      if (!object) co_return Failure{object.error()};
      if (*object) members.push_back({std::move(entry.name), **object});
    }
    // All of a batch may have gone meanwhile; an empty answer would end the listing.
    if (members.empty() && !batch->empty()) co_return co_await next();
    co_return members;
  }

 private:
  Task<Outcome<std::optional<Object>>> object_for(const Entry& entry) {
    std::string path = below(directory_, entry.name);
    if (entry.attributes && entry.handle)
      co_return std::optional<Object>(object_of(std::move(path), *entry.handle, *entry.attributes));
    co_return found(co_await files_.lookup(directory_.handle, entry.name), std::move(path));
  }

  FileSystem& files_;
  const Object directory_;
  Listing listing_;
};

class RemoteSide final : public Side {
 public:
  RemoteSide(Remote& remote, Tally& tally) : remote_(remote), tally_(tally) {}

  Task<Outcome<std::optional<Object>>> find(std::string path, Follow follow) override {
    const Links links = follow == Follow::Yes ? Links::Follow : Links::FollowAllButLast;
    co_return found(co_await remote_.files().walk(path, links), path);
  }
  Task<Outcome<std::optional<Object>>> find_in(Object directory, std::string name) override {
    co_return found(co_await remote_.files().lookup(directory.handle, name),
                    below(directory, name));
  }
  std::string shown_path(const std::string& path) const override {
    nfs::client::Url url = remote_.url();
    url.path = remote_.files().root_path();
    if (!path.empty()) url.path += (url.path.ends_with('/') ? "" : "/") + path;
    return to_string(url);
  }

  std::unique_ptr<Members> members(const Object& directory) override {
    return std::make_unique<RemoteMembers>(remote_.files(), directory);
  }
  Task<Outcome<std::string>> readlink(Object symlink) override {
    return remote_.files().readlink(symlink.handle, symlink.size);
  }
  Task<Outcome<std::uint64_t>> feed(Object file, Draft& draft) override {
    co_return co_await remote_.files().read_file(file.handle, draft.sink(), file.size);
  }

  Task<Outcome<Object>> mkdir(Object directory, std::string name, std::uint32_t mode) override {
    const Outcome<Node> made =
        co_await remote_.files().mkdir(directory.handle, name, {.mode = mode});
    if (!made) co_return Failure{made.error()};
    co_return object_of(below(directory, name), made->handle, made->attributes);
  }
  Task<Outcome<Ok>> symlink(Object directory, std::string name, std::string target) override {
    const std::string temporary = temporary_name();
    const Outcome<Node> made =
        co_await remote_.files().symlink(directory.handle, temporary, std::move(target));
    const std::string place = shown_path(below(directory, name));
    if (!made) co_return told_of(place, temporary, made.error());
    const Outcome<Ok> renamed =
        co_await remote_.files().rename(directory.handle, temporary, directory.handle, name);
    if (renamed) co_return renamed;
    static_cast<void>(co_await remote_.cleaner().remove(directory.handle, temporary));
    co_return told_of(place, temporary, renamed.error());
  }
  Task<Outcome<std::unique_ptr<Draft>>> draft(Object directory, std::string name,
                                              std::uint32_t mode, bool sparse) override {
    RemoteDraft::Names names;
    names.temporary = temporary_name();
    names.place = shown_path(below(directory, name));
    names.name = std::move(name);
    const Outcome<Node> made = co_await remote_.files().create(directory.handle, names.temporary,
                                                               {.mode = mode}, CreateMode::Guarded);
    if (!made) co_return told_of(names.place, names.temporary, made.error());
    co_return std::unique_ptr<Draft>(
        std::make_unique<RemoteDraft>(remote_, tally_, directory, std::move(names), *made, sparse));
  }
  Task<Outcome<Ok>> finish(Object directory, Finish finish) override {
    return remote_.files().setattr(directory.handle, attributes_of(finish));
  }

 private:
  Remote& remote_;
  Tally& tally_;
};

}  // namespace

std::unique_ptr<Side> remote_side(Remote& remote, Tally& tally) {
  return std::make_unique<RemoteSide>(remote, tally);
}

}  // namespace stag::cli
