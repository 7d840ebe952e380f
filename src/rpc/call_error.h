// CallError: why a call has no results, as a value that a program can branch on and a sentence that
// a person can read.
#pragma once

#include <cstdint>
#include <string>

#include "base/reason.h"
#include "oncrpc/message.h"

namespace stag::rpc {

struct CallError {
  enum class Kind : std::uint8_t {
    Transport,  // no Reply came: `reason` says why (TimedOut, Cancelled, RpcConnectionLost, ...)
    Answered,   // the server answered with an RPC error: `status` has it
    Malformed,  // the server's Reply cannot be decoded: `reason` says why
  };
  Kind kind = Kind::Transport;
  Reason reason = Reason::None;  // None with Answered
  oncrpc::ReplyStatus status{};  // Answered only
  std::string where;             // the peer: "rdma 127.0.0.1:20049", Kerberos's words; may be empty
  bool sent = false;             // Transport only: the Call was sent, and may have been executed

  // One of each Kind, for transports; `sent` is false.
  static CallError transport(Reason reason, std::string where = {});
  static CallError answered(oncrpc::ReplyStatus status, std::string where = {});
  static CallError malformed(Reason reason, std::string where = {});

  // One sentence for a user: what happened and where.
  std::string message() const;
};

}  // namespace stag::rpc
