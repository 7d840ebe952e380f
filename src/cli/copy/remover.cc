#include "cli/copy/remover.h"

#include <fmt/format.h>

#include "nfs/client/listing.h"

namespace stag::cli {

using nfs::client::Error;

Task<Outcome<bool>> Remover::remove(CopyObject directory, Member member, std::string counterpart) {
  const CopyObject& object = member.object;
  if (keeps_(counterpart, member.excluded_as())) co_return false;
  if (member.trouble) co_return Failure{*member.trouble};
  if (left_ == 0) {
    ++spared_;
    co_return false;
  }
  if (object.kind == Kind::Directory) {
    const Outcome<bool> there = co_await is_there(directory, member);
    if (!there) co_return there;
    if (!*there) co_return true;
    const Outcome<bool> emptied = co_await empty(object, counterpart);
    if (!emptied || !*emptied) co_return emptied;
    if (left_ == 0) {
      ++spared_;
      co_return false;
    }
  }
  if (!dry_run_) {
    const Outcome<Ok> removed = co_await endpoint_.remove(std::move(directory), member);
    // An entry that another client has removed counts as removed.
    const bool gone = removed || removed.error().is(nfs::client::Status::NoEntry);
    if (!gone) co_return Failure{removed.error()};
  }
  --left_;
  told_(object);
  co_return true;
}

// A server finds a directory by its handle wherever it has been moved since it was listed.
Task<Outcome<bool>> Remover::is_there(const CopyObject& directory, const Member& member) {
  const Outcome<std::optional<CopyObject>> now = co_await endpoint_.find_in(directory, member.name);
  if (!now) co_return Failure{now.error()};
  if (!*now) co_return false;
  const CopyObject &found = **now, &listed = member.object;
  if (found.kind == listed.kind && found.fsid == listed.fsid && found.file_id == listed.file_id)
    co_return true;
  co_return Failure{Error::of_local(
      fmt::format("'{}' has changed meanwhile; copy it again", endpoint_.shown_path(listed.path)))};
}

// False: something in it is kept.
Task<Outcome<bool>> Remover::empty(const CopyObject& directory, const std::string& counterpart) {
  const Descent::Step step(descent_, {directory.handle, directory.fsid, directory.file_id});
  if (step.refusal()) co_return Failure{Error::of_local(std::string(*step.refusal()))};
  const Outcome<bool> source = co_await is_source_(directory);
  if (!source) co_return Failure{source.error()};
  if (*source) co_return Failure{Error::of_local(kSourceStays)};
  if (dry_run_) co_return co_await remove_members(directory, counterpart);
  const bool opened = co_await make_writable(endpoint_, directory);
  const Outcome<bool> emptied = co_await remove_members(directory, counterpart);
  // What stays is as it was.
  if (opened && (!emptied || !*emptied || left_ == 0)) {
    CopyObject now = directory;
    now.mode |= kOwnersRights;
    static_cast<void>(co_await endpoint_.finish(std::move(now), {.mode = directory.mode}));
  }
  co_return emptied;
}

Task<Outcome<bool>> Remover::remove_members(const CopyObject& directory,
                                            const std::string& counterpart) {
  // The names are read first: a removal may change the cookies of the rest.
  Outcome<Members> members = co_await all_of(directory);
  if (!members) co_return Failure{members.error()};
  bool empty = true;
  for (Member& below : members->list()) {
    if (run_.cancel.cancelled()) co_return Failure{Error::of_local("interrupted")};
    std::string its_counterpart = counterpart + "/" + below.name;
    const Outcome<bool> removed =
        co_await remove(directory, std::move(below), std::move(its_counterpart));
    if (!removed) co_return removed;
    empty = empty && *removed;
  }
  co_return empty;
}

Task<Outcome<Remover::Members>> Remover::all_of(CopyObject directory) {
  Members members(kept_);
  const std::unique_ptr<DirIterator> iterator = endpoint_.members(directory);
  for (;;) {
    Outcome<std::vector<Member>> batch = co_await iterator->next();
    if (!batch) co_return Failure{batch.error()};
    if (batch->empty()) co_return members;
    for (Member& member : *batch) members.add(std::move(member));
    if (kept_ > nfs::client::Listing::kMostKept)
      co_return Failure{Error::of_local(
          "this directory and those above it have too many entries to be compared")};
  }
}

}  // namespace stag::cli
