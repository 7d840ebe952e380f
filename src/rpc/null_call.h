// The Call that asks whether a server lives: of procedure NULL, to the program that another Call
// was for. Every server answers it at once, whatever its other procedures wait for.
#pragma once

#include <cstdint>

#include "xdr/stream.h"

namespace stag::rpc {

// What a Call is for.
struct CallTarget {
  std::uint32_t program = 0, version = 0, procedure = 0;
};

// `call` is a Call as it is sent.
CallTarget target_of(const xdr::Stream& call);
xdr::Stream null_call(std::uint32_t xid, const CallTarget& to);

}  // namespace stag::rpc
