// Maps a store's Status, or the Refusal of a Call, to a status of NFSv3. RFC
// 1813 3.3.x lists for every procedure which errors it can return; a store's answer that is not on
// the list becomes the nearest one that is.
//
// Beyond the lists: JUKEBOX everywhere (2.6 describes it for any procedure), and the errors that
// the lists forgot although the operation cannot say it otherwise: INVAL for the creating
// procedures (an attribute that cannot be set), MLINK for MKDIR, FBIG for SETATTR of a size, NOSPC
// and DQUOT for COMMIT (some file systems look for room only then).
#pragma once

#include <cstdint>

#include "nfs/export/admission.h"
#include "nfs/proto/nfs3.h"
#include "vfs/status.h"

namespace stag::nfs::nfs3 {

// Whatever the procedure: what holds for programs without such lists (NFSACL).
v3::nfsstat3 to_nfsstat3(vfs::Status status);
v3::nfsstat3 to_nfsstat3(Refusal refusal);

// `procedure` is the number of an NFSv3 procedure, 1 to 21.
v3::nfsstat3 to_nfsstat3(std::uint32_t procedure, vfs::Status status);

// `wanted` where the procedure may return it, else its nearest.
v3::nfsstat3 permitted(std::uint32_t procedure, v3::nfsstat3 wanted);

// Whether RFC 1813 (or the additions above) lets the procedure return it.
bool may_return(std::uint32_t procedure, v3::nfsstat3 status);

}  // namespace stag::nfs::nfs3
