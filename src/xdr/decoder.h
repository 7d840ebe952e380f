// Decoder: reads XDR values (RFC 4506) from one contiguous Buffer. encoder.h describes the module.
//
// The bytes come from a peer: every read is bounded, the first failure makes all later reads fail,
// and the memory and stack of a value are limited in proportion to the bytes received. Padding is
// not checked: RFC 4506 section 3 asks the writer for zeros, and other implementations do not check
// either.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "xdr/encoder.h"

namespace stag::xdr {

// Supplies the data items that were reduced (RFC 8166 section 3.4.4) to a Decoder.
class ItemSource {
 public:
  // Called for every variable-length opaque and string except a BoundedOpaque, in stream order;
  // `id` is kNoItem for a field without a name. Returns the `length` bytes of the item at
  // `position` if it was moved by chunk: the inline stream then has neither its data nor its
  // padding, and the position advances by both all the same. nullopt: the data is inline.
  virtual std::optional<Rope> take(ItemId id, std::uint32_t position, std::uint32_t length) = 0;
  // The same for an array or optional with a name, after its count or flag (RFC 8166
  // sections 3.4.4.1, 3.4.4.2). Returns all bytes that were moved; only the chunk knows their
  // number.
  virtual std::optional<Rope> take_body(ItemId, std::uint32_t) { return std::nullopt; }
  // Called when an optional item is absent (RFC 8267 section 6.4.1).
  virtual void absent(ItemId) {}
  // Called after take() returned nullopt: memory of `length` bytes to copy the data to; empty: the
  // Decoder chooses.
  virtual MutableBytes place(std::uint32_t) { return {}; }
  // True once a chunk cannot belong to this stream; the Decoder then fails with ItemMismatch.
  virtual bool failed() const { return false; }

 protected:
  ~ItemSource() = default;
};

// Bounds on what decoding may cost.
struct Limits {
  // How deep recursive types may nest.
  std::uint32_t depth = 64;
  // Bytes of memory for decoded arrays, lists and boxes: base + factor * bytes of the payload.
  std::size_t memory_base = 256 << 10;
  std::size_t memory_factor = 32;
  // How many elements of no encoded size an array may have.
  std::uint32_t empty_elements = 1024;
};

class Decoder {
 public:
  // `payload` is the inline stream; decoded opaques are slices of it, or copies if it is borrowed.
  // `items` outlives the Decoder; null: every item is inline.
  explicit Decoder(Buffer payload, ItemSource* items = nullptr, const Limits& limits = {})
      : payload_(std::move(payload)), items_(items), limits_(limits) {}

  // Each of these reads one value and returns true, or returns false with error() set.
  [[nodiscard, gnu::always_inline]] bool u32(std::uint32_t& to) {
    if (!need(4)) return false;
    to = load_be<std::uint32_t>(payload_.data() + offset_);
    offset_ += 4;
    return true;
  }
  // Several integers of four or eight bytes in a row, or none of them.
  template <std::integral... Integers>
  [[nodiscard, gnu::always_inline]] bool integers(Integers&... to) {
    static_assert(((sizeof(to) == 4 || sizeof(to) == 8) && ...));
    if (!need((sizeof(to) + ...))) return false;
    const std::byte* at = payload_.data() + offset_;
    ((to = static_cast<Integers>(load_be<std::make_unsigned_t<Integers>>(at)), at += sizeof(to)),
     ...);
    offset_ += (sizeof(to) + ...);
    return true;
  }
  [[nodiscard, gnu::always_inline]] bool u64(std::uint64_t& to) {
    if (!need(8)) return false;
    to = load_be<std::uint64_t>(payload_.data() + offset_);
    offset_ += 8;
    return true;
  }
  [[nodiscard]] bool i32(std::int32_t& to);
  [[nodiscard]] bool i64(std::int64_t& to);
  [[nodiscard]] bool boolean(bool& to);
  [[nodiscard]] bool f32(float& to);
  [[nodiscard]] bool f64(double& to);
  [[nodiscard]] bool fixed_opaque(MutableBytes to);
  // `to` owns its bytes, or refers to memory of ItemSource::place(). More than `bound` bytes fail
  // with TooLong.
  [[nodiscard]] bool opaque(ItemId id, Rope& to, std::uint32_t bound = kUnbounded);
  [[nodiscard]] bool string(ItemId id, std::string& to, std::uint32_t bound = kUnbounded);
  // An opaque that is never reduced: `to` is a view into the payload.
  [[nodiscard]] bool inline_opaque(Bytes& to, std::uint32_t bound) {
    std::uint32_t length = 0;
    return length_word(length, bound) && inline_bytes(to, length);
  }
  // The same without its length word, which was read before.
  [[nodiscard]] bool inline_bytes(Bytes& to, std::uint32_t length) {
    std::size_t start = 0;
    if (!inline_bytes(length, start)) return false;
    to = payload_.bytes().subspan(start, length);
    return true;
  }

  // Reads the element count of an array whose elements take at least `least` bytes each. Fails when
  // it is more than `bound`, or than the rest of the stream can hold.
  [[nodiscard]] bool count(std::uint32_t& to, std::uint32_t bound, std::uint32_t least) {
    return length_word(to, bound) && holds(to, least);
  }
  // The two halves of count(), for arrays whose elements may have been moved in between.
  [[nodiscard]] bool length_word(std::uint32_t& to, std::uint32_t bound) {
    if (!u32(to)) return false;
    return to <= bound || fail(Error::TooLong);
  }
  [[nodiscard]] bool holds(std::uint32_t elements, std::uint32_t least);
  // Called after the count or flag of a field with a name: makes a Decoder of the bytes that were
  // moved by chunk, which is read to its end; leaves `to` empty when the body is inline. False on
  // failure.
  [[nodiscard]] bool body(ItemId id, std::optional<Decoder>& to);
  // Tells the ItemSource that an optional item is absent.
  void absent(ItemId id) {
    if (items_ != nullptr) items_->absent(id);
  }
  // Counts `bytes` of memory that a value is about to take; fails with TooLarge beyond Limits.
  [[nodiscard]] bool charge(std::size_t bytes);

  // Recursive codecs call enter() before and leave() after each level. enter() fails with TooDeep.
  [[nodiscard]] bool enter() {
    if (depth_ == limits_.depth) return fail(Error::TooDeep);
    return ++depth_, true;
  }
  void leave() { --depth_; }

  // The position in the complete stream: reduced data and its padding count.
  std::uint32_t position() const { return static_cast<std::uint32_t>(offset_) + reduced_; }
  // Inline bytes not yet read: how many, and a view into the payload.
  std::size_t remaining() const { return payload_.size() - offset_; }
  Bytes ahead() const { return payload_.bytes().subspan(offset_); }
  // Takes the inline bytes not yet read; none remain.
  Buffer rest();

  // Sets error() unless it is set already. Always returns false.
  bool fail(Error error);
  bool ok() const { return error_ == Error::None; }
  Error error() const { return error_; }
  // Ok when nothing has failed and no byte remains; else the Error (TrailingBytes).
  Result<Ok, Error> finish();

 private:
  [[gnu::always_inline]] bool need(std::size_t length) {
    if (error_ != Error::None) return false;
    return length <= payload_.size() - offset_ || fail(Error::Truncated);
  }
  // Passes `length` inline bytes and their padding; `start` is where they stand in the payload.
  bool inline_bytes(std::uint32_t length, std::size_t& start) {
    const std::size_t padded = std::size_t{length} + xdr_pad(length);
    if (!need(padded)) return false;
    start = offset_;
    offset_ += padded;
    return true;
  }
  bool pass_reduced(std::uint64_t length);
  bool take_reduced(ItemId id, std::uint32_t length, std::optional<Rope>& to);

  Buffer payload_;
  ItemSource* items_;
  Limits limits_;
  std::size_t offset_ = 0;
  std::uint32_t reduced_ = 0;
  std::uint32_t depth_ = 0;
  std::size_t memory_ = 0;  // bytes that values have taken
  Error error_ = Error::None;
};

inline bool decode(Decoder& decoder, Void&) {
  return decoder.ok();
}

// Decodes one value that is the whole of `payload`.
template <class T>
Result<T, Error> decode(Buffer payload, ItemSource* items = nullptr) {
  Decoder decoder(std::move(payload), items);
  T value{};
  if (!decode(decoder, value)) return Failure{decoder.error()};
  Result<Ok, Error> finished = decoder.finish();
  if (!finished) return Failure{finished.error()};
  return value;
}

}  // namespace stag::xdr
