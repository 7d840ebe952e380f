// A copy from one server to another that the servers make by themselves, by NFS version 4.2 (RFC
// 7862 4.6.2): the client asks the source for leave (COPY_NOTIFY), and has the destination copy
// from there (COPY).
#pragma once

#include "cli/copy/copy_endpoint.h"
#include "cli/support/remote.h"

namespace stag::cli {

// Whether the servers of two sessions may be asked to, and whether it is worth four more calls to
// ask for `source`.
bool may_copy_between(const nfs::client::Url& from, const nfs::client::Url& to);
bool is_worth_asking(const CopyObject& source);

// Copies all of `source`, of `from`, to the beginning of `file`, of `to`, and makes it durable;
// yields the bytes. Errors are of one server or the other, whichever does not do this.
Task<Outcome<std::uint64_t>> copy_between(Remote& from, CopyObject source, Remote& to,
                                          nfs::client::Handle file, nfs::client::CopyWatch watch);

}  // namespace stag::cli
