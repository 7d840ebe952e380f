// Codecs of arrays, optionals and lists (RFC 4506 4.12, 4.13, 4.19), over the codec of one element.
//
// In encode_*, one(Encoder&, const T&) writes an element. In decode_*, one(Decoder&, T&) reads an
// element and returns false on failure, as decode_* itself does. A list is written and read in a
// loop, never by recursion: it takes heap in proportion to the bytes of the stream, and no stack.
//
// The functions with an ItemId are for fields that may become data items of their own (RFC 8166
// sections 3.4.4.1, 3.4.4.2): count or flag stay where they are, all bytes behind them are the
// item.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <vector>

#include "xdr/decoder.h"
#include "xdr/types.h"

namespace stag::xdr {

template <class T, std::size_t N, class One>
void encode_array(Encoder& encoder, const std::array<T, N>& from, One one) {
  for (const T& element : from) one(encoder, element);
}
template <class T, std::size_t N, class One>
[[nodiscard]] bool decode_array(Decoder& decoder, std::array<T, N>& to, One one) {
  for (T& element : to)
    if (!one(decoder, element)) return false;
  return true;
}

template <class T, class One>
void encode_vector(Encoder& encoder, const std::vector<T>& from, std::uint32_t bound, One one) {
  if (!encoder.count(from.size(), bound)) return;
  for (const T& element : from) one(encoder, element);
}

// Reads one element and appends it. But for kFewElements the vector grows with the elements that
// were decoded, never by a count that the peer only claims.
template <class T, class One>
[[nodiscard]] bool decode_element(Decoder& decoder, std::vector<T>& to, One one) {
  if (!decoder.charge(sizeof(T))) return false;
  if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> has no bool& to give.
    bool element = false;
    if (!one(decoder, element)) return false;
    to.push_back(element);
    return true;
  } else {
    return one(decoder, to.emplace_back());
  }
}

// There is room for so many before the first is decoded: most vectors have no more.
constexpr std::uint32_t kFewElements = 4;

// `least`: the fewest bytes that one element takes in the stream.
template <class T, class One>
[[nodiscard]] bool decode_vector(Decoder& decoder, std::vector<T>& to, std::uint32_t bound,
                                 std::uint32_t least, One one) {
  to.clear();
  std::uint32_t elements = 0;
  if (!decoder.count(elements, bound, least)) return false;
  to.reserve(std::min(elements, kFewElements));
  for (std::uint32_t i = 0; i < elements; ++i)
    if (!decode_element(decoder, to, one)) return false;
  return true;
}

template <class Optional, class One>
void encode_optional(Encoder& encoder, const Optional& from, One one) {
  encoder.boolean(from.has_value());
  if (from.has_value()) one(encoder, *from);
}
template <class T, class One>
[[nodiscard]] bool decode_optional(Decoder& decoder, std::optional<T>& to, One one) {
  to.reset();
  bool present = false;
  if (!decoder.boolean(present)) return false;
  return !present || one(decoder, to.emplace());
}
template <class T, class One>
[[nodiscard]] bool decode_optional(Decoder& decoder, Box<T>& to, One one) {
  to.reset();
  bool present = false;
  if (!decoder.boolean(present)) return false;
  return !present || (decoder.charge(sizeof(T)) && one(decoder, to.emplace()));
}

// The list `struct entry { ...; entry *next; }`: true before each element, false after the last
// one.
template <class T, class One>
void encode_list(Encoder& encoder, const std::vector<T>& from, One one) {
  for (const T& element : from) {
    encoder.boolean(true);
    one(encoder, element);
  }
  encoder.boolean(false);
}
template <class T, class One>
[[nodiscard]] bool decode_list(Decoder& decoder, std::vector<T>& to, One one) {
  to.clear();
  bool more = false;
  while (decoder.boolean(more)) {
    if (!more) return true;
    if (!decode_element(decoder, to, one)) return false;
  }
  return false;
}

// Writes the bytes behind a count or flag by write(Encoder&), as an item of field `id`.
template <class Write>
void encode_body(Encoder& encoder, ItemId id, Write write) {
  if (!encoder.watches(id)) return write(encoder);
  Encoder body;
  write(body);
  encoder.body(id, std::move(body));
}
// Reads the bytes behind a count or flag by read(Decoder&), which returns false on failure.
template <class Read>
[[nodiscard]] bool decode_body(Decoder& decoder, ItemId id, Read read) {
  std::optional<Decoder> body;
  if (!decoder.body(id, body)) return false;
  if (!body) return read(decoder);
  return (read(*body) && body->finish().ok()) || decoder.fail(body->error());
}

template <class T, class One>
void encode_vector(Encoder& encoder, ItemId id, const std::vector<T>& from, std::uint32_t bound,
                   One one) {
  if (!encoder.count(from.size(), bound)) return;
  encode_body(encoder, id, [&](Encoder& body) {
    for (const T& element : from) one(body, element);
  });
}
template <class T, class One>
[[nodiscard]] bool decode_vector(Decoder& decoder, ItemId id, std::vector<T>& to,
                                 std::uint32_t bound, std::uint32_t least, One one) {
  to.clear();
  std::uint32_t elements = 0;
  if (!decoder.length_word(elements, bound)) return false;
  return decode_body(decoder, id, [&](Decoder& body) {
    if (!body.holds(elements, least)) return false;
    for (std::uint32_t i = 0; i < elements; ++i)
      if (!decode_element(body, to, one)) return false;
    return true;
  });
}

template <class Optional, class One>
void encode_optional(Encoder& encoder, ItemId id, const Optional& from, One one) {
  encoder.boolean(from.has_value());
  if (!from.has_value()) return encoder.absent(id);
  encode_body(encoder, id, [&](Encoder& body) { one(body, *from); });
}
// `Optional`: std::optional or Box.
template <class Optional, class One>
[[nodiscard]] bool decode_optional(Decoder& decoder, ItemId id, Optional& to, One one) {
  to.reset();
  bool present = false;
  if (!decoder.boolean(present)) return false;
  if (!present) return decoder.absent(id), true;
  return decode_body(decoder, id, [&](Decoder& body) {
    return body.charge(sizeof(*to)) && one(body, to.emplace());
  });
}

// RFC 4506 section 4.19 makes a list an optional, whose flag is that of the first element.
template <class T, class One>
void encode_list(Encoder& encoder, ItemId id, const std::vector<T>& from, One one) {
  encoder.boolean(!from.empty());
  if (from.empty()) return encoder.absent(id);
  encode_body(encoder, id, [&](Encoder& body) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      one(body, from[i]);
      body.boolean(i + 1 < from.size());
    }
  });
}
template <class T, class One>
[[nodiscard]] bool decode_list(Decoder& decoder, ItemId id, std::vector<T>& to, One one) {
  to.clear();
  bool more = false;
  if (!decoder.boolean(more)) return false;
  if (!more) return decoder.absent(id), true;
  return decode_body(decoder, id, [&](Decoder& body) {
    while (more)
      if (!decode_element(body, to, one) || !body.boolean(more)) return false;
    return true;
  });
}

template <std::uint32_t N>
void encode_bounded(Encoder& encoder, const BoundedOpaque<N>& from) {
  encoder.opaque(kNoItem, from.bytes(), N);
}
template <std::uint32_t N>
[[nodiscard]] bool decode_bounded(Decoder& decoder, BoundedOpaque<N>& to) {
  Bytes bytes;
  return decoder.inline_opaque(bytes, N) && to.assign(bytes);
}

}  // namespace stag::xdr
