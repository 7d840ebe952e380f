// xdr: External Data Representation (RFC 4506), the runtime that generated and hand-written codecs
// call.
//
//   Encoder    values in, a Stream out: head bytes plus references to big opaques
//   Decoder    one contiguous Buffer in, values out: opaques are slices of that Buffer, not copies
//   ItemSource where a Decoder finds opaques that travelled by chunk
//
// Codecs are free functions beside their type: void encode(xdr::Encoder&, const T&) and
// [[nodiscard]] bool decode(xdr::Decoder&, T&). No thread, no clock, no state beyond the objects;
// one Encoder or Decoder belongs to one call.
#pragma once

#include <array>
#include <bit>
#include <limits>
#include <span>
#include <string_view>

#include "xdr/error.h"
#include "xdr/stream.h"

namespace stag::xdr {

inline constexpr std::uint32_t kUnbounded = std::numeric_limits<std::uint32_t>::max();

// Opaques of at least this many bytes are referenced, smaller ones are copied into the head: up to
// here a copy costs less than a piece of its own on the way to the wire.
inline constexpr std::size_t kReferencedFrom = 8 * 1024;

class Encoder {
 public:
  // `watched` names the fields whose Items the Stream lists even when they are small; the ids must
  // outlive the Encoder.
  explicit Encoder(std::span<const ItemId> watched = {}, std::size_t head_capacity = 512);

  [[gnu::always_inline]] void u32(std::uint32_t value) { store_be(room(4), value); }
  // Several words in a row; room is looked for once.
  template <class... Words>
  [[gnu::always_inline]] void u32s(Words... values) {
    static_assert(((sizeof(values) <= 4) && ...));
    std::byte* at = room(4 * sizeof...(values));
    ((store_be(at, static_cast<std::uint32_t>(values)), at += 4), ...);
  }
  void i32(std::int32_t value) { u32(static_cast<std::uint32_t>(value)); }
  [[gnu::always_inline]] void u64(std::uint64_t value) { store_be(room(8), value); }
  void i64(std::int64_t value) { u64(static_cast<std::uint64_t>(value)); }
  void boolean(bool value) { u32(value ? 1 : 0); }
  void f32(float value) { u32(std::bit_cast<std::uint32_t>(value)); }
  void f64(double value) { u64(std::bit_cast<std::uint64_t>(value)); }

  // RFC 4506 4.9 and 4.8 (quadruple): the bytes and their padding, no length.
  void fixed_opaque(Bytes bytes);

  // RFC 4506 4.10, 4.11: length, bytes, padding. Longer than `bound` fails the Encoder.
  // References the pieces of a big Rope.
  void opaque(ItemId id, const Rope& bytes, std::uint32_t bound = kUnbounded);
  // Always copies.
  void opaque(ItemId id, Bytes bytes, std::uint32_t bound = kUnbounded);
  void string(ItemId id, std::string_view text, std::uint32_t bound = kUnbounded) {
    opaque(id, bytes_of(text), bound);
  }

  // The element count of a variable-length array (RFC 4506 4.13). False and failed when above
  // `bound`.
  [[nodiscard]] bool count(std::size_t elements, std::uint32_t bound);

  // Whether the Stream lists the items of this field.
  bool watches(ItemId id) const;
  // RFC 8166 3.4.4.1, 3.4.4.2: all that `body` has encoded, which follows the count or flag just
  // written, as one data item. What moves inside it moves with it.
  void body(ItemId id, Encoder&& body);
  // An item of this field could stand here and does not: it keeps its place among the watched ones
  // (RFC 8267 6.4.1).
  void absent(ItemId id) { places_ += watches(id) ? 1 : 0; }

  // Another complete stream at this place, items and failure included.
  void append(const Stream& other);

  // Size of the complete stream so far: where the next byte will stand.
  std::uint32_t position() const { return static_cast<std::uint32_t>(used_) + referenced_; }
  // Overwrites a word already written at `offset` of the complete stream; it must lie in the head.
  void patch_u32(std::uint32_t offset, std::uint32_t value);

  // Sticky: the first value that broke a bound. The Stream will not be ok().
  void fail(Error error) { error_ = error_ == Error::None ? error : error_; }
  Error error() const { return error_; }
  bool ok() const { return error_ == Error::None; }

  Stream finish() &&;

 private:
  // GCC finds it too large to be worth it, and then spends more on the calls than on the words.
  [[gnu::always_inline]] std::byte* room(std::size_t length) {
    if (head_.capacity() - used_ < length) grow(length);
    std::byte* at = head_.data() + used_;
    used_ += length;
    return at;
  }
  void grow(std::size_t length);
  void pad_after(std::size_t length);
  bool length_word(std::size_t length, std::uint32_t bound);
  void note(ItemId id, std::size_t length, bool in_head, Rope bytes);

  std::span<const ItemId> watched_;
  Block head_;
  std::size_t used_ = 0;
  std::uint32_t referenced_ = 0;
  std::uint32_t places_ = 0;
  Stream::Items items_;
  Error error_ = Error::None;
};

// Codecs of the types that the language has and C++ does not.
struct Void {
  bool operator==(const Void&) const = default;
};
inline void encode(Encoder&, const Void&) {}

// One value as a whole stream.
template <class T>
Stream encode(const T& value, std::span<const ItemId> watched = {}) {
  Encoder encoder(watched);
  encode(encoder, value);
  return std::move(encoder).finish();
}

}  // namespace stag::xdr
