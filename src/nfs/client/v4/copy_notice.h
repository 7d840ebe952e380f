// A CopyNotice to and from the structures of version 4.2 (RFC 7862 15.3): the destination of a copy
// is sent what the source has answered.
#pragma once

#include <vector>

#include "nfs/client/protocol/types.h"
#include "nfs/proto/nfs4.h"

namespace stag::nfs::client::nfs4 {

// Without locations: all that reading by it needs.
CopyNotice to_copy_notice(const v4::stateid4& stateid);
CopyNotice to_copy_notice(v4::COPY_NOTIFY4resok answer);
v4::stateid4 stateid_of(const CopyNotice& notice);
std::vector<v4::netloc4> locations_of(const CopyNotice& notice);

}  // namespace stag::nfs::client::nfs4
