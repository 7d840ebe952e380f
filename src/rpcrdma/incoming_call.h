// A Call of the peer in progress: one record for the core and for its owner, which derives from it
// what else the owner needs to know of the Call (Sink::make_call). The Responder keeps the record
// when the Call has ended, for a later one; whatever was posted for the Call has ended by then.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/inline_vector.h"
#include "base/reason.h"
#include "rpcrdma/header.h"

namespace stag::rpcrdma {

// A reduced argument of a Call of the peer.
struct ArrivedItem {
  std::uint32_t position = 0;  // 0: the Payload stream of a Long Call
  std::uint32_t length = 0;    // may include the item's XDR pad (RFC 8166 3.4.5.2)
};

class IncomingCall {
 public:
  IncomingCall() = default;
  virtual ~IncomingCall() = default;
  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;

  std::uint32_t xid() const { return header_.xid; }

 private:
  friend class Responder;
  enum class State : std::uint8_t { Free, Waiting, Reading, Delivered, Sending };

  State state_ = State::Free;
  // Its XID, and what it has of chunks, with the Read list by Position.
  Header header_;
  // The handle of all its chunks: none, one, or too many to say.
  std::optional<std::uint32_t> handle_;
  bool several_handles_ = false;
  InlineVector<ArrivedItem, 2> items_;
  std::uint64_t charge_ = 0;   // bytes that it takes
  std::uint64_t charged_ = 0;  // of them, reserved
  std::uint32_t unsent_ = 0;   // bytes of its inline Reply that wait to be sent
  std::uint32_t reads_ = 0;    // that have not ended
  // The next of them to be posted, by the Read list; how many are not.
  struct NextRead {
    std::uint32_t item = 0, segment = 0;
    std::uint32_t offset = 0;  // in the item
    std::uint32_t left = 0;
  } next_read_;
  bool deferred_ = false;
  bool long_call_ = false;
  Reason failed_ = Reason::None;
};

}  // namespace stag::rpcrdma
