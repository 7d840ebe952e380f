// RDMA operations as the frames that RoCEv2 would have for them: Ethernet, IP, UDP to port 4791 and
// InfiniBand's transport headers. What RDMA hardware sends no program on the machine sees; made up
// from the operations, it is what protocol analysers know how to read. Numbers of queue pairs and
// packets are made up, too, and the checksums of UDP and InfiniBand are 0.
//
// Pure. InfiniBand Architecture Specification volume 1, chapter 9 (transport headers), 12.6 and
// 12.7 (communication management), annexes A11 (RDMA-CM) and A17 (RoCEv2).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/network.h"
#include "fabric/fabric.h"

namespace stag::fabric::capture {

// Where the frames go, each at once.
class FrameSink {
 public:
  // `frame` is valid during the call.
  virtual void take(Bytes frame) = 0;

 protected:
  ~FrameSink() = default;
};

// One end of a connection, whose frames go to the other.
struct End {
  IpAddress address;
  std::uint16_t port = 0;  // of RDMA-CM
  std::uint32_t queue_pair = 0;
  std::uint32_t next_packet = 0;  // its sequence number
};

// The frames of one connection.
class Frames {
 public:
  // Payload of a frame; longer messages have several.
  static constexpr std::size_t kMtu = 4096;

  // `number` distinguishes connections. Both addresses are IP addresses; others are shown as ::.
  Frames(const Address& near, const Address& far, std::uint32_t number, FrameSink& sink);

  enum class From : std::uint8_t { Near, Far };
  // The three messages by which RDMA-CM sets the connection up, asked for by `from`.
  void connect(From from, Bytes asked, Bytes answered);
  // A Send, or a Send With Invalidate of `handle`.
  void send(From from, Bytes message, std::optional<std::uint32_t> handle);
  void write(From from, Bytes data, const RemoteMemory& sink);
  // An RDMA Read of `length` bytes; what answer() needs.
  std::uint32_t read(From from, const RemoteMemory& source, std::uint32_t length);
  // The peer's answer to a Read that `from` has asked for.
  void answer(From from, std::uint32_t asked, Bytes data);

 private:
  End& end(From from) { return from == From::Near ? near_ : far_; }
  End& other(From from) { return from == From::Near ? far_ : near_; }
  struct Headers {
    std::uint8_t opcode = 0;
    std::uint32_t packet = 0;
    std::uint32_t queue_pair = 0;
  };
  // `extended`: what stands between the transport header and the payload.
  void put(const End& from, const End& to, const Headers& headers, Bytes extended, Bytes payload);
  void put_management(From from, std::uint16_t attribute, Bytes body);
  std::vector<std::byte> request(From from, Bytes private_data);
  std::vector<std::byte> reply(From from, Bytes private_data);

  End near_, far_;
  std::uint32_t number_;
  FrameSink& sink_;
  std::vector<std::byte> frame_;  // room that is used again
};

}  // namespace stag::fabric::capture
