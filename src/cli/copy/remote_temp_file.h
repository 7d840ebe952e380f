// A file of an NFS server while it is written, and how it gets owner, mode and times.
#pragma once

#include <memory>
#include <string>

#include "cli/copy/acl_support.h"
#include "cli/copy/copy_endpoint.h"
#include "cli/support/remote.h"

namespace stag::cli {

Owner owner_of(const nfs::client::Attributes& attributes);

// Sets the attributes `finish`; at no moment does a wrong owner have one of kOwnersBits. `object`
// has the present attributes: those that are right already are not set again.
Task<Outcome<Ok>> finish_remote(nfs::client::FileSystem& files, CopyObject object, Finish finish);

// Sets extended attributes and access control lists of `object`.
Task<Outcome<Ok>> adopt_remote(nfs::client::FileSystem& files, AclSupport& support,
                               CopyObject object, Extras extras);

// The name of a file or symbolic link while it is made, and its final name; both as they appear in
// messages, too.
struct TempFileNames {
  nfs::client::Handle directory;
  std::string temporary, name;
  std::string temporary_place, place;
};
// As CopyEndpoint::temp_file(). `support` is that of the server, and outlives the TempFile.
Task<Outcome<std::unique_ptr<TempFile>>> open_remote_temp_file(Remote& remote, AclSupport& support,
                                                               Progress& progress,
                                                               TempFileNames names,
                                                               TempFilePlan plan);

// Whether the error is an answer of the server that it has not made the object. A taken temporary
// name is none: it is the result of an earlier transmission of the same call.
bool is_answer(const nfs::client::Error& error);
// Removes the object with the temporary name, if there is one; also after an interruption, when
// that is not known.
Task<void> remove_temp_file(Remote& remote, Progress& progress, const TempFileNames& names);
// The error with the final name in place of the temporary name, which the user does not know.
Failure<nfs::client::Error> named_by_place(const TempFileNames& names, nfs::client::Error error);

}  // namespace stag::cli
