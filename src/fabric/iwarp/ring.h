// A first-in first-out queue that keeps its memory, so that a steady flow through it allocates
// nothing. What was needed for an unusual number of elements is given back when all have gone.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"

namespace stag::fabric {

template <class T>
class Ring {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  // From the oldest on.
  T& operator[](std::size_t i) { return places_[(first_ + i) & (places_.size() - 1)]; }
  T& front() { return STAG_CHECK(size_ > 0), (*this)[0]; }

  void push(T value) {
    if (size_ == places_.size()) grow();
    (*this)[size_++] = std::move(value);
  }
  T pop() {
    T value = std::move(front());
    if constexpr (!std::is_trivially_copyable_v<T>) front() = T();
    first_ = (first_ + 1) & (places_.size() - 1);
    if (--size_ == 0 && places_.size() > kMostKept) [[unlikely]]
      give_back();
    return value;
  }

 private:
  static constexpr std::size_t kMostKept = 256;

  [[gnu::noinline]] void give_back() {
    static_cast<void>(std::exchange(places_, {}));
    first_ = 0;
  }
  [[gnu::noinline]] void grow() {
    std::vector<T> larger(places_.empty() ? 8 : places_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    places_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> places_;  // a power of two
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace stag::fabric
