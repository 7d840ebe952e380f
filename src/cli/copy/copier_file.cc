// How the Copier copies one file.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "cli/copy/comparison.h"
#include "cli/copy/copier.h"
#include "cli/copy/copier_parts.h"
#include "nfs/client/acl.h"

namespace stag::cli {
using nfs::client::Acls;
using nfs::client::Error;

namespace {

// Whether both are one file, also when its server is reached by two addresses. At most one end of a
// copy is local. A server and its clone have the same handles and numbers for what are two files.
bool same_file(const CopyObject& a, const CopyObject& b, bool one_server) {
  if (!one_server) return seem_to_be_one(a, b);
  return a.handle == b.handle ||
         (a.fsid == b.fsid && a.file_id == b.file_id && a.changed == b.changed);
}

// Many servers of version 4 show a list for every file. What it gives the three classes of the mode
// is the mode.
bool says_more_than_mode(const Extras& extras) {
  constexpr std::string_view kClasses[] = {"OWNER@", "GROUP@", "EVERYONE@"};
  const auto named = [&kClasses](const nfs::client::Nfs4Ace& ace) {
    return std::ranges::find(kClasses, ace.who) == std::end(kClasses);
  };
  return !extras.xattrs.empty() || extras.acls ||
         (extras.nfs4_acl && std::ranges::any_of(*extras.nfs4_acl, named));
}

bool same_special(const CopyObject& a, const CopyObject& b) {
  return a.special && b.special && a.special->type == b.special->type &&
         a.special->device == b.special->device;
}

}  // namespace

Task<void> Copier::copy_file(CopyObject source, Target target) {
  if (target.existing && target.existing->kind == Kind::File) {
    const Outcome<bool> kept = co_await stays(source, *target.existing);
    if (!kept) co_return fail(from_.shown_path(source.path), kept.error());
    if (*kept) {
      const Outcome<Ok> adjusted = co_await adjust(source, *target.existing);
      if (!adjusted) co_return fail(to_.shown_path(target.existing->path), adjusted.error());
      if (!left_alone(source, *target.existing)) note_copy(source, target);
      progress_.expected_bytes -= source.size;
      co_return;
    }
  } else if (options_.keep_existing && target.existing &&
             target.existing->kind != Kind::Directory) {
    ++progress_.skipped;
    progress_.expected_bytes -= source.size;
    co_return;
  }
  if (full_) {
    ++failures_;
    ++untold_;
    progress_.expected_bytes -= source.size;
    co_return;
  }
  Outcome<bool> moved{true};
  const Outcome<Ok> free = co_await check_just_made(target);
  if (!free)
    moved = Failure{free.error()};
  else if (!options_.dry_run)
    moved = co_await move_file(source, target);
  if (!moved) co_return fail(from_.shown_path(source.path), moved.error());
  if (!*moved) co_return void(++progress_.skipped);
  note_just_made(target);
  note_copy(source, {.directory = target.directory, .name = target.name});
  ++progress_.files;
  announce(source, target);
}

void Copier::note_copy(const CopyObject& source, const Target& target) {
  const auto first = first_names_.find(FileId(source.fsid, source.file_id));
  if (first != first_names_.end()) first->second = {.target = target, .is_copy = true};
}

bool Copier::left_alone(const CopyObject& source, const CopyObject& existing) const {
  const nfs::client::Time wanted = carried(source.modified);
  return options_.keep_existing || (options_.newer_only && (existing.modified >= wanted ||
                                                            is_kept(existing.modified, wanted)));
}

Task<Outcome<bool>> Copier::left_alone_by_now(const CopyObject& source, const Target& target) {
  if (!options_.keep_existing && !options_.newer_only) co_return false;
  const Outcome<std::optional<CopyObject>> now =
      co_await to_.find_in(target.directory, target.name);
  if (!now) co_return Failure{now.error()};
  const bool left = *now && left_alone(source, **now);
  co_return left;
}

Task<Outcome<bool>> Copier::stays(const CopyObject& source, const CopyObject& existing) {
  if (left_alone(source, existing)) co_return true;
  if (options_.same == Same::Never || source.kind != existing.kind) co_return false;
  if (source.kind == Kind::Symlink) {
    const Outcome<std::string> ours = co_await from_.readlink(source);
    if (!ours) co_return Failure{ours.error()};
    const Outcome<std::string> theirs = co_await to_.readlink(existing);
    if (!theirs) co_return Failure{theirs.error()};
    co_return *ours == *theirs;
  }
  if (source.kind == Kind::Other) co_return same_special(source, existing);
  if (source.size != existing.size) co_return false;
  if (options_.same == Same::SizeAndTime)
    co_return is_kept(existing.modified, carried(source.modified));
  co_return co_await same_content(from_, source, to_, existing, source.size);
}

Task<Outcome<Ok>> Copier::adjust(const CopyObject& source, CopyObject existing) {
  // What is newer, or was to stay whatever it is, is no copy.
  const bool as_copied = options_.same != Same::Never && !left_alone(source, existing);
  const Finish finish = finish_of(source, existing);
  const bool changes = as_copied && differs(finish, existing);
  if (as_copied && !options_.dry_run) {
    const Outcome<Ok> given = co_await give(source, existing, finish);
    if (!given) co_return given;
  }
  ++(changes ? progress_.adjusted : progress_.skipped);
  if (changes && announce_) announce_(from_.shown_path(source.path), to_.shown_path(existing.path));
  co_return Ok{};
}

Task<Outcome<Ok>> Copier::give(const CopyObject& source, CopyObject existing, Finish finish) {
  const Adopt adopt = [this, &existing](Extras extras) {
    return adopt_news(existing, std::move(extras));
  };
  Outcome<Ok> passed{Ok{}};
  if (source.kind == Kind::File) passed = co_await pass_extras(source, existing, adopt);
  if (!passed) co_return passed;
  // Setting a time takes the right of the owner, also where that changes nothing.
  if (is_kept(existing.modified, finish.modified)) finish.times = false;
  const bool owned = !finish.owner || !can_own(*finish.owner) || *finish.owner == existing.owner;
  if (owned && !differs(finish, existing)) co_return Ok{};
  if (existing.kind != Kind::Symlink) co_return co_await to_.finish(std::move(existing), finish);
  if (owned) finish.owner.reset();
  co_await to_.finish_symlink(std::move(existing), finish);
  co_return Ok{};
}

Task<Outcome<Ok>> Copier::adopt_news(CopyObject existing, Extras extras) {
  const ExtraKinds kinds{.xattrs = !extras.xattrs.empty(), .acls = extras.acls || extras.nfs4_acl};
  const Outcome<Extras> present = co_await to_.extras(existing, kinds);
  if (present && present->same_as(extras)) co_return Ok{};
  co_return co_await to_.adopt(std::move(existing), std::move(extras));
}

Task<Outcome<std::uint64_t>> Copier::kept_of(const CopyObject& source, const CopyObject& existing) {
  if (!options_.go_on || existing.size > source.size) co_return std::uint64_t{0};
  const Outcome<std::uint64_t> unordered = co_await to_.unordered_bytes();
  if (!unordered) co_return Failure{unordered.error()};
  const std::uint64_t kept = existing.size - std::min(existing.size, *unordered);
  if (options_.same != Same::Content) co_return kept;
  const Outcome<bool> same = co_await same_content(from_, source, to_, existing, kept);
  if (!same) co_return Failure{same.error()};
  co_return *same ? kept : 0;
}

// Without its list, the mode of a file lets others in: that of its group is the mask of the list.
Task<Outcome<bool>> Copier::has_extras(CopyObject existing) {
  // With the mode of its source, the copy has also the source's list, or none.
  if (options_.preserve.mode) co_return false;
  for (int kind = 0; kind < 2; ++kind) {
    const ExtraKinds kinds{.xattrs = kind == 0, .acls = kind == 1};
    const Outcome<Extras> extras = co_await to_.extras(existing, kinds);
    if (extras && says_more_than_mode(*extras)) co_return true;
    if (extras || nfs::client::means_no_acls(extras.error())) continue;
    if (concerns_all(extras.error())) co_return Failure{extras.error()};
    // A list that cannot be read may be one.
    if (kinds.acls) co_return true;
  }
  co_return false;
}

Task<Outcome<TempFilePlan>> Copier::plan_of(const CopyObject& source, const Target& target) {
  TempFilePlan plan{.finish = finish_of(source, target.existing),
                    .sparse = source.used < source.size,
                    .existing = target.existing,
                    .in_place = options_.in_place,
                    .keep_existing = options_.keep_existing,
                    .new_name = !target.existing && !options_.newer_only};
  if (!target.existing) co_return std::move(plan);
  plan.in_place = plan.in_place || (target.existing->links > 1 && !options_.replace_linked);
  if (!plan.in_place) {
    const Outcome<bool> marked = co_await has_extras(*target.existing);
    if (!marked) co_return Failure{marked.error()};
    plan.in_place = *marked;
  }
  const Outcome<std::uint64_t> kept = co_await kept_of(source, *target.existing);
  if (!kept) co_return Failure{kept.error()};
  plan.kept = *kept;
  progress_.expected_bytes -= *kept;
  co_return std::move(plan);
}

Task<Outcome<bool>> Copier::move_file(const CopyObject& source, const Target& target) {
  if (target.existing && target.existing->kind != Kind::File)
    co_return refusal(fmt::format("'{}' is in the way and is no plain file; remove it first",
                                  to_.shown_path(target.existing->path)));
  if (target.existing && same_file(source, *target.existing, options_.one_server))
    co_return same_file_refused(source, *target.existing);
  Outcome<TempFilePlan> plan = co_await plan_of(source, target);
  if (!plan) co_return Failure{plan.error()};
  const std::uint64_t kept = plan->kept;
  const Outcome<std::unique_ptr<TempFile>> temp_file =
      co_await open_target(source, target, *std::move(plan));
  if (!temp_file) co_return Failure{temp_file.error()};
  if (!*temp_file) {
    progress_.expected_bytes -= source.size - kept;
    co_return true;
  }
  Outcome<bool> done{false};
  std::exception_ptr exception;
  try {
    done = co_await filled_and_published(source, target, **temp_file, kept);
  } catch (...) {
    exception = std::current_exception();
  }
  if (done && *done) co_return true;
  co_await (*temp_file)->discard();
  if (exception) std::rethrow_exception(exception);
  // Without the servers, which are not asked again.
  if ((*temp_file)->is_lost() && !run_.cancel.cancelled())
    co_return co_await move_file(source, target);
  if (!done && (*temp_file)->in_place() && !done.error().sentence.empty())
    complain_(fmt::format("{}: it was written in place and is incomplete now; {}",
                          to_.shown_path(path_below(target.directory, target.name)),
                          options_.in_place ? "'stag cp --continue' goes on" : "copy it again"));
  co_return done;
}

Failure<Error> Copier::same_file_refused(const CopyObject& source,
                                         const CopyObject& existing) const {
  const std::string there = to_.shown_path(existing.path);
  return refusal(there == from_.shown_path(source.path)
                     ? "the destination is the same file"
                     : fmt::format("'{}' is the same file", there));
}

// A new file takes the place of the source without harm; to be written, the source would first be
// emptied. Of a copy of its whole file system this cannot tell it.
Task<Outcome<Ok>> Copier::check_other_file(const CopyObject& source, const Target& target) {
  const CopyObject& existing = *target.existing;
  if (!same_file_id(source, existing)) co_return Ok{};
  if (seem_to_be_one(source, existing)) co_return same_file_refused(source, existing);
  // It may have changed after the one was looked at, and before the other was.
  const Outcome<std::optional<CopyObject>> ours = co_await from_.find(source.path, Follow::Yes);
  if (!ours) co_return Failure{ours.error()};
  const Outcome<std::optional<CopyObject>> theirs =
      co_await to_.find_in(target.directory, target.name);
  if (!theirs) co_return Failure{theirs.error()};
  if (*ours && *theirs && seem_to_be_one(**ours, **theirs))
    co_return same_file_refused(source, existing);
  co_return Ok{};
}

Task<Outcome<std::unique_ptr<TempFile>>> Copier::open_target(const CopyObject& source,
                                                             const Target& target,
                                                             TempFilePlan plan) {
  if (!plan.overwrites()) {
    Outcome<std::unique_ptr<TempFile>> made =
        co_await to_.temp_file(target.directory, target.name, plan);
    if (!made || *made) co_return std::move(made);
    plan.in_place = true;
  }
  const Outcome<Ok> other = co_await check_other_file(source, target);
  if (!other) co_return Failure{other.error()};
  // Otherwise the old content would be gone for nothing.
  const Outcome<Ok> readable = co_await from_.check_readable(source);
  if (!readable) co_return Failure{readable.error()};
  const Outcome<bool> claimed = claim(source, *target.existing);
  if (!claimed) co_return Failure{claimed.error()};
  if (!*claimed) co_return std::unique_ptr<TempFile>();
  co_return co_await to_.temp_file(target.directory, target.name, std::move(plan));
}

// Two names in the destination may be of one file where they are of two in the source. Written at
// once it would become a mixture, and one after the other the first would be no copy any more.
Outcome<bool> Copier::claim(const CopyObject& source, const CopyObject& existing) {
  const FileId id(source.fsid, source.file_id);
  const auto [at, fresh] = written_in_place_.try_emplace(
      FileId(existing.fsid, existing.file_id), Claim{.source = id, .path = existing.path});
  Claim& claim = at->second;
  if (fresh) return true;
  if (claim.path != existing.path && claim.source == id) return false;
  if (claim.path != existing.path)
    return refusal(
        fmt::format("'{}' is another name of '{}', which was copied to before; remove "
                    "it first, or copy with --preserve=links",
                    to_.shown_path(existing.path), to_.shown_path(claim.path)));
  // Sources that come one after the other to one name.
  claim.source = id;
  return true;
}

Task<Outcome<bool>> Copier::filled_and_published(const CopyObject& source, const Target& target,
                                                 TempFile& temp_file, std::uint64_t kept) {
  const Outcome<std::uint64_t> size = co_await from_.feed(source, temp_file, kept);
  if (!size) co_return Failure{size.error()};
  const bool emptied = temp_file.in_place() && target.existing && kept == 0;
  if (emptied && source.size > 0 && *size == 0)
    co_return refusal("it has become empty meanwhile, and may be the file that is written to");
  if (run_.cancel.cancelled()) co_return refusal("interrupted");
  const Adopt adopt = [&temp_file](Extras extras) { return temp_file.adopt(std::move(extras)); };
  std::optional<CopyObject> existing;
  if (temp_file.in_place()) existing = target.existing;
  const Outcome<Ok> passed = co_await pass_extras(source, std::move(existing), adopt);
  if (!passed) co_return Failure{passed.error()};
  if (!temp_file.in_place()) {
    const Outcome<bool> kept_other = co_await left_alone_by_now(source, target);
    if (!kept_other) co_return Failure{kept_other.error()};
    if (*kept_other) co_return false;
  }
  co_return co_await temp_file.publish(*size);
}

// A list that only the copy has would let in whom its source does not.
Task<void> Copier::take_lists_away(Extras& extras, const CopyObject& source,
                                   const CopyObject& existing) {
  const bool listed = extras.nfs4_acl || (extras.acls && !extras.acls->access.empty());
  // Of a list the mode shows the mask, which is to let nobody in.
  if (listed || !options_.preserve.mode) co_return;
  const Outcome<Extras> present = co_await to_.extras(existing, {.acls = true});
  if (!present || !says_more_than_mode(*present)) co_return;
  Acls lists = nfs::client::acls_of_mode(source.mode);
  if (extras.acls) lists.defaults = std::move(extras.acls->defaults);
  extras.acls = std::move(lists);
}

Task<Outcome<Ok>> Copier::pass_extras(CopyObject source, std::optional<CopyObject> existing,
                                      Adopt adopt) {
  // Kind by kind: a side may have one of them only.
  const ExtraKinds& wanted = options_.preserve.extras;
  for (int kind = 0; kind < 2; ++kind) {
    const ExtraKinds kinds{.xattrs = wanted.xattrs && kind == 0, .acls = wanted.acls && kind == 1};
    if (!kinds.any()) continue;
    Outcome<Extras> extras = co_await from_.extras(source, kinds);
    if (extras && kinds.acls && existing) co_await take_lists_away(*extras, source, *existing);
    const bool there = extras && !extras->empty();
    Outcome<Ok> passed{Ok{}};
    if (!extras)
      passed = Failure{extras.error()};
    else if (there)
      passed = co_await adopt(*std::move(extras));
    if (passed) continue;
    const bool unknown = nfs::client::means_no_acls(passed.error());  // NFSACL is a program
    const ExtraKinds& required = options_.preserve.required;
    const bool fails = kinds.xattrs ? required.xattrs : required.acls;
    if (fails || (concerns_all(passed.error()) && !unknown)) co_return passed;
    // A source that knows nothing of the kind has none to lose.
    if (extras || !unknown) tell_left_out(source, kinds, passed.error());
  }
  co_return Ok{};
}

void Copier::tell_left_out(const CopyObject& source, const ExtraKinds& kinds, const Error& why) {
  bool& told = kinds.xattrs ? told_left_out_.xattrs : told_left_out_.acls;
  if (std::exchange(told, true) || stopped()) return;
  complain_(fmt::format("{} are not copied, from {} on: {}",
                        kinds.xattrs ? "extended attributes" : "access control lists",
                        from_.shown_path(source.path), why.sentence));
}

Task<void> Copier::make_link(Link link) {
  const FirstName known = first_names_.at(FileId(link.source.fsid, link.source.file_id));
  const Outcome<bool> left = co_await left_alone_by_now(link.source, link.target);
  if (!left) co_return fail(from_.shown_path(link.source.path), left.error());
  const std::optional<CopyObject>& existing = link.target.existing;
  const bool stays = *left || (existing && existing->kind != Kind::File);
  // What has the first name may be another file, which was left alone.
  if (!known.is_copy || stays)
    co_return co_await copy_file(std::move(link.source), std::move(link.target));
  // In a dry run what was copied is not there, and its directory may not be.
  Outcome<std::optional<CopyObject>> first{known.target.existing};
  if (!options_.dry_run) first = co_await to_.find_in(known.target.directory, known.target.name);
  if (!first) co_return fail(from_.shown_path(link.source.path), first.error());
  const bool there = options_.dry_run || (*first && (*first)->kind == Kind::File);
  if (!there) co_return co_await copy_file(std::move(link.source), std::move(link.target));
  const bool linked = existing && *first && existing->fsid == (*first)->fsid &&
                      existing->file_id == (*first)->file_id;
  Outcome<Ok> made{Ok{}};
  // A link by another spelling alone would be no name of its own.
  if (linked)
    made = co_await check_made_alike(link.target);
  else
    made = co_await check_just_made(link.target);
  if (made && !linked && !options_.dry_run)
    made = co_await to_.link(**first, link.target.directory, link.target.name);
  if (!made) co_return fail(from_.shown_path(link.source.path), made.error());
  ++(linked ? progress_.skipped : progress_.files);
  note_just_made(link.target);
  if (!linked) announce(link.source, link.target);
  progress_.expected_bytes -= link.source.size;
}

}  // namespace stag::cli
