#include "cli/copy/remover.h"

#include "nfs/client/listing.h"

namespace stag::cli {

using nfs::client::Error;

Task<Outcome<bool>> Remover::remove(CopyObject directory, Member member, std::string counterpart) {
  const CopyObject& object = member.object;
  if (keeps_(counterpart, member.excluded_as())) co_return false;
  if (member.trouble) co_return Failure{*member.trouble};
  bool empty = true;
  if (object.kind == Kind::Directory) {
    const Descent::Step step(descent_, {object.handle, object.fsid, object.file_id});
    if (step.refusal()) co_return Failure{Error::of_local(std::string(*step.refusal()))};
    // The names are read first: a removal may change the cookies of the rest.
    Outcome<std::vector<Member>> members = co_await all_of(object);
    if (!members) co_return Failure{members.error()};
    for (Member& below : *members) {
      if (run_.cancel.cancelled()) co_return Failure{Error::of_local("interrupted")};
      std::string its_counterpart = counterpart + "/" + below.name;
      const Outcome<bool> removed =
          co_await remove(object, std::move(below), std::move(its_counterpart));
      if (!removed) co_return removed;
      empty = empty && *removed;
    }
  }
  if (!empty) co_return false;
  if (!dry_run_) {
    const Outcome<Ok> removed = co_await endpoint_.remove(std::move(directory), member);
    // An entry that somebody else has removed counts as removed.
    const bool gone = removed || removed.error().is(nfs::client::Status::NoEntry);
    if (!gone) co_return Failure{removed.error()};
  }
  told_(object);
  co_return true;
}

Task<Outcome<std::vector<Member>>> Remover::all_of(CopyObject directory) {
  std::vector<Member> members;
  const std::unique_ptr<DirIterator> iterator = endpoint_.members(directory);
  for (;;) {
    Outcome<std::vector<Member>> batch = co_await iterator->next();
    if (!batch) co_return Failure{batch.error()};
    if (batch->empty()) co_return members;
    for (Member& member : *batch) members.push_back(std::move(member));
    if (members.size() > nfs::client::Listing::kMostKept)
      co_return Failure{Error::of_local("the directory has too many entries to be compared")};
  }
}

}  // namespace stag::cli
