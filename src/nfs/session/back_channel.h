// BackChannel: the replier's half of the slots of a session's back channel (RFC
// 8881 sections 2.10.6.1, 20.9): which callback is new, which is a
// retransmission, which is out of order, and which is another one under the
// number of an earlier (2.10.6.1.3.1).
//
// Pure: no clock, no thread; the memory is bounded by kSlots, and the
// operations and results that are kept.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/buffer.h"
#include "nfs/proto/nfs4.h"

namespace stag::nfs::session {

class BackChannel {
 public:
  static constexpr std::uint32_t kSlots = 16;

  struct Turn {
    v4::nfsstat4 status = v4::NFS4_OK;  // of CB_SEQUENCE
    // With NFS4_OK, the results of before for a retransmission; null: it is to
    // be executed, and end() to be called.
    const v4::CB_COMPOUND4res* kept = nullptr;
  };

  // A new session, with `slots` slots at most.
  void reset(const v4::sessionid4& session, std::uint32_t slots);
  // `operations`: all that follow CB_SEQUENCE, encoded.
  Turn begin(const v4::CB_SEQUENCE4args& args, const Buffer& operations) const;
  // The callback was executed, on the spot; `results` are kept for a retransmission. Without this
  // (there was no memory) the callback is executed when it comes again.
  void end(const v4::CB_SEQUENCE4args& args, Buffer operations, const v4::CB_COMPOUND4res& results);

  v4::CB_SEQUENCE4resok answer_to(const v4::CB_SEQUENCE4args& args) const;

 private:
  struct Slot {
    v4::sequenceid4 last = 0;
    Buffer operations{};
    std::optional<v4::CB_COMPOUND4res> kept{};
  };

  std::array<Slot, kSlots> slots_{};
  std::uint32_t count_ = 0;
  v4::sessionid4 session_{};
};

}  // namespace stag::nfs::session
