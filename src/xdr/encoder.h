// xdr: External Data Representation (RFC 4506), the runtime of generated and hand-written codecs.
//
// - Encoder turns values into a Stream: head bytes plus references to big opaques.
// - Decoder turns one contiguous Buffer into values: opaques are slices of that Buffer, no copies.
// - ItemSource supplies a Decoder with the opaques that travelled by chunk.
//
// Codecs are free functions beside their type: void encode(xdr::Encoder&, const T&) and
// [[nodiscard]] bool decode(xdr::Decoder&, T&).
//
// Thread: an Encoder or Decoder belongs to one call on one thread. Errors: the first value that
// breaks a bound of its type sets error(); Streams of a failed Encoder are not ok().
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <limits>
#include <span>
#include <string_view>

#include "xdr/error.h"
#include "xdr/stream.h"

namespace stag::xdr {

inline constexpr std::uint32_t kUnbounded = std::numeric_limits<std::uint32_t>::max();

// Opaques of at least this many bytes are referenced, smaller ones are copied into the head: up to
// here a copy costs less than a piece of its own.
inline constexpr std::size_t kReferencedFrom = 1024;

class Encoder {
 public:
  // The Stream lists the Items of the `watched` fields even when they are small; the ids outlive
  // the Encoder. `head_capacity`: bytes to begin with.
  explicit Encoder(std::span<const ItemId> watched = {}, std::size_t head_capacity = 512);

  [[gnu::always_inline]] void u32(std::uint32_t value) { store_be(reserve(4), value); }
  // Several integers of four or eight bytes in a row, with one check of the capacity.
  template <std::integral... Integers>
  [[gnu::always_inline]] void integers(Integers... values) {
    static_assert(((sizeof(values) == 4 || sizeof(values) == 8) && ...));
    std::byte* at = reserve((sizeof(values) + ...));
    ((store_be(at, static_cast<std::make_unsigned_t<Integers>>(values)), at += sizeof(values)),
     ...);
  }
  template <class... Words>
  [[gnu::always_inline]] void u32s(Words... values) {
    static_assert(((sizeof(values) <= 4) && ...));
    integers(static_cast<std::uint32_t>(values)...);
  }
  void i32(std::int32_t value) { u32(static_cast<std::uint32_t>(value)); }
  [[gnu::always_inline]] void u64(std::uint64_t value) { store_be(reserve(8), value); }
  void i64(std::int64_t value) { u64(static_cast<std::uint64_t>(value)); }
  void boolean(bool value) { u32(value ? 1 : 0); }
  void f32(float value) { u32(std::bit_cast<std::uint32_t>(value)); }
  void f64(double value) { u64(std::bit_cast<std::uint64_t>(value)); }

  // Fixed-length opaque (RFC 4506 4.9) and quadruple (4.8): the bytes and their padding, without a
  // length word. A stream that would become too long for it fails the Encoder.
  void fixed_opaque(Bytes bytes);

  // Variable-length opaque and string (RFC 4506 4.10, 4.11): length, bytes, padding. More than
  // `bound` bytes fail the Encoder. Refers to the pieces of a big Rope (kReferencedFrom).
  void opaque(ItemId id, const Rope& bytes, std::uint32_t bound = kUnbounded);
  // Always copies.
  void opaque(ItemId id, Bytes bytes, std::uint32_t bound = kUnbounded);
  void string(ItemId id, std::string_view text, std::uint32_t bound = kUnbounded) {
    opaque(id, bytes_of(text), bound);
  }

  // The element count of a variable-length array (RFC 4506 4.13). False, and the Encoder has
  // failed, when it is above `bound`.
  [[nodiscard]] bool count(std::size_t elements, std::uint32_t bound);

  // Whether the Stream lists the items of this field.
  bool watches(ItemId id) const;
  // Appends all that `body` has encoded as one data item, behind the count or flag just written
  // (RFC 8166 sections 3.4.4.1, 3.4.4.2). Items inside it move together with it.
  void body(ItemId id, Encoder&& body);
  // Notes that an optional item of this field is absent: it keeps its place among the watched items
  // (RFC 8267 section 6.4.1).
  void absent(ItemId id) { places_ += watches(id) ? 1 : 0; }

  // Appends another complete stream with its items and its failure.
  void append(const Stream& other);

  // A place to go back to. Good while nothing before it is taken back.
  struct Mark {
    std::size_t used = 0;
    std::size_t items = 0;
    std::uint32_t referenced = 0;
    std::uint32_t places = 0;
    Error error = Error::None;
  };
  Mark mark() const { return {used_, items_.size(), referenced_, places_, error_}; }
  // Takes back everything encoded since, a failure included.
  void rewind(const Mark& to);

  // Bytes of the complete stream so far: the position of the next byte.
  std::uint32_t position() const { return static_cast<std::uint32_t>(used_) + referenced_; }
  // Bytes of these that are data and padding of the first `places` watched items.
  std::uint64_t bytes_of_items(std::uint32_t places) const;
  // Overwrites the word at `offset` of the complete stream, which was written and lies in the head.
  void patch_u32(std::uint32_t offset, std::uint32_t value);

  // Sets error() unless it is set already; the Stream will not be ok().
  void fail(Error error) { error_ = error_ == Error::None ? error : error_; }
  Error error() const { return error_; }
  bool ok() const { return error_ == Error::None; }

  // The Stream of all that was written.
  Stream finish() && {
    const std::uint32_t size = position();
    return Stream(std::move(head_).freeze(used_), size, std::move(items_), places_, ok());
  }

 private:
  // `length` bytes at the end of the head. Inlined always: otherwise GCC calls it, and spends more
  // time on the calls than on the words.
  [[gnu::always_inline]] std::byte* reserve(std::size_t length) {
    if (head_.capacity() - used_ < length) grow(length);
    std::byte* at = head_.data() + used_;
    used_ += length;
    return at;
  }
  void grow(std::size_t length);
  void pad_after(std::size_t length);
  // The complete stream stays below 2^32 bytes: nothing longer can be described by a Position or a
  // record mark.
  [[gnu::always_inline]] bool fits(std::size_t length) const {
    return length <= kUnbounded && length + position() <= kUnbounded - 8;
  }
  [[gnu::always_inline]] bool length_word(std::size_t length, std::uint32_t bound) {
    const bool good = length <= bound && fits(length);
    if (good)
      u32(static_cast<std::uint32_t>(length));
    else
      fail(Error::TooLong);
    return good;
  }
  void note(ItemId id, std::size_t length, bool in_head, Rope bytes);

  std::span<const ItemId> watched_;
  Block head_;
  std::size_t used_ = 0;
  std::uint32_t referenced_ = 0;
  std::uint32_t places_ = 0;
  Stream::Items items_;
  Error error_ = Error::None;
};

// The XDR type void.
struct Void {
  bool operator==(const Void&) const = default;
};
inline void encode(Encoder&, const Void&) {}

// Encodes one value as a whole stream.
template <class T>
Stream encode(const T& value, std::span<const ItemId> watched = {}) {
  Encoder encoder(watched);
  encode(encoder, value);
  return std::move(encoder).finish();
}

}  // namespace stag::xdr
