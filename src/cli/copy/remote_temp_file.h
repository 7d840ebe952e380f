// A file of an NFS server while it is written, and how it gets owner, mode and times.
#pragma once

#include <memory>
#include <string>

#include "cli/copy/copy_endpoint.h"
#include "cli/support/remote.h"

namespace stag::cli {

// Sets what `finish` says; at no moment does a wrong owner have one of kOwnersBits. `object` is as
// it is now: what is right already is not set again.
Task<Outcome<Ok>> finish_remote(nfs::client::FileSystem& files, CopyObject object, Finish finish);

// What a file or symbolic link is called while it is made, and what it is to be called; both in
// messages, too.
struct TempFileNames {
  nfs::client::Handle directory;
  std::string temporary, name;
  std::string temporary_place, place;
};
Task<Outcome<std::unique_ptr<TempFile>>> open_remote_temp_file(Remote& remote, Progress& progress,
                                                               TempFileNames names,
                                                               TempFilePlan plan);

// Whether the server has said that it has not made what it was asked to make. That a temporary name
// is taken comes from an earlier transmission of the same call.
bool is_answer(const nfs::client::Error& error);
// Removes what has the temporary name, also after an interruption, when it is not known whether
// there is such a thing.
Task<void> remove_temp_file(Remote& remote, Progress& progress, const TempFileNames& names);
// The user knows what is being made by its place, and not by its temporary name.
Failure<nfs::client::Error> named_by_place(const TempFileNames& names, nfs::client::Error error);

}  // namespace stag::cli
