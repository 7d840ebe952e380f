// The registered memory of one Call: exposed for exactly that Call, each range with exactly one
// right, and given back only when the peer can no longer reach it (RFC 8166 4.4.1). Exposed ->
// Revoking -> Free.
#pragma once

#include <cstdint>
#include <optional>

#include "base/inline_vector.h"
#include "base/result.h"
#include "base/rope.h"
#include "fabric/fabric.h"
#include "rpcrdma/header.h"

namespace stag::rpc::rdma {

class Registrations {
 public:
  Registrations() = default;
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;
  ~Registrations() { STAG_CHECK(handles_.empty()); }

  // One segment a piece, longer pieces cut to what one handle may cover. On failure what was
  // exposed before stays, for revoke().
  Result<rpcrdma::Segments, Reason> expose_source(fabric::Connection& connection,
                                                  const Rope& bytes);
  Result<rpcrdma::Segments, Reason> expose_sink(fabric::Connection& connection,
                                                MutableBytes memory);

  // The Call is over: cuts the peer off. `invalidated` was revoked by the peer already.
  void revoke(fabric::Connection& connection, std::optional<std::uint32_t> invalidated = {});
  // The Call is given up while the peer may work on it. Returns the handles that the peer may still
  // name; they are to be revoked when it has answered.
  InlineVector<std::uint32_t, 4> abandon(fabric::Connection& connection);
  // The same on a fabric that cannot drop what the peer writes: everything stays as it is, and is
  // the new owner's.
  InlineVector<std::uint32_t, 4> hand_over() { return std::exchange(handles_, {}); }
  // A pending revocation is complete. False when the handle is none of these.
  bool on_revoked(std::uint32_t handle);
  // The connection is gone, and all memory with it is free.
  void on_disconnect() { handles_.clear(); }

  // Whether the peer may still reach something.
  bool held() const { return !handles_.empty(); }

 private:
  void make_room();
  void forget(std::size_t index);

  static constexpr std::size_t kHandles = 4;
  InlineVector<std::uint32_t, kHandles> handles_;
};

// How many segments expose_source() makes of `bytes`.
std::uint32_t segments_of(const Rope& bytes, std::uint32_t max_registration);

}  // namespace stag::rpc::rdma
