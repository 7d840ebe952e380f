// The credentials of a caller, by what the URL says of the user.
#pragma once

#include "nfs/client/file_system.h"
#include "nfs/client/session/url.h"

namespace stag::nfs::blocking {

// Makes those credentials of `files` that `url` asks for: by Kerberos, unless there are such, which
// the Session compares with it; or AUTH_SYS with its uid and gid. Where it asks for nothing they
// stay as they are. Kind::Url where Kerberos cannot be used. May block.
client::Outcome<Ok> adopt_user(const client::Url& url, client::FileSystemOptions& files);

}  // namespace stag::nfs::blocking
