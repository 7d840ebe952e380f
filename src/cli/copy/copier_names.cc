// What the Copier does where several names of the source are one in the destination, which takes
// no account of case, say: none replaces what another one has made, and what the source has in
// another spelling is not removed.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/copy/copier.h"
#include "cli/copy/copier_parts.h"

namespace stag::cli {

using nfs::client::Error;

namespace {

bool is_one_object(const CopyObject& a, const CopyObject& b) {
  return a.fsid == b.fsid && a.file_id == b.file_id;
}

// Whether nothing can have a name that is refused so.
bool means_no_name(const Error& error) {
  using nfs::client::Status;
  return (error.kind == Error::Kind::Nfs || error.kind == Error::Kind::Local) &&
         (error.status == Status::NameTooLong || error.status == Status::Invalid);
}

}  // namespace

Failure<Error> one_name(const std::string& other) {
  return refusal(
      fmt::format("the destination takes its name for '{}', which is beside it in the source; "
                  "rename one of them",
                  other));
}

Task<void> Copier::settle_names() {
  co_await files_.join();
  co_await make_links();
}

Task<void> Copier::make_links() {
  for (Link& link : links_) {
    if (stopped()) {
      ++untold_;
      continue;
    }
    try {
      co_await make_link(std::move(link));
    } catch (const std::bad_alloc&) {
      ++without_memory_;
    }
  }
  links_.clear();
}

Task<Outcome<bool>> Copier::lists_both(CopyObject directory, std::string one, std::string other) {
  const std::unique_ptr<DirIterator> members = to_.members(directory);
  bool has_one = false, has_other = false;
  for (;;) {
    const Outcome<std::vector<Member>> batch = co_await members->next();
    if (!batch) co_return Failure{batch.error()};
    if (batch->empty()) co_return false;
    for (const Member& member : *batch) {
      has_one = has_one || member.name == one;
      has_other = has_other || member.name == other;
    }
    if (has_one && has_other) co_return true;
  }
}

Task<Outcome<bool>> Copier::is_one_name(CopyObject directory, const CopyObject& object,
                                        std::string name, const std::optional<CopyObject>& other,
                                        std::string other_name) {
  if (!other || !is_one_object(object, *other)) co_return false;
  // Files may have several names.
  if (object.kind == Kind::Directory || object.links < 2) co_return true;
  const Outcome<bool> both =
      co_await lists_both(std::move(directory), std::move(name), std::move(other_name));
  if (!both) co_return Failure{both.error()};
  co_return !*both;
}

Task<Outcome<Ok>> Copier::check_own_name(CopyObject directory, std::string name,
                                         std::vector<std::string> alike) {
  co_await settle_names();
  const Outcome<std::optional<CopyObject>> found = co_await to_.find_in(directory, name);
  if (!found) co_return Failure{found.error()};
  if (!*found) co_return Ok{};
  for (const std::string& earlier : alike) {
    if (!is_usable_name(earlier)) continue;
    const Outcome<std::optional<CopyObject>> other = co_await to_.find_in(directory, earlier);
    if (!other) co_return Failure{other.error()};
    const Outcome<bool> one = co_await is_one_name(directory, **found, name, *other, earlier);
    if (!one) co_return Failure{one.error()};
    if (*one) co_return one_name(earlier);
  }
  co_return Ok{};
}

Task<Outcome<Ok>> Copier::check_just_made(const Target& target) {
  if (options_.just_made == nullptr) co_return Ok{};
  const std::string path = path_below(target.directory, target.name);
  if (options_.just_made->contains({folded_name(path), path}))
    co_return refusal(fmt::format("will not overwrite just-created '{}'", to_.shown_path(path)));
  co_return co_await check_made_alike(target);
}

Task<Outcome<Ok>> Copier::check_made_alike(const Target& target) {
  if (options_.just_made == nullptr || !target.existing) co_return Ok{};
  const std::string path = path_below(target.directory, target.name);
  const std::string folded = folded_name(path);
  std::vector<std::string> alike;
  for (auto at = options_.just_made->lower_bound({folded, ""});
       at != options_.just_made->end() && at->first == folded && alike.size() < kMostAlike; ++at)
    if (at->second != path) alike.push_back(at->second);
  for (const std::string& made : alike) {
    const Outcome<std::optional<CopyObject>> other = co_await to_.find(made, Follow::No);
    if (!other) co_return Failure{other.error()};
    const Outcome<bool> one = co_await is_one_name(target.directory, *target.existing, target.name,
                                                   *other, base_name(made));
    if (!one) co_return Failure{one.error()};
    if (*one)
      co_return refusal(fmt::format("will not overwrite just-created '{}'", to_.shown_path(made)));
  }
  co_return Ok{};
}

void Copier::note_just_made(const Target& target) {
  if (options_.just_made == nullptr) return;
  const std::string path = path_below(target.directory, target.name);
  options_.just_made->emplace(folded_name(path), path);
}

Task<Outcome<std::string>> Copier::own_spelling(const CopyObject& source, const Target& target) {
  const std::unique_ptr<DirIterator> members = to_.members(target.directory);
  std::string spelling;
  for (;;) {
    const Outcome<std::vector<Member>> batch = co_await members->next();
    if (!batch) co_return Failure{batch.error()};
    if (batch->empty()) break;
    for (const Member& member : *batch) {
      if (member.name == target.name) co_return std::string();
      if (!member.trouble && is_one_object(member.object, *target.existing)) spelling = member.name;
    }
  }
  if (spelling.empty()) co_return spelling;
  CopyObject beside;
  beside.path = directory_of(source.path);
  const Outcome<std::optional<CopyObject>> other =
      co_await from_.find(path_below(beside, spelling), Follow::No);
  if (!other) co_return Failure{other.error()};
  // The source may be as the destination.
  if (!*other || is_one_object(**other, source)) co_return std::string();
  co_return spelling;
}

Task<Outcome<Copier::OtherSpellings>> Copier::other_spellings(CopyObject directory,
                                                              const SourceNames& names,
                                                              const std::vector<Member>& listed) {
  OtherSpellings spellings;
  std::set<std::string_view> there;
  std::map<FileId, std::string_view> by_object;
  std::multimap<std::string, std::string_view> by_folded;
  for (const Member& member : listed) {
    there.insert(member.name);
    if (names.all.contains(member.name)) continue;
    if (!member.trouble)
      by_object.emplace(FileId(member.object.fsid, member.object.file_id), member.name);
    by_folded.emplace(folded_name(member.name), member.name);
  }
  if (by_folded.empty()) co_return spellings;
  for (const std::string& name : names.all) {
    if (there.contains(name) || !is_usable_name(name)) continue;
    const auto [first, end] = by_folded.equal_range(folded_name(name));
    // What is not copied is not there, as a rule.
    if (first == end && names.excluded.contains(name)) continue;
    const Outcome<std::optional<CopyObject>> found = co_await to_.find_in(directory, name);
    if (!found && means_no_name(found.error())) continue;
    if (!found) co_return Failure{found.error()};
    if (!*found) continue;
    const auto same = by_object.find(FileId((*found)->fsid, (*found)->file_id));
    if (same != by_object.end()) spellings.emplace(same->second, name);
    // Where something is mounted a listing may show another number than what is found.
    else
      std::for_each(first, end, [&](const auto& one) { spellings.emplace(one.second, name); });
  }
  co_return spellings;
}

// By a name in between: what renames by paths, as many file systems of FUSE and servers do, may
// take the other spelling for an object that is in the way.
Task<Outcome<Ok>> Copier::respell(CopyObject directory, std::string name, std::string spelling) {
  const std::string between = temporary_name();
  const Outcome<Ok> away = co_await to_.rename(directory, name, between);
  if (!away) co_return away;
  const Outcome<Ok> done = co_await to_.rename(directory, between, spelling);
  if (done) {
    // Some servers have another handle for another name.
    const Outcome<std::optional<CopyObject>> now =
        co_await to_.find_in(std::move(directory), std::move(spelling));
    for (Finished& each : finished_)
      if (now && *now && is_one_object(each.directory, **now))
        each.directory.handle = (*now)->handle;
    co_return done;
  }
  const Outcome<Ok> back = co_await to_.rename(directory, between, std::move(name));
  if (back) co_return done;
  co_return refusal(fmt::format("its name is '{}' now: {}", between, done.error().sentence));
}

}  // namespace stag::cli
