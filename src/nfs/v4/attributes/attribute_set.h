// A set of attributes by number: bitmap4 of RFC 8881 3.2 for the attributes that this server knows.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>

#include "nfs/proto/nfs4.h"
#include "xdr/decoder.h"
#include "xdr/encoder.h"

namespace stag::nfs::nfs4 {

class AttributeSet {
 public:
  static constexpr std::uint32_t kWords = 3;
  static constexpr std::uint32_t kSize = kWords * 32;

  constexpr AttributeSet() = default;
  constexpr AttributeSet(std::initializer_list<std::uint32_t> numbers) {
    for (const std::uint32_t number : numbers) add(number);
  }
  // Numbers that no AttributeSet can hold are left out; has_unknown() tells of them.
  explicit AttributeSet(const v4::bitmap4& bitmap) {
    for (std::size_t i = 0; i < bitmap.size() && i < kWords; ++i) words_[i] = bitmap[i];
  }
  static bool has_unknown(const v4::bitmap4& bitmap) {
    for (std::size_t i = kWords; i < bitmap.size(); ++i)
      if (bitmap[i] != 0) return true;
    return false;
  }

  constexpr bool has(std::uint32_t number) const {
    return number < kSize && (words_[number / 32] >> (number % 32) & 1) != 0;
  }
  constexpr void add(std::uint32_t number) { words_[number / 32] |= 1u << (number % 32); }
  constexpr bool empty() const { return (words_[0] | words_[1] | words_[2]) == 0; }

  friend constexpr AttributeSet operator&(AttributeSet a, AttributeSet b) {
    for (std::uint32_t i = 0; i < kWords; ++i) a.words_[i] &= b.words_[i];
    return a;
  }
  friend constexpr AttributeSet operator|(AttributeSet a, AttributeSet b) {
    for (std::uint32_t i = 0; i < kWords; ++i) a.words_[i] |= b.words_[i];
    return a;
  }
  friend constexpr AttributeSet operator-(AttributeSet a, AttributeSet b) {
    for (std::uint32_t i = 0; i < kWords; ++i) a.words_[i] &= ~b.words_[i];
    return a;
  }
  friend constexpr bool operator==(AttributeSet, AttributeSet) = default;

  // In rising order, which is the order of the values in a fattr4.
  template <class Each>
  void for_each(Each each) const {
    for (std::uint32_t i = 0; i < kWords; ++i)
      for (std::uint32_t left = words_[i]; left != 0; left &= left - 1)
        each(i * 32 + static_cast<std::uint32_t>(std::countr_zero(left)));
  }

  // A bitmap4; numbers that no AttributeSet can hold are left out.
  bool decode(xdr::Decoder& decoder) {
    std::uint32_t count = 0;
    if (!decoder.length_word(count, xdr::kUnbounded)) return false;
    if (count == 2) return decoder.integers(words_[0], words_[1]);  // as most have
    if (!decoder.holds(count, 4)) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t word = 0;
      if (!decoder.u32(word)) return false;
      if (i < kWords) words_[i] = word;
    }
    return true;
  }
  // Without the words at the end that are zero.
  v4::bitmap4 bitmap() const { return {words_.begin(), words_.begin() + used()}; }
  // Bits of the numbers from 32 * `place` on; `place` is less than kWords.
  constexpr std::uint32_t word(std::uint32_t place) const { return words_[place]; }
  void encode(xdr::Encoder& encoder) const {
    const std::uint32_t count = used();
    encoder.u32(count);
    for (std::uint32_t i = 0; i < count; ++i) encoder.u32(words_[i]);
  }

 private:
  std::uint32_t used() const {
    std::uint32_t count = kWords;
    while (count > 0 && words_[count - 1] == 0) --count;
    return count;
  }

  std::array<std::uint32_t, kWords> words_{};
};

}  // namespace stag::nfs::nfs4
