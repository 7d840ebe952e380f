// Maps a store's Status, or the Refusal of a Call, to a status of NFSv3. RFC 1813 section 3.3 lists
// the errors that each procedure can return; any other Status of a store becomes the nearest one on
// the list.
//
// Beyond the lists: JUKEBOX for all procedures (section 2.6 describes it for any), and errors that
// the lists lack although no other one fits: INVAL for the creating procedures (an attribute that
// cannot be set), MLINK for MKDIR, FBIG for SETATTR of a size, NOSPC and DQUOT for COMMIT (some
// file systems allocate storage only then).
#pragma once

#include <cstdint>

#include "nfs/export/admission.h"
#include "nfs/proto/nfs3.h"
#include "vfs/status.h"

namespace stag::nfs::nfs3 {

// The same without a list of a procedure, for programs that have none (NFSACL).
v3::nfsstat3 to_nfsstat3(vfs::Status status);
v3::nfsstat3 to_nfsstat3(Refusal refusal);

// `procedure` is the number of an NFSv3 procedure, 1 to 21.
v3::nfsstat3 to_nfsstat3(std::uint32_t procedure, vfs::Status status);

// `wanted` where the procedure may return it, else its nearest.
v3::nfsstat3 permitted(std::uint32_t procedure, v3::nfsstat3 wanted);

// Whether RFC 1813 (or the additions above) lets the procedure return it.
bool may_return(std::uint32_t procedure, v3::nfsstat3 status);

}  // namespace stag::nfs::nfs3
