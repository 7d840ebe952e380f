// The C++ types of XDR types.
//
//   opaque x[N]                  std::array<std::byte, N>
//   opaque x<N>, N <= 256        BoundedOpaque<N>: inside the value, no heap
//   opaque x<>, x<N>             Opaque: a Rope, referenced rather than copied
//   string x<>                   std::string
//   T x[N], T x<>                std::array<T, N>, std::vector<T>
//   T *x                         std::optional<T>; Box<T> where T contains itself
//   the list idiom (entry *next as last member)    std::vector<entry>, the member left out; where
//     entries stand by value too, entry::next remains, as the std::vector<entry_next> of the others
//
// A union becomes a struct: its discriminant under its own name, and a function for each arm that
// is not void.
//   READ3res res;  res.status = NFS3_OK;  res.resok().count = 5;
// The caller sets the discriminant. resok() of a mutable union makes that arm the current one;
// resok() of a const union ends the process unless it is the current one: test the discriminant
// first, which selects the arm of a decoded union. Encoding writes the arm that the discriminant
// selects, or its default value if another arm is current, so that an error reply need not touch
// its arm. A discriminant without an arm fails the Encoder. Equality compares the current arms.
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
// IEEE quadruple precision as its 16 bytes (RFC 4506 4.8); C++ has no portable type for it.
using Quadruple = std::array<std::byte, 16>;

inline constexpr std::uint32_t kBoundedOpaqueMax = 256;

// A variable-length opaque of at most N bytes, inside the value.
template <std::uint32_t N>
requires(N <= kBoundedOpaqueMax) class BoundedOpaque {
 public:
  static constexpr std::uint32_t kBound = N;

  // Empty; the bytes behind the size are left as they are, so that none are cleared for nothing.
  BoundedOpaque() {}
  // `bytes` is at most N long; use assign() for lengths that may not fit.
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

// For unordered containers with short opaques as keys. Not for keys that a hostile peer chooses: it
// could make them collide.
struct OpaqueHash {
  template <std::uint32_t N>
  std::size_t operator()(const BoundedOpaque<N>& key) const {
    return std::hash<std::string_view>{}(text_of(key.bytes()));
  }
};

// An optional value on the heap, for types that contain themselves. Copies copy the value;
// comparison compares values.
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
  // Access to the value; ends the process when there is none.
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

// Arm number I of a generated union for encoding: the current arm, or a default value if another
// arm is current.
template <std::size_t I, class... Arms>
const std::variant_alternative_t<I, std::variant<Arms...>>& arm_or_default(
    const std::variant<Arms...>& arms) {
  static const std::variant_alternative_t<I, std::variant<Arms...>> none{};
  const auto* current = std::get_if<I>(&arms);
  return current != nullptr ? *current : none;
}

// Arm number I for writing: made current, with a default value, if another arm is current.
template <std::size_t I, class... Arms>
std::variant_alternative_t<I, std::variant<Arms...>>& arm_for_writing(std::variant<Arms...>& arms) {
  if (auto* current = std::get_if<I>(&arms)) return *current;
  return arms.template emplace<I>();
}

// Arm number I for reading; ends the process unless it is the current arm.
template <std::size_t I, class... Arms>
const std::variant_alternative_t<I, std::variant<Arms...>>& arm_held(
    const std::variant<Arms...>& arms) {
  return STAG_CHECK(arms.index() == I), *std::get_if<I>(&arms);
}

}  // namespace stag::xdr
