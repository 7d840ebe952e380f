// Settings of the software iWARP provider; one set for all connections of an IwarpFabric.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/loop.h"
#include "net/tcp_options.h"

namespace stag::fabric {

struct IwarpOptions {
  // Use CRC32C on every connection, whatever ConnectOptions::crc asks for. Otherwise it is used
  // where either side asks.
  bool always_crc = false;
  // Bytes of the largest ULPDU to send (MULPDU), 128 to 64768 (RFC 5044 section 3); a value out of
  // bounds becomes the nearest bound. A peer that reads TCP as a stream takes any; one that wants
  // FPDUs in step with TCP segments (RFC 5044 4.5) wants iwarp::mulpdu() of its MSS.
  std::size_t max_ulpdu = 64768;
  // Bytes of the RDMA Write messages that a long Write is cut into.
  std::size_t write_message = 256 * 1024;
  // Bytes of one Call's RDMA Writes that leave before those of another have their turn.
  std::size_t write_turn = 1 << 20;
  // Bytes one connection moves in each direction in a turn of its loop before others have theirs.
  std::size_t turn_bytes = 1 << 20;
  // Bytes of an abandoned source that is answered from a private copy; a longer one ends the
  // connection. And the same for all of a connection's together.
  std::size_t max_private_copy = 1 << 20;
  std::size_t max_private_copies = 16 << 20;
  // Bytes under one handle.
  std::uint32_t max_registration = 1u << 30;
  // Peers that have connected but not completed their MPA Request; beyond, the oldest of them is
  // dropped.
  std::size_t max_half_open = 4096;
  // Whether to serve peers that speak MPA without RFC 6581.
  bool accept_unenhanced = true;
  // How long the active side waits between the MPA Reply and its first FPDU. Linux siw as responder
  // leaves an FPDU that comes within a few milliseconds unread until more bytes come; 20 ms avoids
  // that. Zero for our own kind.
  Duration first_fpdu_delay{0};
  // The remedy where the wait was too short: an active side that has heard nothing this long after
  // its first FPDU sends a Write of no bytes, which wakes such a peer and is nothing to any other.
  // Repeated kMaxWakeupWrites times, at doubled intervals.
  Duration wakeup_write_after = std::chrono::milliseconds(200);
  net::TcpOptions tcp;
};

}  // namespace stag::fabric
