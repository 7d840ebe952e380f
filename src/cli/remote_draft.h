// A file of an NFS server while it is written, and how it gets owner, mode and times.
#pragma once

#include <memory>
#include <string>

#include "cli/remote.h"
#include "cli/side.h"

namespace stag::cli {

// Sets what `finish` says; at no moment does a wrong owner have one of kOwnersBits. `object` is as
// it is now: what is right already is not set again.
Task<Outcome<Ok>> finish_remote(nfs::client::FileSystem& files, Object object, Finish finish);

// What a file is called while it is made, and what it is to be called; `place` is the latter in
// messages.
struct DraftNames {
  nfs::client::Handle directory;
  std::string temporary, name, place;
};
Task<Outcome<std::unique_ptr<Draft>>> open_remote_draft(Remote& remote, Tally& tally,
                                                        DraftNames names, DraftPlan plan);

// The user knows what is being made by `place`, and not by its temporary name.
Failure<nfs::client::Error> told_of(const std::string& place, const std::string& temporary,
                                    nfs::client::Error error);

}  // namespace stag::cli
