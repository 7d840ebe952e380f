// Views of bytes and big-endian loads and stores. Every wire format of this project is big-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace stag {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// The bytes of `text`, and the text that `bytes` are; both are views of the argument.
inline Bytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Converts between host byte order and big-endian, in either direction.
template <class Integer>
constexpr Integer big_endian(Integer value) {
  if constexpr (std::endian::native == std::endian::big || sizeof(Integer) == 1) return value;
  if constexpr (sizeof(Integer) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(Integer) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(Integer) == 8) return __builtin_bswap64(value);
}

// Read and write an integer at any alignment. The caller has checked that sizeof(Integer) bytes are
// there.
template <class Integer>
Integer load_be(const std::byte* from) {
  Integer value;
  std::memcpy(&value, from, sizeof value);
  return big_endian(value);
}
template <class Integer>
void store_be(std::byte* to, Integer value) {
  value = big_endian(value);
  std::memcpy(to, &value, sizeof value);
}

// Bytes of padding behind `length` bytes: XDR pads every item with zeros to a multiple of four
// (RFC 4506 section 3).
constexpr std::size_t xdr_pad(std::size_t length) {
  return (4 - length % 4) % 4;
}

}  // namespace stag
