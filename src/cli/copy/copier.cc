#include "cli/copy/copier.h"

#include <fmt/format.h>

#include <utility>

#include "cli/support/remote.h"

namespace stag::cli {
namespace {

using nfs::client::Error;

// Owner's rights that a directory needs while it is filled.
constexpr std::uint32_t kFilling = 0700;
// Bytes of the paths of directories that wait for their final modes and times: those of a million
// paths of 255.
constexpr std::uint64_t kMostKept = std::uint64_t{255} << 20;
// The setgid bit, which new directories have from the one they are in.
constexpr std::uint32_t kInherited = 02000;

bool concerns_all(const Error& error) {
  return error.kind == Error::Kind::Call || error.is(nfs::client::Status::NoSpace) ||
         error.is(nfs::client::Status::QuotaExceeded) || error.is(nfs::client::Status::ReadOnly);
}

// A name from the other side must not become a path on this side.
bool usable(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

// Whether both are one file, also when its server is reached by two addresses. At most one end of a
// copy is local.
bool same_file(const CopyObject& a, const CopyObject& b) {
  if (a.handle.empty() || b.handle.empty()) return false;
  return a.handle == b.handle ||
         (a.fsid == b.fsid && a.file_id == b.file_id && a.changed == b.changed);
}

Failure<Error> refusal(std::string sentence) {
  return Failure{Error::of_local(std::move(sentence))};
}

}  // namespace

std::string base_name(const std::string& path) {
  std::string name = place_of(path).name;
  return name == "." || name == ".." ? "" : name;
}

Copier::Copier(Run& run, CopyEndpoint& from, CopyEndpoint& to, const CopyOptions& options,
               Progress& progress, Complain complain)
    : run_(run),
      from_(from),
      to_(to),
      options_(options),
      progress_(progress),
      complain_(std::move(complain)) {}

Task<void> Copier::copy(std::string source, std::string name, std::string destination) {
  if (stopped()) co_return;
  // As with cp(1), links stay links where trees are copied.
  const Follow follow = options_.recursive ? Follow::No : Follow::Yes;
  const Outcome<std::optional<CopyObject>> found = co_await from_.find(source, follow);
  if (!found) co_return fail(from_.shown_path(source), found.error());
  if (!*found)
    co_return fail(from_.shown_path(source), "there is no such file or directory; check the path");
  CopyObject object = **found;
  if (object.kind == Kind::Directory && !options_.recursive)
    co_return fail(from_.shown_path(source), "it is a directory; copy it with 'stag cp -r'");
  const Outcome<Target> target = co_await target_of(object, name, destination);
  if (!target) co_return fail(to_.shown_path(destination), target.error());
  co_await copy_object(std::move(object), *target);
}

Task<Outcome<Copier::Target>> Copier::target_of(const CopyObject& source, std::string name,
                                                std::string destination) {
  const Outcome<std::optional<CopyObject>> found = co_await to_.find(destination, Follow::Yes);
  if (!found) co_return Failure{found.error()};
  if (*found && (*found)->kind == Kind::Directory) {
    if (!name.empty()) co_return co_await inside(**found, name);
    co_return Target{.directory = **found, .name = {}};
  }
  if (!*found && destination.ends_with('/') && source.kind != Kind::Directory)
    co_return refusal("there is no such directory; make it with 'stag mkdir' or 'mkdir'");
  const Place place = place_of(destination);
  std::string parent = place.directory;
  // The directory of a local path: "." for "x", "/" for "/x".
  if (parent.empty()) parent = destination.starts_with('/') ? "/" : ".";
  const Outcome<std::optional<CopyObject>> directory = co_await to_.find(parent, Follow::Yes);
  if (!directory) co_return Failure{directory.error()};
  if (!*directory || (*directory)->kind != Kind::Directory)
    co_return refusal("the directory it would be in does not exist; make that first");
  co_return co_await inside(**directory, place.name);
}

Task<Outcome<Copier::Target>> Copier::inside(CopyObject directory, std::string name) {
  Target target{.directory = std::move(directory), .name = std::move(name)};
  Outcome<std::optional<CopyObject>> existing = co_await to_.find_in(target.directory, target.name);
  if (!existing) co_return Failure{existing.error()};
  target.existing = *std::move(existing);
  co_return target;
}

Task<void> Copier::copy_object(CopyObject source, Target target) {
  switch (source.kind) {
    case Kind::Directory:
      co_return co_await copy_directory(std::move(source), std::move(target));
    case Kind::Symlink:
      co_return co_await copy_symlink(std::move(source), std::move(target));
    case Kind::File:
      progress_.expected_bytes += source.size;
      co_await files_.at_most(options_.files_in_flight - 1);
      files_.add(copy_file(std::move(source), std::move(target)));
      co_return;
    case Kind::Other:
      co_return fail(from_.shown_path(source.path),
                     "it is a device, socket or FIFO, which is not copied");
  }
}

Task<void> Copier::copy_directory(CopyObject source, Target target) {
  const Descent::Step step(descent_, {source.handle, source.fsid, source.file_id});
  if (step.refusal()) co_return fail(from_.shown_path(source.path), std::string(*step.refusal()));
  const Outcome<CopyObject> directory = co_await directory_for(source, target);
  if (!directory) co_return fail(from_.shown_path(source.path), directory.error());
  ++progress_.directories;
  if (!root_) root_ = *directory;
  const bool fresh = !target.name.empty() && !target.existing;
  finish_later(source, *directory, fresh);
  const std::unique_ptr<DirIterator> members = from_.members(source);
  while (!stopped()) {
    Outcome<std::vector<Member>> batch = co_await members->next();
    if (!batch) co_return fail(from_.shown_path(source.path), batch.error());
    if (batch->empty()) co_return;
    for (Member& member : *batch)
      if (!stopped() && count(member.object))
        co_await copy_member(*directory, std::move(member), fresh);
  }
}

// New entries change the time of a directory, and its final mode may forbid to make them.
void Copier::finish_later(const CopyObject& source, const CopyObject& directory, bool fresh) {
  if (!fresh && !options_.preserve) return;
  Finish finish = finish_of(source, std::nullopt);
  // The setgid bit is inherited, so that users who share the parent directory share its files.
  if (!options_.preserve) finish.mode |= directory.mode & kInherited;
  if (!options_.preserve && finish.mode == directory.mode) return;
  kept_bytes_ += directory.path.size();
  finished_.push_back({directory, finish});
}

bool Copier::count(const CopyObject& found) {
  if (options_.max_entries == 0) return true;
  if (++entries_ <= options_.max_entries && kept_bytes_ <= kMostKept) return true;
  fail(from_.shown_path(found.path),
       entries_ > options_.max_entries
           ? fmt::format("the source has more than {} entries and may have no end; to copy more "
                         "say --max-entries",
                         options_.max_entries)
           : "the directories of the source are too many and too deep; copy parts of it");
  endless_ = true;
  return false;
}

bool Copier::is_copy(const CopyObject& source) const {
  return options_.one_server && root_ && root_->handle == source.handle;
}

Task<void> Copier::copy_member(CopyObject directory, Member member, bool fresh) {
  if (!usable(member.name))
    co_return fail(from_.shown_path(member.object.path), "its name cannot be used");
  Outcome<Target> target{Target{.directory = directory, .name = member.name}};
  if (!fresh) target = co_await inside(std::move(directory), member.name);
  if (!target) co_return fail(from_.shown_path(member.object.path), target.error());
  co_await copy_object(std::move(member.object), *std::move(target));
}

// A directory that will get another owner is closed to other users until then.
std::uint32_t Copier::filling_mode(const CopyObject& source) const {
  return options_.preserve ? kFilling : (source.mode & 0777 & ~options_.mask) | kFilling;
}

Task<Outcome<CopyObject>> Copier::directory_for(const CopyObject& source, const Target& target) {
  if (is_copy(source)) co_return refusal("a directory cannot be copied into itself");
  if (target.name.empty()) co_return target.directory;
  if (!target.existing)
    co_return co_await to_.mkdir(target.directory, target.name, filling_mode(source));
  if (target.existing->kind == Kind::Directory) co_return *target.existing;
  co_return refusal(fmt::format("'{}' is in the way and is no directory; remove it first",
                                to_.shown_path(target.existing->path)));
}

Task<void> Copier::copy_symlink(CopyObject source, Target target) {
  Outcome<std::string> text = co_await from_.readlink(source);
  if (!text) co_return fail(from_.shown_path(source.path), text.error());
  // symlink(2) would truncate the target at a NUL.
  if (text->find('\0') != std::string::npos)
    co_return fail(from_.shown_path(source.path),
                   "its text holds a zero byte, which none can have");
  if (target.name.empty() || (target.existing && target.existing->kind == Kind::Directory))
    co_return fail(from_.shown_path(source.path), "a directory is in the way; remove it first");
  const Outcome<Ok> made = co_await to_.symlink(target.directory, target.name, *std::move(text));
  if (!made) co_return fail(from_.shown_path(source.path), made.error());
  ++progress_.symlinks;
}

Task<void> Copier::copy_file(CopyObject source, Target target) {
  const Outcome<Ok> moved = co_await move_file(source, target);
  if (!moved) co_return fail(from_.shown_path(source.path), moved.error());
  ++progress_.files;
}

Task<Outcome<Ok>> Copier::move_file(const CopyObject& source, const Target& target) {
  if (target.existing && target.existing->kind != Kind::File)
    co_return refusal(fmt::format("'{}' is in the way and is no plain file; remove it first",
                                  to_.shown_path(target.existing->path)));
  if (target.existing && same_file(source, *target.existing))
    co_return refusal(fmt::format("'{}' is the same file", to_.shown_path(target.existing->path)));
  TempFilePlan plan{.finish = finish_of(source, target.existing),
                    .sparse = source.used < source.size,
                    .existing = target.existing};
  const Outcome<std::unique_ptr<TempFile>> temp_file =
      co_await to_.temp_file(target.directory, target.name, std::move(plan));
  if (!temp_file) co_return Failure{temp_file.error()};
  Outcome<Ok> done = co_await filled_and_published(source, **temp_file);
  if (done) co_return done;
  co_await (*temp_file)->discard();
  if ((*temp_file)->in_place())
    complain_(fmt::format("{}: it was written in place and is incomplete now; copy it again",
                          to_.shown_path(target.existing->path)));
  co_return done;
}

Task<Outcome<Ok>> Copier::filled_and_published(const CopyObject& source, TempFile& temp_file) {
  const Outcome<std::uint64_t> size = co_await from_.feed(source, temp_file);
  if (!size) co_return Failure{size.error()};
  if (run_.cancel.cancelled()) co_return refusal("interrupted");
  co_return co_await temp_file.publish(*size);
}

Task<void> Copier::complete() {
  co_await files_.join();
  // The innermost first: a later change inside would touch the time again.
  // After an interruption, too: otherwise directories would keep the modes that they have while
  // they are filled.
  for (auto at = finished_.rbegin(); at != finished_.rend() && !hopeless_; ++at) {
    const Outcome<Ok> done = co_await to_.finish(at->directory, at->finish);
    if (!done) fail(to_.shown_path(at->directory.path), done.error());
  }
}

Finish Copier::finish_of(const CopyObject& source,
                         const std::optional<CopyObject>& existing) const {
  Finish finish;
  finish.mode = source.mode & 0777 & ~options_.mask;
  if (existing) {
    finish.mode = existing->mode;
    finish.owner = existing->owner;
  }
  if (options_.preserve) {
    finish.mode = source.mode;
    finish.owner = source.owner;
  }
  finish.times = options_.preserve;
  finish.accessed = source.accessed;
  finish.modified = source.modified;
  return finish;
}

void Copier::fail(const std::string& path, const Error& error) {
  // An error that all transfers in flight meet is reported once.
  const bool first = !stopped();
  if (concerns_all(error) && !error.cancelled()) hopeless_ = true;
  ++failures_;
  if (first) complain_(fmt::format("{}: {}", path, explained(error)));
}

void Copier::fail(const std::string& path, const std::string& why) {
  ++failures_;
  complain_(fmt::format("{}: {}", path, why));
}

}  // namespace stag::cli
