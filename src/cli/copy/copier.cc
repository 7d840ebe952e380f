#include "cli/copy/copier.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "cli/copy/comparison.h"
#include "cli/copy/copier_parts.h"
#include "cli/support/remote.h"

namespace stag::cli {
namespace {

using nfs::client::Error;

// Bytes of the paths of directories that wait for their final modes and times: those of a million
// paths of 255.
constexpr std::uint64_t kMostKept = std::uint64_t{255} << 20;
// The setgid bit, which new directories have from the one they are in.
constexpr std::uint32_t kInherited = 02000;

}  // namespace

bool is_usable_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

std::string path_below(const CopyObject& directory, const std::string& name) {
  if (name.empty()) return directory.path;
  if (directory.path.empty() || directory.path == ".") return name;
  return directory.path + (directory.path.ends_with('/') ? "" : "/") + name;
}

Failure<Error> refusal(std::string sentence) {
  return Failure{Error::of_local(std::move(sentence))};
}

std::string base_name(const std::string& path) {
  std::string name = place_of(path).name;
  return name == "." || name == ".." ? "" : name;
}

Copier::Copier(Run& run, CopyEndpoint& from, CopyEndpoint& to, const CopyOptions& options,
               FirstNames& first_names, Progress& progress, Complain complain, Announce announce)
    : run_(run),
      from_(from),
      to_(to),
      options_(options),
      progress_(progress),
      complain_(std::move(complain)),
      announce_(std::move(announce)),
      remover_(
          run, to, options.dry_run, options.max_delete,
          [this](const std::string& path, Kind kind) { return excluded(path, kind); },
          [this](CopyObject directory) { return is_source(std::move(directory)); },
          [this](const CopyObject& removed) {
            ++progress_.removed;
            full_ = false;
            if (announce_) announce_("", to_.shown_path(removed.path));
          }),
      first_names_(first_names) {}

bool Copier::may_collide(const std::string& name) {
  const bool first = names_.empty();
  const bool fresh = names_.insert(folded_name(name)).second;
  // Without a name, what is in a source goes into the destination.
  unnamed_ = unnamed_ || name.empty();
  return !first && (!fresh || unnamed_);
}

Task<void> Copier::copy(std::string source, std::string name, std::string destination) {
  try {
    co_await copy_source(std::move(source), std::move(name), std::move(destination));
  } catch (const std::bad_alloc&) {
    ++without_memory_;
  }
  if (progress_.unlisted > 0) --progress_.unlisted;
}

// Nothing here asks for memory: what there was none for is told in the end.
Task<void> Copier::counted(Task<void> copying) {
  try {
    co_await std::move(copying);
  } catch (const std::bad_alloc&) {
    ++without_memory_;
  }
}

Task<void> Copier::copy_source(std::string source, std::string name, std::string destination) {
  if (stopped()) co_return void(++untried_sources_);
  // What comes first has the name: what comes later waits until that is there.
  if (may_collide(name)) co_await complete();
  root_.reset();
  source_root_.reset();
  entries_ = 0;
  // As with cp(1), links stay links where trees are copied.
  const bool link_itself = options_.recursive && !options_.directories;
  const Follow follow = link_itself ? Follow::No : Follow::Yes;
  const Outcome<std::optional<CopyObject>> found = co_await from_.find(source, follow);
  if (!found) co_return fail(from_.shown_path(source), found.error());
  if (!*found)
    co_return fail(from_.shown_path(source), "there is no such file or directory; check the path");
  CopyObject object = **found;
  if (object.kind == Kind::Directory && !options_.recursive)
    co_return fail(from_.shown_path(source), "it is a directory; copy it with 'stag cp -r'");
  if (object.kind != Kind::Directory && options_.directories)
    co_return fail(from_.shown_path(source), "it is no directory; copy it with 'stag cp'");
  source_path_ = object.path;
  if (object.kind == Kind::File) {
    co_await files_.at_most(options_.files_in_flight - 1);
    files_.add(
        counted(copy_named_file(std::move(object), std::move(name), std::move(destination))));
    co_return;
  }
  const Outcome<Target> target = co_await target_of(object, name, destination);
  if (!target) co_return fail(to_.shown_path(destination), target.error());
  // A mirror has what is of another kind below it replaced; the one that the user names may be a
  // mistake in its name.
  if (options_.directories && target->existing && target->existing->kind != Kind::Directory)
    co_return fail(
        to_.shown_path(destination),
        "it is no directory, and nothing is replaced by one; remove it, or name another");
  co_await copy_object(std::move(object), *target);
}

// In flight beside other files, from the search for its destination on.
Task<void> Copier::copy_named_file(CopyObject source, std::string name, std::string destination) {
  const Outcome<Target> target = co_await target_of(source, name, destination);
  if (!target) co_return fail(to_.shown_path(destination), target.error());
  if (target->name.empty())
    co_return fail(to_.shown_path(destination), "it is a directory; name the file in it");
  tell_of_times(source);
  progress_.expected_bytes += source.size;
  if (!is_further_name(source, *target)) co_await copy_file(std::move(source), *target);
}

// The destination of many sources is looked for once.
Task<Outcome<std::optional<CopyObject>>> Copier::find_destination(std::string path) {
  if (into_ && into_->first == path) co_return std::optional<CopyObject>(into_->second);
  Outcome<std::optional<CopyObject>> found = co_await to_.find(path, Follow::Yes);
  if (found && *found && (*found)->kind == Kind::Directory) into_.emplace(std::move(path), **found);
  co_return found;
}

std::string directory_of(const std::string& path) {
  std::string directory = place_of(path).directory;
  if (directory.empty()) directory = path.starts_with('/') ? "/" : ".";
  return directory;
}

Task<Outcome<Copier::Target>> Copier::target_of(const CopyObject& source, std::string name,
                                                std::string destination) {
  const Outcome<std::optional<CopyObject>> found = co_await find_destination(destination);
  if (!found) co_return Failure{found.error()};
  if (*found && (*found)->kind == Kind::Directory) {
    if (!name.empty()) co_return co_await inside(**found, name);
    co_return Target{.directory = **found, .name = {}};
  }
  if (!*found && destination.ends_with('/') && source.kind != Kind::Directory)
    co_return refusal("there is no such directory; make it with 'stag mkdir' or 'mkdir'");
  const Place place = place_of(destination);
  const Outcome<std::optional<CopyObject>> directory =
      co_await to_.find(directory_of(destination), Follow::Yes);
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
  tell_of_times(source);
  const bool clear_now = co_await clear(source, target);
  if (!clear_now) co_return;
  switch (source.kind) {
    case Kind::Directory:
      co_return co_await copy_directory(std::move(source), std::move(target));
    case Kind::Symlink:
      co_return co_await copy_symlink(std::move(source), std::move(target));
    case Kind::File:
      progress_.expected_bytes += source.size;
      if (is_further_name(source, target)) co_return;
      co_await files_.at_most(options_.files_in_flight - 1);
      files_.add(counted(copy_file(std::move(source), std::move(target))));
      co_return;
    case Kind::Other:
      co_return co_await copy_special(std::move(source), std::move(target));
  }
}

Task<void> Copier::copy_directory(CopyObject source, Target target) {
  const Descent::Step step(descent_, {source.handle, source.fsid, source.file_id});
  if (step.refusal()) co_return fail(from_.shown_path(source.path), std::string(*step.refusal()));
  const Outcome<CopyObject> directory = co_await directory_for(source, target);
  if (!directory) co_return fail(from_.shown_path(source.path), directory.error());
  ++progress_.directories;
  const bool fresh = !target.name.empty() && !target.existing;
  const CopyObject& before =
      target.name.empty() ? target.directory : target.existing.value_or(*directory);
  if (fresh || differs(finish_of(source, before), before)) announce(source, target);
  if (!root_) {
    root_ = *directory;
    source_root_ = source;
  }
  finish_later(source, *directory, fresh);
  const std::unique_ptr<DirIterator> members = from_.members(source);
  SourceNames names;
  bool ended = false;
  while (!ended && !stopped()) {
    Outcome<std::vector<Member>> batch = co_await members->next();
    if (!batch) co_return fail(from_.shown_path(source.path), batch.error());
    ended = batch->empty();
    for (Member& member : *batch) {
      if (stopped()) break;
      // A second object of that name would take the place of the first, while complete() and files
      // in flight still mean that one.
      const auto [name, first] = names.all.insert(member.name);
      if (!first) {
        fail(from_.shown_path(member.object.path),
             "it is listed twice in its directory; if that has changed meanwhile, copy it again");
        continue;
      }
      if (excluded(member.object.path, member.excluded_as())) {
        if (options_.remove_others) names.excluded.insert(*name);
        continue;
      }
      std::vector<std::string> alike = names.groups.add(*name);
      if (count(member.object))
        co_await copy_member(*directory, std::move(member), fresh, std::move(alike));
    }
  }
  untried_ = untried_ || !ended;
  if (options_.remove_others && !fresh && !stopped())
    co_await remove_others(source, *directory, std::move(names));
}

bool Copier::is_kept(const nfs::client::Time& existing, const nfs::client::Time& wanted) const {
  return same_kept_time(existing, wanted, options_.modify_window);
}

bool Copier::differs(const Finish& finish, const CopyObject& existing) const {
  // Where the owner is refused, kOwnersBits are left out.
  const bool given = finish.owner && can_own(*finish.owner) && *finish.owner != existing.owner;
  const std::uint32_t unsure = given ? kOwnersBits : 0;
  const std::uint32_t changed = (finish.mode ^ existing.mode) & ~unsure;
  return (existing.kind != Kind::Symlink && changed != 0) ||
         (finish.times && !is_kept(existing.modified, finish.modified));
}

// New entries change the time of a directory, and its final mode may forbid to make them.
void Copier::finish_later(const CopyObject& source, const CopyObject& directory, bool fresh) {
  const Preserve& preserve = options_.preserve;
  const bool asked = preserve.mode || preserve.owner || preserve.times || preserve.extras.any();
  if (options_.dry_run || (!fresh && !asked)) return;
  Finish finish = finish_of(source, fresh ? std::nullopt : std::optional(directory));
  // The setgid bit is inherited, so that users who share the parent directory share its files.
  if (!preserve.mode) finish.mode |= directory.mode & kInherited;
  if (!asked && !preserve.extras.any() && finish.mode == directory.mode) return;
  kept_bytes_ += directory.path.size();
  finished_.push_back({directory, finish});
  finished_.back().fresh = fresh;
  if (preserve.extras.any()) finished_.back().source = source;
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

bool Copier::excluded(std::string_view path, Kind kind) const {
  // A local "." is in front of the paths below it, a remote one is not.
  const bool prefixed =
      source_path_ == "." ? path.starts_with("./") : path.starts_with(source_path_);
  if (prefixed) path.remove_prefix(source_path_.size());
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return options_.exclusion.excludes(path, kind == Kind::Directory);
}

bool Copier::is_further_name(const CopyObject& source, const Target& target) {
  if (!options_.preserve.links || source.links < 2) return false;
  const FileId id(source.fsid, source.file_id);
  const bool further = !first_names_.try_emplace(id, FirstName{target}).second;
  if (further) links_.push_back({source, target});
  return further;
}

// Handles tell it within a session. Where the two ends reach one directory in different ways, what
// is made by one of them is seen by the other; attributes would tell only as long as nobody else
// works in that directory, and what is missed once is copied without end.
Task<Outcome<bool>> Copier::is_same(CopyObject source, CopyObject directory) {
  if (options_.one_server && directory.handle == source.handle) co_return true;
  if (directory.file_id == 0 || !same_file_id(source, directory)) co_return false;
  if (options_.dry_run) co_return seem_to_be_one(source, directory);
  Member mark{.name = temporary_name(), .object = {}};
  mark.object.kind = Kind::Directory;
  const std::string path = to_.shown_path(path_below(directory, mark.name));
  const Outcome<CopyObject> made = co_await to_.mkdir(directory, mark.name, kOwnersRights);
  if (!made && made.error().kind != Error::Kind::Call) co_return Failure{made.error()};
  Outcome<std::optional<CopyObject>> seen{std::optional<CopyObject>()};
  if (made) seen = co_await from_.find_in(std::move(source), mark.name);
  const Outcome<Ok> removed = co_await to_.remove(directory, std::move(mark));
  if (!removed && !removed.error().is(nfs::client::Status::NoEntry))
    progress_.leftovers.push_back(path);
  if (!made) co_return Failure{made.error()};
  if (!seen) co_return Failure{seen.error()};
  co_return seen->has_value();
}

Task<Outcome<bool>> Copier::is_copy(CopyObject source) {
  if (!root_) co_return false;
  co_return co_await is_same(std::move(source), *root_);
}

Task<Outcome<bool>> Copier::is_source(CopyObject directory) {
  if (!source_root_) co_return false;
  co_return co_await is_same(*source_root_, std::move(directory));
}

Task<void> Copier::copy_member(CopyObject directory, Member member, bool fresh,
                               std::vector<std::string> alike) {
  if (member.trouble) co_return fail(from_.shown_path(member.object.path), *member.trouble);
  if (!is_usable_name(member.name))
    co_return fail(from_.shown_path(member.object.path), "its name cannot be used");
  Outcome<Target> target{Target{.directory = directory, .name = member.name}};
  // In a dry run nothing is in a new directory.
  if (fresh && options_.dry_run) alike.clear();
  if (!alike.empty()) {
    const Outcome<Ok> own = co_await check_own_name(directory, member.name, std::move(alike));
    if (!own) co_return fail(from_.shown_path(member.object.path), own.error());
    fresh = false;
  }
  if (!fresh) target = co_await inside(std::move(directory), member.name);
  if (!target) co_return fail(from_.shown_path(member.object.path), target.error());
  co_await copy_object(std::move(member.object), *std::move(target));
}

// A directory that will get another owner is closed to other users until then.
std::uint32_t Copier::filling_mode(const CopyObject& source) const {
  return options_.preserve.owner ? kOwnersRights
                                 : (source.mode & 0777 & ~options_.mask) | kOwnersRights;
}

// The copy of a directory in which nothing may be changed is such a one, too; it gets its final
// mode in complete().
Task<CopyObject> Copier::opened(CopyObject directory) {
  if (!options_.preserve.mode || options_.dry_run) co_return directory;
  const bool changed = co_await make_writable(to_, directory);
  if (changed) directory.mode |= kOwnersRights;
  co_return directory;
}

// Otherwise its listing would also show the temporary files of the copy. Where nothing can be made
// in it, each of its files is looked at by itself.
Task<bool> Copier::is_onto_itself(const CopyObject& source, const Target& target) {
  if (root_ || (!target.existing && !target.name.empty())) co_return false;
  const CopyObject& there = target.existing ? *target.existing : target.directory;
  if (there.kind != Kind::Directory || !seem_to_be_one(source, there)) co_return false;
  const Outcome<bool> same = co_await is_same(source, there);
  if (!same) co_return false;
  co_return *same;
}

Task<Outcome<CopyObject>> Copier::directory_for(const CopyObject& source, const Target& target) {
  if (co_await is_onto_itself(source, target))
    co_return refusal("the destination is the same directory");
  const Outcome<bool> itself = co_await is_copy(source);
  if (!itself) co_return Failure{itself.error()};
  if (*itself) co_return refusal("a directory cannot be copied into itself");
  if (target.name.empty()) co_return co_await opened(target.directory);
  if (!target.existing && options_.dry_run) {
    CopyObject imagined;
    imagined.path = path_below(target.directory, target.name);
    imagined.kind = Kind::Directory;
    co_return imagined;
  }
  if (!target.existing)
    co_return co_await to_.mkdir(target.directory, target.name, filling_mode(source));
  if (target.existing->kind != Kind::Directory)
    co_return refusal(fmt::format("'{}' is in the way and is no directory; remove it first",
                                  to_.shown_path(target.existing->path)));
  // What is copied from would get the files of its own subdirectory, and lose its own.
  const Outcome<bool> the_source = co_await is_source(*target.existing);
  if (!the_source) co_return Failure{the_source.error()};
  if (*the_source) co_return refusal(kSourceStays);
  co_return co_await opened(*target.existing);
}

Task<void> Copier::complete() {
  co_await settle_names();
  // The innermost first: a later change inside would touch the time again.
  // After an interruption, and where there is no space left, too: otherwise directories would keep
  // the modes and the owner that they have while they are filled.
  for (auto at = finished_.rbegin(); at != finished_.rend(); ++at) {
    try {
      co_await finish_directory(std::move(*at));
    } catch (const std::bad_alloc&) {
      ++without_memory_;
    }
  }
  finished_.clear();
  tell_of_untold();
  if (without_memory_ == 0) co_return;
  failures_ += without_memory_;
  complain_(fmt::format("there was no memory for {} of the files and directories; copy them again",
                        std::exchange(without_memory_, 0)));
}

Task<void> Copier::finish_directory(Finished directory) {
  const std::string path = to_.shown_path(directory.directory.path);
  const Adopt adopt = [this, &directory](Extras extras) {
    return to_.adopt(directory.directory, std::move(extras));
  };
  std::optional<CopyObject> existing;
  if (!directory.fresh) existing = directory.directory;
  Outcome<Ok> passed{Ok{}};
  if (directory.source && !unreachable_)
    passed = co_await pass_extras(*directory.source, std::move(existing), adopt);
  if (!passed) fail(path, passed.error());
  // A directory of this machine has no handle, and needs no server.
  if (unreachable_ && !directory.directory.handle.empty()) co_return;
  Finish& finish = directory.finish;
  if (!directory.fresh && is_kept(directory.directory.modified, finish.modified)) {
    // What was made in it has changed that.
    const Outcome<nfs::client::Time> now = co_await to_.modified(directory.directory);
    if (now && is_kept(*now, finish.modified)) finish.times = false;
  }
  const Outcome<Ok> done = co_await to_.finish(directory.directory, finish);
  if (!done) fail(path, done.error());
}

Finish Copier::finish_of(const CopyObject& source,
                         const std::optional<CopyObject>& existing) const {
  Finish finish;
  finish.mode = source.mode & 0777 & ~options_.mask;
  if (existing) {
    finish.mode = existing->mode;
    finish.owner = existing->owner;
  }
  const Preserve& preserve = options_.preserve;
  // The setuid, setgid and sticky bits mean something else with another owner.
  if (preserve.mode) finish.mode = preserve.owner ? source.mode : source.mode & 0777;
  if (preserve.owner) finish.owner = source.owner;
  if (preserve.owner && !can_own(source.owner)) finish.mode &= ~kOwnersBits;
  finish.times = preserve.times;
  finish.accessed = carried(source.accessed);
  finish.modified = carried(source.modified);
  return finish;
}

nfs::client::Time Copier::carried(nfs::client::Time time) const {
  const TimeRange range = to_.times();
  time.seconds = std::clamp(time.seconds, range.first, range.last);
  return time;
}

}  // namespace stag::cli
