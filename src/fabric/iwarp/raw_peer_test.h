// For tests of the provider: a service on a loop of its own, and a peer that is nothing but a
// blocking socket in the test's thread, which may send any bytes.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "fabric/iwarp/iwarp_fabric.h"
#include "iwarp/ddp.h"
#include "iwarp/fpdu.h"
#include "iwarp/rdmap.h"
#include "net/loop.h"
#include "net/socket_address.h"

namespace stag::fabric::testing {

// Runs `function` on the loop and returns what it returns.
template <class Function>
auto on_loop(Loop& loop, Function function) {
  std::promise<decltype(function())> result;
  loop.post([&] { result.set_value(function()); });
  return result.get_future().get();
}

// Bytes as "4d 50 41".
inline std::string hex(Bytes bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    if (!text.empty()) text += ' ';
    text += kDigits[std::to_integer<int>(byte) >> 4];
    text += kDigits[std::to_integer<int>(byte) & 15];
  }
  return text;
}
inline std::vector<std::byte> unhex(std::string_view text) {
  std::vector<std::byte> bytes;
  std::string digits;
  for (const char c : text) {
    if (c == ' ' || c == '\n') continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<std::byte>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

// An FPDU around a ULPDU; the CRC field is zero or right.
inline std::vector<std::byte> fpdu(std::vector<std::byte> ulpdu, bool crc = false) {
  std::vector<std::byte> bytes(2);
  store_be(bytes.data(), static_cast<std::uint16_t>(ulpdu.size()));
  bytes.insert(bytes.end(), ulpdu.begin(), ulpdu.end());
  bytes.resize(bytes.size() + iwarp::fpdu_pad(ulpdu.size()));
  iwarp::Crc32c sum;
  sum.add(bytes);
  bytes.resize(bytes.size() + iwarp::kCrcSize);
  if (crc) sum.store(bytes.data() + bytes.size() - iwarp::kCrcSize);
  return bytes;
}
inline std::vector<std::byte> untagged(iwarp::Opcode opcode, std::uint32_t sequence,
                                       Bytes payload) {
  std::vector<std::byte> ulpdu(iwarp::kUntaggedHeaderSize);
  iwarp::UntaggedHeader header;
  header.control.last = true;
  header.control.opcode = static_cast<std::uint8_t>(opcode);
  header.queue = iwarp::queue_of(opcode);
  header.sequence = sequence;
  iwarp::encode_untagged(header, ulpdu.data());
  ulpdu.insert(ulpdu.end(), payload.begin(), payload.end());
  return ulpdu;
}
inline std::vector<std::byte> tagged_write(RemoteMemory to, Bytes payload) {
  std::vector<std::byte> ulpdu(iwarp::kTaggedHeaderSize);
  iwarp::TaggedHeader header;
  header.control.tagged = header.control.last = true;
  header.stag = to.handle;
  header.offset = to.offset;
  iwarp::encode_tagged(header, ulpdu.data());
  ulpdu.insert(ulpdu.end(), payload.begin(), payload.end());
  return ulpdu;
}
inline std::vector<std::byte> read_request(std::uint32_t sequence, RemoteMemory source) {
  std::vector<std::byte> payload(iwarp::kReadRequestSize);
  iwarp::encode_read_request({77, 0, source.length, source.handle, source.offset}, payload.data());
  return untagged(iwarp::Opcode::ReadRequest, sequence, payload);
}

// "MPA ID Req Frame", S, revision 2, four bytes of private data: IRD 128, ORD 16.
inline constexpr std::string_view kRequest =
    "4d504120494420526571204672616d65 10 02 0004 0080 0010";

class RawPeer {
 public:
  explicit RawPeer(UniqueFd fd) : fd_(std::move(fd)) {
    const timeval patience{20, 0};
    setsockopt(fd_.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  // `from`: an address of this machine, or empty.
  static RawPeer connected(const Address& to, const std::string& from = {}) {
    const auto address = *net::numeric_address(to);
    UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!from.empty()) {
      const auto own = *net::numeric_address({from, 0});
      EXPECT_EQ(::bind(fd.fd(), own.data(), own.size()), 0);
    }
    EXPECT_EQ(::connect(fd.fd(), address.data(), address.size()), 0);
    return RawPeer(std::move(fd));
  }
  void send(Bytes bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
  }
  // Up to `size` bytes; fewer when the stream ends.
  std::vector<std::byte> receive(std::size_t size) {
    std::vector<std::byte> bytes(size);
    std::size_t have = 0;
    while (have < size) {
      const ssize_t got = ::recv(fd_.fd(), bytes.data() + have, size - have, 0);
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return bytes;
  }
  // A whole FPDU's ULPDU.
  std::vector<std::byte> receive_ulpdu() {
    const auto length = receive(2);
    if (length.size() < 2) return {};
    const std::size_t size = load_be<std::uint16_t>(length.data());
    auto ulpdu = receive(iwarp::fpdu_size(size) - 2);
    ulpdu.resize(std::min(ulpdu.size(), size));
    return ulpdu;
  }
  int descriptor() const { return fd_.fd(); }
  bool at_end() { return receive(1).empty(); }
  void finish() { ::shutdown(fd_.fd(), SHUT_WR); }
  // Whether bytes are there to be read now.
  bool has_bytes() const {
    char byte;
    return ::recv(fd_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  }
  // Set-up, with nothing of the answer looked at but its size.
  void shake_hands(std::string_view request = kRequest) {
    send(unhex(request));
    ASSERT_EQ(receive(24).size(), 24u);
  }
  // Whether the stream is known to have ended, with nothing left to be read.
  bool found_end() const {
    char byte;
    const ssize_t got = ::recv(fd_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }
  void close() { fd_ = {}; }

 private:
  UniqueFd fd_;
};

}  // namespace stag::fabric::testing
