#include "cli/copy/remote_temp_file.h"

#include <exception>
#include <new>
#include <utility>

#include "cli/copy/copy_between.h"
#include "nfs/client/acl.h"

namespace stag::cli {
namespace {

using nfs::client::CreateMode;
using nfs::client::DataSink;
using nfs::client::DataSource;
using nfs::client::FileSystem;
using nfs::client::Handle;
using nfs::client::Node;
using nfs::client::SetAttributes;
using nfs::client::SetTime;
using CopyError = nfs::client::Error;

// Whether the user lacks permission; any other error would occur in every other way, too.
bool refused(const CopyError& error) {
  return error.is(nfs::client::Status::NotOwner) || error.is(nfs::client::Status::Access);
}
bool owner_refused(const CopyError& error) {
  return refused(error) || error.is(nfs::client::Status::Invalid) ||
         error.is(nfs::client::Status::NotSupported);
}

// Sets the owner, or at least the group. Whether the object has that owner now.
Task<Outcome<bool>> give_to(FileSystem& files, const CopyObject& object, Owner owner) {
  // Two owners that are not known may be different ones.
  if (!can_own(owner)) co_return false;
  if (owner == object.owner) co_return true;
  const Outcome<Ok> given =
      co_await files.setattr(object.handle, {.uid = owner.uid, .gid = owner.gid});
  if (given) co_return true;
  if (!owner_refused(given.error())) co_return Failure{given.error()};
  static_cast<void>(co_await files.setattr(object.handle, {.gid = owner.gid}));
  co_return false;
}

// Whether the handles of one mean the same files to the other.
bool same_server(const nfs::client::Url& a, const nfs::client::Url& b) {
  return a.version == 4 && b.version == 4 && a.nfs_address() == b.nfs_address() &&
         a.port_from_rpcbind == b.port_from_rpcbind;
}

// Counts the bytes of a source.
class CountedSource final : public DataSource {
 public:
  CountedSource(DataSource& source, Progress& progress) : source_(source), progress_(progress) {}
  Task<Outcome<Piece>> read(std::uint64_t offset, MutableBytes buffer) override {
    Outcome<Piece> piece = co_await source_.read(offset, buffer);
    if (piece) progress_.bytes += piece->hole + piece->data.size();
    co_return piece;
  }

 private:
  DataSource& source_;
  Progress& progress_;
};

// Writes data that arrives in order and in pieces, and commits it at the end.
class PieceWriter final : public DataSink {
 public:
  PieceWriter(FileSystem& files, const Handle& file, bool sparse, Progress& progress)
      : files_(files), file_(file), sparse_(sparse), progress_(progress) {}

  Task<Outcome<Ok>> write(std::uint64_t offset, Bytes data) override {
    progress_.bytes += data.size();
    while (!data.empty()) {
      const Stretch stretch =
          sparse_ ? next_stretch(data, offset) : Stretch{.length = data.size(), .zeros = false};
      std::size_t done = stretch.length;
      if (!stretch.zeros) {
        const Outcome<nfs::client::WritePart> part = co_await files_.write(
            file_, offset, data.first(stretch.length), nfs::client::Stability::Unstable);
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

  // A server has begun to copy, and may have gone further than the source is long by now.
  void note_copy() { may_be_longer_ = true; }
  bool may_be_longer() const { return may_be_longer_; }

  // Makes the data durable, and the file `size` bytes long.
  Task<Outcome<Ok>> complete(std::uint64_t size) {
    if ((sparse_ && written_end_ < size) || may_be_longer_) {
      SetAttributes attributes;
      attributes.size = size;
      const Outcome<Ok> set = co_await files_.setattr(file_, attributes);
      if (!set) co_return Failure{set.error()};
    }
    if (!verifier_) co_return Ok{};
    const Outcome<nfs::client::Verifier> committed = co_await files_.commit(file_);
    if (!committed) co_return Failure{committed.error()};
    // RFC 1813 3.3.21: another verifier means that the server may have lost earlier data.
    if (!lost_ && *committed == *verifier_) co_return Ok{};
    co_return Failure{CopyError::of_local("the server restarted during the copy; copy again")};
  }

 private:
  void note(const nfs::client::WritePart& part) {
    if (part.committed != nfs::client::Stability::Unstable) return;
    lost_ = lost_ || (verifier_ && *verifier_ != part.verifier);
    verifier_ = part.verifier;
  }

  FileSystem& files_;
  const Handle& file_;
  const bool sparse_;
  bool may_be_longer_ = false;
  Progress& progress_;
  std::uint64_t written_end_ = 0;
  std::optional<nfs::client::Verifier> verifier_;  // of the unstable WRITEs
  bool lost_ = false;
};

// The bytes that the server has copied of one file, as far as it has said.
class CopyCount {
 public:
  explicit CopyCount(Progress& progress) : progress_(progress) {}
  // A copy that begins again says less.
  void tell(std::uint64_t bytes) {
    if (bytes <= told_) return;
    progress_.bytes += bytes - told_;
    told_ = bytes;
  }
  nfs::client::CopyWatch watch() {
    return {.progress = [this](std::uint64_t bytes) { tell(bytes); }, .cancel = {}};
  }
  // What was not copied so is counted when it passes.
  void take_back() { progress_.bytes -= std::exchange(told_, 0); }

 private:
  Progress& progress_;
  std::uint64_t told_ = 0;
};

class RemoteTempFile final : public TempFile {
 public:
  // `file` is the new one, or the one that is written in place.
  RemoteTempFile(Remote& remote, AclSupport& support, Progress& progress, TempFileNames names,
                 CopyObject file, const TempFilePlan& plan, bool in_place)
      : remote_(remote),
        support_(support),
        progress_(progress),
        names_(std::move(names)),
        file_(std::move(file)),
        finish_(plan.finish),
        pieces_(remote.files(), file_.handle, plan.sparse, progress),
        in_place_(in_place),
        keep_existing_(plan.keep_existing) {}

  bool in_place() const override { return in_place_; }
  bool is_lost() const override { return lost_; }
  // Makes the new file. False where none can take the place of the one that is there.
  Task<Outcome<bool>> make(const TempFilePlan& plan) {
    const Outcome<Node> made = co_await remote_.settling().create(
        names_.directory, names_.temporary, {.mode = plan.first_mode()}, CreateMode::Guarded);
    if (!made && plan.existing && refused(made.error())) co_return false;
    if (!made && !is_answer(made.error())) co_await discard();
    if (!made) co_return named_by_place(names_, made.error());
    file_.handle = made->handle;
    file_.file_id = made->attributes.file_id;
    file_.fsid = made->attributes.file_system_id;
    file_.mode = made->attributes.mode & 07777;
    file_.owner = owner_of(made->attributes);
    if (!plan.keeps_owner()) co_return true;
    Outcome<bool> taken = co_await take_owner();
    if (!taken || !*taken) co_await discard();
    co_return taken;
  }

  // Whether the new file has the owner that it is to have; its mode has none of kOwnersBits yet.
  Task<Outcome<bool>> take_owner() {
    Outcome<bool> taken = co_await give_to(remote_.files(), file_, *finish_.owner);
    if (taken && *taken) file_.owner = *finish_.owner;
    co_return taken;
  }

  Task<Outcome<Ok>> fill(DataSource& source, std::uint64_t from) override {
    CountedSource counted(source, progress_);
    const Outcome<std::uint64_t> filled =
        co_await remote_.files().write_file(file_.handle, counted, from);
    if (!filled) co_return Failure{filled.error()};
    co_return Ok{};
  }
  DataSink& sink() override {
    in_pieces_ = true;
    return pieces_;
  }

  Task<Outcome<bool>> punch(nfs::client::FileRange range) override {
    // What a server has against it is no failure of the copy: what is there reads the same.
    const Outcome<Ok> punched = co_await remote_.files().deallocate(file_.handle, range);
    if (!answered(punched)) co_return Failure{punched.error()};
    co_return punched.ok();
  }

  Task<Outcome<Ok>> adopt(Extras extras) override {
    return adopt_remote(remote_.files(), support_, file_, std::move(extras));
  }

  Task<Outcome<std::optional<std::uint64_t>>> copy_by_server(Remote& from, CopyObject source,
                                                             ServerCopies& ways) override {
    const bool within = same_server(from.url(), remote_.url());
    if (within)
      ways.between = false;
    else
      ways.clone = ways.copy = false;
    return within ? copy_within(std::move(source), ways)
                  : copy_from_other(from, std::move(source), ways);
  }

  Task<Outcome<bool>> publish(std::uint64_t size) override {
    FileSystem& files = remote_.files();
    Outcome<Ok> done{Ok{}};
    if (in_pieces_ || pieces_.may_be_longer()) done = co_await pieces_.complete(size);
    if (done) done = co_await finish_remote(files, file_, finish_);
    if (!done) co_return Failure{done.error()};
    if (in_place_) co_return true;
    if (keep_existing_) {
      const Outcome<bool> linked = co_await link_to_name();
      if (linked || linked.error().kind != CopyError::Kind::Nfs) co_return linked;
      // There are no links, here or of this file; the copier has looked a moment ago.
    }
    done = co_await remote_.settling().rename(names_.directory, names_.temporary, names_.directory,
                                              names_.name);
    if (!done) co_return named_by_place(names_, done.error());
    co_return true;
  }
  Task<void> discard() override {
    if (!in_place_) co_await remove_temp_file(remote_, progress_, names_);
  }

 private:
  // RFC 1813 3.3.15: LINK, unlike RENAME, replaces nothing. False: the name is another file's.
  Task<Outcome<bool>> link_to_name() {
    FileSystem& files = remote_.settling();
    const Outcome<Ok> linked = co_await files.link(file_.handle, names_.directory, names_.name);
    const bool exists = !linked && linked.error().is(nfs::client::Status::Exists);
    if (!linked && !exists) co_return Failure{linked.error()};
    if (exists) {
      // It may be the result of an earlier transmission of the same call.
      const Outcome<Node> there = co_await files.lookup(names_.directory, names_.name);
      const bool ours = there && there->attributes.file_id == file_.file_id &&
                        there->attributes.file_system_id == file_.fsid;
      if (!ours) co_return false;
    }
    co_await remove_temp_file(remote_, progress_, names_);
    co_return true;
  }
  Task<Outcome<std::optional<std::uint64_t>>> copy_within(CopyObject source, ServerCopies& ways) {
    const nfs::client::FileRange all{0, source.size};
    if (ways.clone) {
      const Outcome<Ok> cloned =
          co_await remote_.files().clone_range(source.handle, all, file_.handle, 0);
      if (!answered(cloned)) co_return Failure{cloned.error()};
      if (cloned) co_return counted(source.size);
      // RFC 7862 15.13.3: what is no multiple of the file system's blocks is invalid, too.
      ways.clone =
          !of_all_files(cloned.error()) && !cloned.error().is(nfs::client::Status::Invalid);
    }
    // A server may fill holes when it copies.
    if (!ways.copy || source.used < source.size) co_return std::optional<std::uint64_t>();
    CopyCount count(progress_);
    const Outcome<std::uint64_t> copied =
        co_await remote_.files().copy_range(source.handle, all, file_.handle, 0, count.watch());
    ways.copy = copied || !of_all_files(copied.error());
    co_return whole(copied, source.size, count);
  }
  // Most servers do not do it, or not with each other: what one refuses it is not asked for again,
  // unless it has only too much to do. In the place of a file that is lost there must be another.
  Task<Outcome<std::optional<std::uint64_t>>> copy_from_other(Remote& from, CopyObject source,
                                                              ServerCopies& ways) {
    ways.between = ways.between && may_copy_between(from.url(), remote_.url());
    if (!ways.between || in_place_ || !is_worth_asking(source))
      co_return std::optional<std::uint64_t>();
    CopyCount count(progress_);
    const Outcome<std::uint64_t> copied =
        co_await copy_between(from, source, remote_, file_.handle, count.watch());
    if (!copied && !copied.error().is(nfs::client::Status::Delay)) ways.between = false;
    lost_ = !answered(copied);
    co_return whole(copied, source.size, count);
  }
  // nullopt: less than all of it. The data is moved by other means, over what was copied.
  Outcome<std::optional<std::uint64_t>> whole(const Outcome<std::uint64_t>& copied,
                                              std::uint64_t size, CopyCount& count) {
    if (copied && *copied == size) return std::optional(size);
    count.take_back();
    if (!answered(copied)) return Failure{copied.error()};
    pieces_.note_copy();
    return std::optional<std::uint64_t>();
  }
  // Whatever the server has against it: to read and write it may work, or says why not.
  template <class T>
  static bool answered(const Outcome<T>& outcome) {
    return outcome || outcome.error().kind == CopyError::Kind::Nfs;
  }
  std::optional<std::uint64_t> counted(std::uint64_t size) {
    progress_.bytes += size;
    return size;
  }

  Remote& remote_;
  AclSupport& support_;
  Progress& progress_;
  const TempFileNames names_;
  CopyObject file_;
  const Finish finish_;
  PieceWriter pieces_;
  const bool in_place_;
  const bool keep_existing_;
  bool in_pieces_ = false;
  bool lost_ = false;
};

Task<Outcome<std::unique_ptr<TempFile>>> open_remote_in_place(Remote& remote, AclSupport& support,
                                                              Progress& progress,
                                                              TempFileNames names,
                                                              TempFilePlan plan) {
  CopyObject file = *plan.existing;
  FileSystem& files = remote.files();
  Outcome<Ok> emptied{Ok{}};
  if ((file.mode & kOwnersBits) == 0) {
    emptied = co_await files.setattr(file.handle, {.size = plan.kept});
  } else {
    emptied = co_await files.setattr(file.handle, {.mode = file.mode & 0777, .size = plan.kept});
    if (emptied) file.mode &= 0777;
    // Only the owner can set the mode; when another user writes, the server's system clears the
    // bits.
    if (!emptied && refused(emptied.error()))
      emptied = co_await files.setattr(file.handle, {.size = plan.kept});
  }
  if (!emptied) co_return Failure{emptied.error()};
  co_return std::unique_ptr<TempFile>(std::make_unique<RemoteTempFile>(
      remote, support, progress, std::move(names), std::move(file), plan, true));
}

}  // namespace

Owner owner_of(const nfs::client::Attributes& attributes) {
  return {attributes.uid_unknown ? kNoOwner : attributes.uid,
          attributes.gid_unknown ? kNoOwner : attributes.gid};
}

Task<Outcome<Ok>> finish_remote(FileSystem& files, CopyObject object, Finish finish) {
  if (finish.owner && *finish.owner != object.owner) {
    Outcome<Ok> taken{Ok{}};
    if ((object.mode & kOwnersBits) != 0) {
      taken = co_await files.setattr(object.handle, {.mode = object.mode & 0777});
      if (!taken && !refused(taken.error())) co_return taken;
      if (taken) object.mode &= 0777;
    }
    Outcome<bool> given{false};
    if (taken) given = co_await give_to(files, object, *finish.owner);
    if (!given) co_return Failure{given.error()};
    // Taking the bits away and giving the object away take the same right: they stay.
    if (!*given) finish.mode &= ~kOwnersBits;
    if (!taken) finish.mode |= object.mode & kOwnersBits;
  }
  SetAttributes attributes;
  if (finish.mode != object.mode) attributes.mode = finish.mode;
  if (finish.times) {
    attributes.accessed = SetTime::to(finish.accessed);
    attributes.modified = SetTime::to(finish.modified);
  }
  if (!attributes.mode && !finish.times) co_return Ok{};
  co_return co_await files.setattr(object.handle, attributes);
}

Task<Outcome<Ok>> adopt_remote(FileSystem& files, AclSupport& support, CopyObject object,
                               Extras extras) {
  for (auto& [name, value] : extras.xattrs) {
    const Outcome<Ok> set = co_await files.set_xattr(object.handle, name, std::move(value));
    if (!set) co_return set;
  }
  // That a server refuses an entry of version 4 may be about this one.
  if (extras.nfs4_acl && support.has_nfs4_acls())
    co_return co_await files.set_nfs4_acl(object.handle, *std::move(extras.nfs4_acl));
  if (extras.nfs4_acl) {
    extras.acls = to_posix_acls(*extras.nfs4_acl, extras.of_directory);
    if (!extras.acls)
      co_return Failure{CopyError::of_local(
          "its access control list cannot be said as one of POSIX, which the server has")};
  }
  if (!extras.acls) co_return Ok{};
  const bool defaults = extras.of_directory || !extras.acls->defaults.empty();
  co_return co_await support.ask(object.fsid,
                                 files.set_acls(object.handle, *std::move(extras.acls), defaults));
}

Failure<CopyError> named_by_place(const TempFileNames& names, CopyError error) {
  const std::size_t at = error.sentence.find(names.temporary);
  if (at != std::string::npos) error.sentence.replace(at, names.temporary.size(), names.place);
  return Failure{std::move(error)};
}

bool is_answer(const CopyError& error) {
  return error.kind == CopyError::Kind::Nfs && !error.is(nfs::client::Status::Exists);
}

Task<void> remove_temp_file(Remote& remote, Progress& progress, const TempFileNames& names) {
  Outcome<Ok> removed{Ok{}};
  bool gone = false;
  try {
    removed = co_await remote.cleaner().remove(names.directory, names.temporary);
    gone = removed || removed.error().is(nfs::client::Status::NoEntry);
  } catch (const std::bad_alloc&) {
  }
  if (!gone) progress.leftovers.push_back(names.temporary_place);
}

Task<Outcome<std::unique_ptr<TempFile>>> open_remote_temp_file(Remote& remote, AclSupport& support,
                                                               Progress& progress,
                                                               TempFileNames names,
                                                               TempFilePlan plan) {
  if (plan.overwrites())
    co_return co_await open_remote_in_place(remote, support, progress, std::move(names),
                                            std::move(plan));
  if (plan.in_place) names.temporary = names.name;
  // Before there is a file that somebody must remove.
  auto temp_file = std::make_unique<RemoteTempFile>(remote, support, progress, std::move(names),
                                                    CopyObject{}, plan, plan.in_place);
  Outcome<bool> made{false};
  std::exception_ptr exception;
  try {
    made = co_await temp_file->make(plan);
  } catch (...) {
    exception = std::current_exception();
  }
  if (exception) co_await temp_file->discard();
  if (exception) std::rethrow_exception(exception);
  if (!made) co_return Failure{made.error()};
  if (!*made) co_return std::unique_ptr<TempFile>();
  co_return std::unique_ptr<TempFile>(std::move(temp_file));
}

}  // namespace stag::cli
