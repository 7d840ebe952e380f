// CapturedFabric: another fabric, whose connections show what goes over them as frames. Works on
// every provider: it stands where RPC-over-RDMA meets the fabric, and sees what is posted, what
// arrives and what became of it. Not seen: the peer's own Writes and Reads, which no software takes
// part in, and acknowledgements.
//
// Thread: as Fabric; the recorder is told from all loops.
#pragma once

#include <memory>

#include "fabric/capture/frames.h"
#include "fabric/fabric.h"

namespace stag::fabric::capture {

// Who keeps the frames. Any thread; must not block. What take() throws costs the frame, nothing
// else.
class Recorder : public FrameSink {
 public:
  virtual ~Recorder() = default;
  // The frames of an operation, or some of them, could not be made.
  virtual void lose() noexcept = 0;
};

// `fabric` as it is, but that `recorder` gets the frames of its connections.
std::unique_ptr<Fabric> captured(std::unique_ptr<Fabric> fabric,
                                 std::shared_ptr<Recorder> recorder);

}  // namespace stag::fabric::capture
