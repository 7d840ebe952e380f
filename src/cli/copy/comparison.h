// Whether files are the same already, so that they need not be copied.
#pragma once

#include "cli/copy/copy_endpoint.h"

namespace stag::cli {

// Whether the first `length` bytes of both files are the same.
Task<Outcome<bool>> same_content(CopyEndpoint& from, CopyObject source, CopyEndpoint& to,
                                 CopyObject existing, std::uint64_t length);

// Whether two times are the same, as far as every version of NFS keeps them: RFC 1094 2.3.4 counts
// microseconds.
bool same_time(const nfs::client::Time& a, const nfs::client::Time& b);

// Whether `existing` is what became of `wanted`: a file system may keep whole seconds only, and of
// those of others nobody can tell which do. With a `window` the times may be as many seconds apart.
bool same_kept_time(const nfs::client::Time& existing, const nfs::client::Time& wanted,
                    std::uint32_t window);

// Whether the numbers of both files are the same, as far as every version of NFS keeps them.
bool same_file_id(const CopyObject& a, const CopyObject& b);

// Whether two files are one, which is reached in two ways: by two exports or versions, or by a
// server and as a file of this machine, which is that server or has mounted what it serves. They
// have no handle and no number of a file system in common, but nobody can choose the time of the
// last change; version 2 has times to the microsecond.
bool seem_to_be_one(const CopyObject& a, const CopyObject& b);

}  // namespace stag::cli
