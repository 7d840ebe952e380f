// The tables of cases, a function for each family of operations. `minor` is the minor version that
// the cases are for, where they differ in more than a set of minor versions can say.
#pragma once

#include "conform/nfs4/script.h"

namespace stag::conform::nfs4 {

Scripts compound_cases();
Scripts filehandle_cases();
Scripts name_cases();
Scripts pseudo_fs_cases();
Scripts attribute_cases();
Scripts data_cases();
Scripts stateid_cases();
Scripts open_cases();
Scripts delegation_cases();
Scripts delegation_wish_cases();
Scripts recall_cases();
Scripts revoked_cases();
Scripts lease_cases();
Scripts lock_cases();
Scripts session_cases();
Scripts client_cases();
Scripts principal_cases();
Scripts protection_cases();
Scripts reply_size_cases();
Scripts layout_cases();
Scripts v40_cases();
Scripts v42_cases();
Scripts offload_cases();
Scripts copy_notify_cases();
Scripts xattr_cases();
// Errors that many operations share, from the RFCs' own tables: no filehandle, not in a session,
// malformed arguments, an object that is gone.
Scripts shared_error_cases(std::uint32_t minor);

// A step for any operation, complete enough to be decoded.
Step sample(v4::nfs_opnum4 operation);

}  // namespace stag::conform::nfs4
