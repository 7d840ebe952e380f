// Why a call brought no results, as a value a program can branch on and a sentence a person can
// read.
#pragma once

#include <cstdint>
#include <string>

#include "base/reason.h"
#include "oncrpc/message.h"

namespace stag::rpc {

struct CallError {
  enum class Kind : std::uint8_t {
    Transport,  // no Reply: `reason` says why (TimedOut, Cancelled, connection lost, too small ...)
    Answered,   // the server answered with an RPC error: `status`
    Malformed,  // the server's Reply cannot be decoded: `reason`
  };
  Kind kind = Kind::Transport;
  Reason reason = Reason::None;
  oncrpc::ReplyStatus status{};
  std::string where;  // the peer, in words: "rdma 127.0.0.1:20049"; may be empty

  static CallError transport(Reason reason, std::string where = {});
  static CallError answered(oncrpc::ReplyStatus status, std::string where = {});
  static CallError malformed(Reason reason, std::string where = {});

  // One sentence for a user: what happened and where.
  std::string message() const;
};

}  // namespace stag::rpc
