// C++ shapes of XDR types that the standard library does not have.
//
//   opaque x[N]                  std::array<std::byte, N>
//   opaque x<N>, N <= 256        BoundedOpaque<N>: inside the value, no heap
//   opaque x<>, x<N>             Opaque: a Rope, referenced rather than copied
//   string x<>                   std::string
//   T x[N], T x<>                std::array<T, N>, std::vector<T>
//   T *x                         std::optional<T>; Box<T> where T contains itself
//   the list idiom (entry *next as last member)    std::vector<entry>, the member left out
//
// A union becomes a struct: its discriminant under its own name, and a function for each arm that
// is not void.
//   READ3res res;  res.status = NFS3_OK;  res.resok().count = 5;
// The caller sets the discriminant; writing through resok() makes that arm the one that is held;
// reading it from a const union CHECKs that it is (a decoded union holds the arm its discriminant
// selects, so test that first). Encoding sends the arm the discriminant selects, or its default
// value when another is held: an error reply need not touch its arm. Equality compares what is
// held. A discriminant without an arm fails the Encoder.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "base/rope.h"

namespace stag::xdr {

using Opaque = Rope;
// RFC 4506 4.8: IEEE quadruple precision as its 16 bytes; C++ has no portable type for it.
using Quadruple = std::array<std::byte, 16>;

inline constexpr std::uint32_t kBoundedOpaqueMax = 256;

template <std::uint32_t N>
requires(N <= kBoundedOpaqueMax) class BoundedOpaque {
 public:
  static constexpr std::uint32_t kBound = N;

  BoundedOpaque() {}  // like InlineVector's
  // `bytes` must not be longer than N; use assign() for lengths that are not known to fit.
  explicit BoundedOpaque(Bytes bytes) { STAG_CHECK(assign(bytes)); }

  // False, and nothing changed, when `bytes` is longer than N.
  [[nodiscard]] bool assign(Bytes bytes) {
    if (bytes.size() > N) return false;
    std::copy(bytes.begin(), bytes.end(), data_.begin());
    size_ = static_cast<std::uint16_t>(bytes.size());
    return true;
  }

  Bytes bytes() const { return Bytes(data_).first(size_); }
  const std::byte* data() const { return data_.data(); }
  std::uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  friend bool operator==(const BoundedOpaque& a, const BoundedOpaque& b) {
    return std::ranges::equal(a.bytes(), b.bytes());
  }
  friend auto operator<=>(const BoundedOpaque& a, const BoundedOpaque& b) {
    return std::lexicographical_compare_three_way(a.data_.begin(), a.data_.begin() + a.size_,
                                                  b.data_.begin(), b.data_.begin() + b.size_);
  }

 private:
  std::array<std::byte, (N > 0 ? N : 1)> data_;
  std::uint16_t size_ = 0;
};

// For unordered containers keyed by file handles and the like; not for keys a peer chooses to
// collide.
struct OpaqueHash {
  template <std::uint32_t N>
  std::size_t operator()(const BoundedOpaque<N>& key) const {
    return std::hash<std::string_view>{}(text_of(key.bytes()));
  }
};

// An optional value on the heap: copies deeply, compares by value. For types that contain
// themselves.
template <class T>
class Box {
 public:
  Box() = default;
  Box(std::nullopt_t) {}
  Box(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Box(const Box& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Box(Box&&) noexcept = default;
  Box& operator=(Box other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }

  T& emplace() {
    value_ = std::make_unique<T>();
    return *value_;
  }
  void reset() { value_.reset(); }
  bool has_value() const { return value_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  // There must be a value.
  T& operator*() { return STAG_CHECK(has_value()), *value_; }
  const T& operator*() const { return STAG_CHECK(has_value()), *value_; }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }

  friend bool operator==(const Box& a, const Box& b) {
    return a.has_value() == b.has_value() && (!a.has_value() || *a == *b);
  }

 private:
  std::unique_ptr<T> value_;
};

// Arm number I of a generated union for encoding: what is held, or a default value when another arm
// is.
template <std::size_t I, class... Arms>
const std::variant_alternative_t<I, std::variant<Arms...>>& arm_or_default(
    const std::variant<Arms...>& arms) {
  static const std::variant_alternative_t<I, std::variant<Arms...>> none{};
  const auto* held = std::get_if<I>(&arms);
  return held != nullptr ? *held : none;
}

// Arm number I for writing: made, with a default value, when another is held.
template <std::size_t I, class... Arms>
std::variant_alternative_t<I, std::variant<Arms...>>& arm_for_writing(std::variant<Arms...>& arms) {
  if (auto* held = std::get_if<I>(&arms)) return *held;
  return arms.template emplace<I>();
}

// Arm number I, which must be held.
template <std::size_t I, class... Arms>
const std::variant_alternative_t<I, std::variant<Arms...>>& arm_held(
    const std::variant<Arms...>& arms) {
  return STAG_CHECK(arms.index() == I), *std::get_if<I>(&arms);
}

}  // namespace stag::xdr
