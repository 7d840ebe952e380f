// PeerQuirks: deviations of Responders from RFC 8166 that a Requester avoids.
#pragma once

namespace stag::rpcrdma {

// Each member, if true, makes the Requester avoid a form of Call that RFC 8166 allows and some
// Responders serve wrongly. The default suits Linux 6.1; other Responders serve such Calls as well.
struct PeerQuirks {
  bool one_data_read_chunk = true;         // the peer reads several Read chunks to wrong places
  bool no_data_with_position_zero = true;  // the peer ignores a data chunk beside Position Zero
  bool no_write_list_with_reply_chunk = false;  // the peer cannot serve a Call with both

  // Avoids nothing.
  static PeerQuirks none() { return {false, false, false}; }
};

}  // namespace stag::rpcrdma
