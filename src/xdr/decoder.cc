#include "xdr/decoder.h"

#include <bit>

namespace stag::xdr {

bool Decoder::fail(Error error) {
  if (error_ == Error::None) error_ = error;
  return false;
}

bool Decoder::i32(std::int32_t& to) {
  std::uint32_t word = 0;
  if (!u32(word)) return false;
  to = static_cast<std::int32_t>(word);
  return true;
}

bool Decoder::i64(std::int64_t& to) {
  std::uint64_t word = 0;
  if (!u64(word)) return false;
  to = static_cast<std::int64_t>(word);
  return true;
}

bool Decoder::boolean(bool& to) {
  std::uint32_t word = 0;
  if (!u32(word)) return false;
  if (word > 1) return fail(Error::BadBoolean);
  to = word == 1;
  return true;
}

bool Decoder::f32(float& to) {
  std::uint32_t word = 0;
  if (!u32(word)) return false;
  to = std::bit_cast<float>(word);
  return true;
}

bool Decoder::f64(double& to) {
  std::uint64_t word = 0;
  if (!u64(word)) return false;
  to = std::bit_cast<double>(word);
  return true;
}

bool Decoder::fixed_opaque(MutableBytes to) {
  std::size_t start = 0;
  if (!inline_bytes(static_cast<std::uint32_t>(to.size()), start)) return false;
  if (!to.empty()) std::memcpy(to.data(), payload_.data() + start, to.size());
  return true;
}

// RFC 8166 3.4.5: Positions count the unreduced stream, whose length must stay a 32-bit number.
bool Decoder::pass_reduced(std::uint64_t length) {
  const std::uint64_t padded = length + xdr_pad(length);
  if (padded > kUnbounded || position() + padded + remaining() > kUnbounded)
    return fail(Error::TooLong);
  reduced_ += static_cast<std::uint32_t>(padded);
  return true;
}

bool Decoder::take_reduced(ItemId id, std::uint32_t length, std::optional<Rope>& to) {
  if (items_ == nullptr) return true;
  to = items_->take(id, position(), length);
  if (items_->failed()) return fail(Error::ItemMismatch);
  if (!to) return true;
  if (to->size() != length) return fail(Error::ItemMismatch);
  return pass_reduced(length);
}

bool Decoder::body(ItemId id, std::optional<Decoder>& to) {
  if (items_ == nullptr) return ok();
  const std::optional<Rope> moved = items_->take_body(id, position());
  if (items_->failed()) return fail(Error::ItemMismatch);
  if (!moved) return true;
  if (!pass_reduced(moved->size())) return false;
  // Nothing inside may have moved once more: one item to a chunk (RFC 8166 3.4.4.4).
  to.emplace(moved->flatten(), nullptr, limits_);
  to->depth_ = depth_;
  return true;
}

bool Decoder::opaque(ItemId id, Rope& to, std::uint32_t bound) {
  std::uint32_t length = 0;
  std::optional<Rope> reduced;
  if (!length_word(length, bound) || !take_reduced(id, length, reduced)) return false;
  if (reduced) {
    to = std::move(*reduced);
    return true;
  }
  std::size_t start = 0;
  if (!inline_bytes(length, start)) return false;
  const MutableBytes place = items_ == nullptr ? MutableBytes() : items_->place(length);
  if (!place.empty()) {
    std::memcpy(place.data(), payload_.data() + start, length);
    to = Rope::borrow(place);
  } else if (payload_.owned()) {
    to = Rope(payload_.slice(start, length));
  } else {
    to = Rope::copy_of(payload_.bytes().subspan(start, length));
  }
  return true;
}

bool Decoder::string(ItemId id, std::string& to, std::uint32_t bound) {
  std::uint32_t length = 0;
  std::optional<Rope> reduced;
  if (!length_word(length, bound) || !take_reduced(id, length, reduced)) return false;
  if (reduced) {
    to.resize(length);
    reduced->copy_to(std::as_writable_bytes(std::span(to)));
    return true;
  }
  std::size_t start = 0;
  if (!inline_bytes(length, start)) return false;
  to.assign(text_of(payload_.bytes().subspan(start, length)));
  return true;
}

bool Decoder::holds(std::uint32_t elements, std::uint32_t least) {
  if (least == 0) return elements <= limits_.empty_elements || fail(Error::TooLarge);
  return elements <= remaining() / least || fail(Error::Truncated);
}

bool Decoder::charge(std::size_t bytes) {
  std::size_t most = SIZE_MAX;
  if (__builtin_mul_overflow(limits_.memory_factor, payload_.size(), &most) ||
      __builtin_add_overflow(most, limits_.memory_base, &most))
    most = SIZE_MAX;
  if (bytes > most - memory_) return fail(Error::TooLarge);
  memory_ += bytes;
  return true;
}

Buffer Decoder::rest() {
  Buffer tail = ok() ? payload_.slice(offset_, remaining()) : Buffer();
  offset_ = payload_.size();
  return tail;
}

Result<Ok, Error> Decoder::finish() {
  if (ok() && remaining() > 0) fail(Error::TrailingBytes);
  if (!ok()) return Failure{error_};
  return Ok{};
}

}  // namespace stag::xdr
