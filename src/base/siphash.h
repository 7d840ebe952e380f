// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed pseudo-random function of 64 bits. It
// authenticates short messages, and it hashes keys that peers choose: without the secret key a peer
// can neither forge a value nor find inputs that collide.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/bytes.h"

namespace stag {

using SipKey = std::array<std::byte, 16>;

// A random key, drawn by the first call and the same until the process ends. Thread: any.
const SipKey& process_sip_key();

class SipHash {
 public:
  explicit SipHash(const SipKey& key) {
    const std::uint64_t low = word(key.data());
    const std::uint64_t high = word(key.data() + 8);
    a_ = low ^ 0x736f6d6570736575ull;
    b_ = high ^ 0x646f72616e646f6dull;
    c_ = low ^ 0x6c7967656e657261ull;
    d_ = high ^ 0x7465646279746573ull;
  }

  // The message piece by piece; how it is cut makes no difference.
  void add(Bytes bytes) {
    total_ += bytes.size();
    if (used_ != 0 && !bytes.empty()) bytes = bytes.subspan(take(bytes));
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) absorb(word(bytes.data()));
    if (!bytes.empty()) take(bytes);
  }

  // Once, at the end.
  std::uint64_t finish() {
    absorb(tail_ | (total_ << 56));
    c_ ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return a_ ^ b_ ^ c_ ^ d_;
  }

 private:
  // Little-endian, as the algorithm is defined; zeros stand for the bytes that are not there.
  static std::uint64_t word(const std::byte* from, std::size_t size = 8) {
    std::uint64_t value = 0;
    std::memcpy(&value, from, size);
    return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
  }
  // Into the word that is not whole yet, as many bytes as it has room for.
  std::size_t take(Bytes bytes) {
    const std::size_t count = std::min(8 - used_, bytes.size());
    tail_ |= word(bytes.data(), count) << 8 * used_;
    used_ += count;
    if (used_ == 8) {
      absorb(std::exchange(tail_, 0));
      used_ = 0;
    }
    return count;
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
  std::uint64_t tail_ = 0;  // bytes that are no whole word yet
  std::size_t used_ = 0;    // of tail_
  std::uint64_t total_ = 0;
};

inline std::uint64_t siphash(const SipKey& key, Bytes message) {
  SipHash hash(key);
  hash.add(message);
  return hash.finish();
}

}  // namespace stag
