// Deviations of peers that a Requester reckons with.
#pragma once

namespace stag::rpcrdma {

// What some Responders cannot do although RFC 8166 asks it of them. The default suits Linux 6.1,
// and nobody suffers from it.
struct PeerQuirks {
  bool one_data_read_chunk = true;         // several per Call are read to wrong places
  bool no_data_with_position_zero = true;  // a data chunk beside Position Zero is ignored
  bool no_write_list_with_reply_chunk = false;

  static PeerQuirks none() { return {false, false, false}; }
};

}  // namespace stag::rpcrdma
