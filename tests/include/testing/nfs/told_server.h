// What a server of NFS version 4.1 or 4.2 says of which the test tells only the rest.
#pragma once

#include "nfs/proto/nfs4.h"

namespace stag::testing {

// Success for everything, and what a session with a back channel needs.
inline void answer_calling_back(const nfs::v4::nfs_argop4& asked, nfs::v4::nfs_resop4& result) {
  result.resop = asked.argop;
  if (asked.argop == nfs::v4::OP_CREATE_SESSION) {
    auto& made = result.opcreate_session().csr_resok4();
    made.csr_sessionid.fill(std::byte{5});
    made.csr_flags = nfs::v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
    made.csr_fore_chan_attrs = {0, 1 << 20, 1 << 20, 4096, 16, 4, {}};
    made.csr_back_chan_attrs = {0, 4096, 4096, 0, 2, 4, {}};
  }
  if (asked.argop == nfs::v4::OP_SEQUENCE) {
    auto& resok = result.opsequence().sr_resok4();
    resok.sr_sessionid = asked.opsequence().sa_sessionid;
    resok.sr_sequenceid = asked.opsequence().sa_sequenceid;
    resok.sr_slotid = asked.opsequence().sa_slotid;
    resok.sr_highest_slotid = resok.sr_target_highest_slotid = 3;
  }
}

}  // namespace stag::testing
