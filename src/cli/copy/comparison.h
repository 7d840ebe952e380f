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

}  // namespace stag::cli
