// What the Copier removes from the destination: what is of another kind than its source, and what
// the source does not have.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/copy/copier.h"
#include "cli/copy/copier_parts.h"

namespace stag::cli {

bool Copier::made_here(const CopyObject& directory) const {
  return std::ranges::any_of(finished_, [&directory](const Finished& made) {
    return made.directory.fsid == directory.fsid && made.directory.file_id == directory.file_id;
  });
}

Task<Outcome<bool>> Copier::can_be_had(const CopyObject& source, const Target& target) {
  Outcome<Ok> read{Ok{}};
  switch (source.kind) {
    case Kind::File:
      read = co_await from_.check_readable(source);
      break;
    case Kind::Directory: {
      const std::unique_ptr<DirIterator> members = from_.members(source);
      const Outcome<std::vector<Member>> first = co_await members->next();
      if (!first) read = Failure{first.error()};
      break;
    }
    case Kind::Symlink: {
      const Outcome<std::string> text = co_await symlink_text(source);
      if (!text) read = Failure{text.error()};
      break;
    }
    case Kind::Other:
      co_return co_await can_be_made(source, target);
  }
  if (!read) co_return Failure{read.error()};
  co_return true;
}

Task<bool> Copier::clear(const CopyObject& source, Target& target) {
  const bool other = target.existing && target.existing->kind != source.kind;
  const bool copied = source.kind != Kind::Other || options_.specials;
  if (!options_.remove_others || !other || !copied) co_return true;
  // Two names of the source may be one in the destination, where case does not count.
  if (target.existing->kind == Kind::Directory && made_here(*target.existing)) {
    fail(from_.shown_path(source.path),
         fmt::format("'{}' was copied to its place before", to_.shown_path(target.existing->path)));
    co_return false;
  }
  const Outcome<std::string> own = co_await own_spelling(source, target);
  if (!own) fail(to_.shown_path(target.existing->path), own.error());
  if (own && !own->empty()) fail(from_.shown_path(source.path), one_name(*own).error);
  if (!own || !own->empty()) co_return false;
  const Outcome<bool> possible = co_await can_be_had(source, target);
  if (!possible) fail(from_.shown_path(source.path), possible.error());
  if (!possible || !*possible) co_return false;
  // A file that is in flight has a temporary name there.
  co_await files_.join();
  Member member{target.name, *target.existing};
  const Outcome<bool> removed =
      co_await remover_.remove(target.directory, std::move(member), source.path);
  if (!removed) {
    fail(to_.shown_path(target.existing->path), removed.error());
    co_return false;
  }
  if (!*removed)
    fail(to_.shown_path(target.existing->path),
         remover_.spared() > 0 ? "it is in the way, and --max-delete allows to remove no more"
                               : "what --exclude matches is in it, and in the way");
  if (*removed) target.existing.reset();
  co_return *removed;
}

Task<void> Copier::remove_others(const CopyObject& source, CopyObject directory,
                                 SourceNames names) {
  // A file that is in flight has a temporary name there.
  co_await files_.join();
  Outcome<Remover::Members> members = co_await remover_.all_of(directory);
  if (!members) co_return fail(to_.shown_path(directory.path), members.error());
  Outcome<OtherSpellings> spellings = co_await other_spellings(directory, names, members->list());
  if (!spellings) co_return fail(to_.shown_path(directory.path), spellings.error());
  for (Member& member : members->list()) {
    if (names.all.contains(member.name) || stopped()) continue;
    const std::string path = member.object.path;
    std::string counterpart = path_below(source, member.name);
    if (const auto at = spellings->find(member.name); at != spellings->end()) {
      const bool stays = options_.dry_run || excluded(counterpart, member.excluded_as());
      Outcome<Ok> renamed{Ok{}};
      if (!stays) renamed = co_await respell(directory, member.name, at->second);
      if (!renamed) fail(to_.shown_path(path), renamed.error());
      continue;
    }
    const Outcome<bool> removed =
        co_await remover_.remove(directory, std::move(member), std::move(counterpart));
    if (!removed) fail(to_.shown_path(path), removed.error());
  }
}

}  // namespace stag::cli
