// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed pseudo-random function of 64 bits. It
// authenticates short messages, and it hashes keys that peers choose: without the secret key a peer
// can neither forge a value nor find inputs that collide.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace stag {

using SipKey = std::array<std::byte, 16>;

// A random key, drawn by the first call and the same until the process ends. Thread: any.
const SipKey& process_sip_key();

class SipHash {
 public:
  explicit SipHash(const SipKey& key) {
    const std::uint64_t low = word(key.data(), 8);
    const std::uint64_t high = word(key.data() + 8, 8);
    a_ = low ^ 0x736f6d6570736575ull;
    b_ = high ^ 0x646f72616e646f6dull;
    c_ = low ^ 0x6c7967656e657261ull;
    d_ = high ^ 0x7465646279746573ull;
  }

  // The message piece by piece; how it is cut makes no difference.
  void add(Bytes bytes) {
    total_ += bytes.size();
    while (!bytes.empty()) {
      if (used_ == 0 && bytes.size() >= 8) {
        absorb(word(bytes.data(), 8));
        bytes = bytes.subspan(8);
        continue;
      }
      tail_[used_++] = bytes.front();
      bytes = bytes.subspan(1);
      if (used_ < 8) continue;
      absorb(word(tail_.data(), 8));
      used_ = 0;
    }
  }

  // Once, at the end.
  std::uint64_t finish() {
    absorb(word(tail_.data(), used_) | (total_ << 56));
    c_ ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return a_ ^ b_ ^ c_ ^ d_;
  }

 private:
  // Little-endian, as the algorithm is defined.
  static std::uint64_t word(const std::byte* from, std::size_t length) {
    std::uint64_t value = 0;
    std::memcpy(&value, from, length);
    return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
  }
  void absorb(std::uint64_t value) {
    d_ ^= value;
    round();
    round();
    a_ ^= value;
  }
  void round() {
    a_ += b_;
    b_ = std::rotl(b_, 13) ^ a_;
    a_ = std::rotl(a_, 32);
    c_ += d_;
    d_ = std::rotl(d_, 16) ^ c_;
    a_ += d_;
    d_ = std::rotl(d_, 21) ^ a_;
    c_ += b_;
    b_ = std::rotl(b_, 17) ^ c_;
    c_ = std::rotl(c_, 32);
  }

  std::uint64_t a_, b_, c_, d_;
  std::array<std::byte, 8> tail_{};
  std::size_t used_ = 0;
  std::uint64_t total_ = 0;
};

inline std::uint64_t siphash(const SipKey& key, Bytes message) {
  SipHash hash(key);
  hash.add(message);
  return hash.finish();
}

}  // namespace stag
