// CapturedFabric: another fabric, whose connections show what goes over them as frames while
// a capture runs. Works on every provider: it stands where RPC-over-RDMA meets the fabric, and sees
// what is posted, what arrives and what became of it. Not seen: the peer's own Writes and Reads,
// which no software takes part in, and acknowledgements.
//
// A connection that is there when a capture begins is shown from its next operation or event on,
// behind the messages that would have set it up. While nobody captures each of them costs a load,
// and the call that goes through. The highest bit of an operation's token belongs to the fabric
// here.
//
// Thread: as Fabric; recorders are told from all loops.
#pragma once

#include <memory>

#include "fabric/capture/tap.h"
#include "fabric/fabric.h"

namespace stag::fabric::capture {

// `fabric` as it is, but that the recorders of `tap` get the frames of its connections.
std::unique_ptr<Fabric> captured(std::unique_ptr<Fabric> fabric, std::shared_ptr<Tap> tap);

}  // namespace stag::fabric::capture
