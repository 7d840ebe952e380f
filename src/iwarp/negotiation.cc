#include "iwarp/negotiation.h"

#include <algorithm>
#include <bit>

namespace stag::iwarp {
namespace {

// What we serve when we announced `announced`: siw rounds the depth of its queues up to a power of
// two and may then use all of them.
std::uint16_t tolerated(std::uint16_t announced) {
  return static_cast<std::uint16_t>(std::bit_ceil(announced));
}

// RFC 6581 9.1: a peer that does not negotiate a depth leaves our own setting as it is.
std::uint16_t bounded(std::uint16_t own, std::uint16_t peer) {
  return peer == kDepthUnnegotiated ? own : std::min(own, peer);
}

// The Read Requests we announce to serve to an initiator.
std::uint16_t announced_ird(const MpaOptions& options, const Depths& peer) {
  const std::uint16_t ird = bounded(options.ird, peer.ord);
  // RFC 6581 9.1: a zero-length Read as the first message needs one even if no other will come.
  return peer.peer_to_peer && peer.read_rtr ? std::max<std::uint16_t>(ird, 1) : ird;
}

// RFC 6581 9.2: of the indications the initiator offers, those that cost our ULP nothing (a
// zero-length Send would take a receive); if it offers neither, both, for it to choose from.
Depths reply_depths(const MpaOptions& options, const Depths& peer) {
  Depths depths;
  depths.ird = peer.ord == kDepthUnnegotiated ? kDepthUnnegotiated : announced_ird(options, peer);
  depths.ord = peer.ird == kDepthUnnegotiated ? kDepthUnnegotiated : bounded(options.ord, peer.ird);
  depths.peer_to_peer = peer.peer_to_peer;
  const bool neither = !peer.write_rtr && !peer.read_rtr;
  depths.write_rtr = peer.peer_to_peer && (peer.write_rtr || neither);
  depths.read_rtr = peer.peer_to_peer && (peer.read_rtr || neither);
  return depths;
}

}  // namespace

MpaFrame make_request(const MpaOptions& options, Bytes private_data) {
  MpaFrame request;
  request.kind = MpaFrameKind::Request;
  request.crc = options.crc;
  request.revision = 2;
  request.depths = Depths{};
  request.depths->ird = options.ird;
  request.depths->ord = options.ord;
  request.private_data = private_data;
  return request;
}

Result<Negotiated, ReplyRefused> judge_reply(const MpaOptions& options, const MpaFrame& request,
                                             const MpaFrame& reply) {
  if (reply.rejected) return Failure{ReplyRefused{Reason::MpaRejected, std::nullopt}};
  // RFC 6581 section 10: who was asked in the enhanced form must answer in it.
  if (!reply.depths.has_value()) {
    return Failure{ReplyRefused{Reason::MpaNotEnhanced, std::nullopt}};
  }
  const Depths& peer = *reply.depths;
  if (peer.ord != kDepthUnnegotiated && peer.ord > options.ird) {
    // RFC 6581 9.1: Layer 2, Error Type 0, Error Code 6.
    return Failure{
        ReplyRefused{Reason::MpaIrdInsufficient, make_terminate(error::kInsufficientIrd)}};
  }
  Negotiated negotiated;
  negotiated.crc = request.crc || reply.crc;
  negotiated.markers_to_send = reply.markers;
  negotiated.ird = tolerated(options.ird);
  negotiated.ord = bounded(options.ord, peer.ird);
  return negotiated;
}

Result<Negotiated, Reason> judge_request(const MpaOptions& options, const MpaFrame& request) {
  Negotiated negotiated;
  negotiated.crc = request.crc || options.crc;
  negotiated.markers_to_send = request.markers;
  if (!request.depths.has_value()) {
    if (!options.accept_unenhanced) return Failure{Reason::MpaNotEnhanced};
    negotiated.ird = options.unenhanced_ird;
    negotiated.ord = options.unenhanced_ord;
    return negotiated;
  }
  const Depths& peer = *request.depths;
  negotiated.ird = tolerated(announced_ird(options, peer));
  negotiated.ord = bounded(options.ord, peer.ird);
  return negotiated;
}

MpaFrame make_reply(const MpaOptions& options, const MpaFrame& request,
                    const Negotiated& negotiated, Bytes private_data) {
  MpaFrame reply;
  reply.kind = MpaFrameKind::Reply;
  reply.crc = negotiated.crc;
  reply.revision = request.revision;
  // RFC 6581 section 10: an answer has the form of the question. Linux dereferences the IRD and ORD
  // words of an enhanced Reply without looking whether they are there, so they always are.
  if (request.depths.has_value()) reply.depths = reply_depths(options, *request.depths);
  reply.private_data = private_data;
  return reply;
}

MpaFrame make_reject(const MpaOptions& options, const MpaFrame& request, Bytes private_data) {
  MpaFrame reply;
  reply.kind = MpaFrameKind::Reply;
  reply.rejected = true;
  reply.crc = request.crc || options.crc;
  reply.revision = request.revision;
  if (request.depths.has_value()) reply.depths = reply_depths(options, *request.depths);
  reply.private_data = private_data;
  return reply;
}

}  // namespace stag::iwarp
