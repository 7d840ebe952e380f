// Options of the software iWARP provider; one set for all connections of an IwarpFabric. Sizes are
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/loop.h"
#include "net/tcp_options.h"

namespace stag::fabric {

struct IwarpOptions {
  // Use CRC32C (RFC 5044 section 4.4) on every connection, whatever
  // rpc::rdma::TransportOptions::crc says. If false, a connection uses it when either side asks for
  // it.
  bool always_crc = false;
  // The largest ULPDU to send (MULPDU), 128 to 64768 (RFC 5044 section 3); a value out of bounds
  // becomes the nearest bound. A peer that reads TCP as a stream takes any size. A peer that needs
  // FPDUs aligned to TCP segments takes the MULPDU of its segment size (EMSS, RFC 5044 section
  // 4.5): without markers EMSS - (6 + EMSS mod 4).
  std::size_t max_ulpdu = 64768;
  // A longer Write is cut into RDMA Write messages of this size.
  std::size_t write_message = 256 * 1024;
  // RDMA Writes of one Call that leave before those of another Call get their turn.
  std::size_t write_turn = 1 << 20;
  // What one connection moves in each direction in a turn of its loop before other connections get
  // theirs.
  std::size_t turn_bytes = 1 << 20;
  // An abandoned RDMA Read source up to this size is answered from a private copy; a longer one,
  // if not all of it was read, ends the connection. The second limit is for all private copies.
  std::size_t max_private_copy = 1 << 20;
  std::size_t max_private_copies = 16 << 20;
  // The largest registration under one handle.
  std::uint32_t max_registration = 1u << 30;
  // Connections whose MPA Request is not complete; beyond that number, or where one more comes than
  // rpc::rdma::ServerOptions::max_connections, the provider closes the oldest of them.
  std::size_t max_half_open = 4096;
  // Whether to accept peers that speak MPA without the enhanced set-up of RFC 6581.
  bool accept_unenhanced = true;
  // How long the active side waits between the MPA Reply and its first FPDU. Linux siw as responder
  // leaves an FPDU that comes within a few milliseconds unread until more bytes come; 20 ms avoids
  // that. A peer of this project needs no wait.
  Duration first_fpdu_delay{0};
  // When that wait was too short: an active side that has received nothing this long after its
  // first FPDU sends an RDMA Write of no bytes, which wakes such a peer and has no effect on any
  // other. It is written four times at most, at doubled intervals.
  Duration wakeup_write_after = std::chrono::milliseconds(200);
  net::TcpOptions tcp;
};

}  // namespace stag::fabric
