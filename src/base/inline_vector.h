// InlineVector<T, N>: a vector whose first N elements live inside the object, so that the chunk
// lists, ropes and action lists of ordinary calls allocate nothing. Beyond N elements it moves to
// the heap and throws std::bad_alloc when there is no memory. Most of these lists are empty: to
// copy, move or destroy an empty one takes a few instructions, and lists of plain values and of
// types that say so (kMovesAsBytes) move as bytes.
//
// References and iterators are valid until the next change of size. operator[], front(), back() and
// pop_back() end the process when the element does not exist.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace stag {

// Whether a T may move by its bytes, its old place being forgotten: no member refers to another
// one. A class says so with a constant of this name.
template <class T>
concept MovesAsBytes = std::is_trivially_copyable_v<T> || T::kMovesAsBytes;

template <class T, std::size_t N>
class InlineVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  // Not defaulted, so that `InlineVector v{}` does not fill the inline storage with zeros first.
  InlineVector() {}
  InlineVector(std::initializer_list<T> values) {
    for (const T& value : values) push_back(value);
  }
  InlineVector(const InlineVector& other) { append(other); }
  InlineVector(InlineVector&& other) noexcept {
    if (other.size_ != 0) take(other);
  }
  InlineVector& operator=(const InlineVector& other) {
    if (this == &other) return *this;
    clear();
    append(other);
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this == &other) return *this;
    clear();
    if (other.size_ != 0) take(other);
    return *this;
  }
  ~InlineVector() {
    clear();
    free_heap();
  }

  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) {
      T value(std::forward<Args>(args)...);  // The argument may live in the storage about to move.
      reserve(capacity_ * 2);
      return *new (data_ + size_++) T(std::move(value));
    }
    return *new (data_ + size_++) T(std::forward<Args>(args)...);
  }
  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  void pop_back() {
    STAG_CHECK(size_ > 0);
    data_[--size_].~T();
  }
  void clear() {
    if (!std::is_trivially_destructible_v<T> && size_ != 0) destroy();
    size_ = 0;
  }
  // Makes capacity for `wanted` elements in all.
  void reserve(std::size_t wanted) {
    if (wanted <= capacity_) return;
    T* larger = std::allocator<T>().allocate(wanted);
    std::uninitialized_move_n(data_, size_, larger);
    std::destroy_n(data_, size_);
    free_heap();
    data_ = larger;
    capacity_ = wanted;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::size_t i) { return STAG_CHECK(i < size_), data_[i]; }
  const T& operator[](std::size_t i) const { return STAG_CHECK(i < size_), data_[i]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  friend bool operator==(const InlineVector& a, const InlineVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  T* inline_data() { return std::launder(reinterpret_cast<T*>(inline_)); }
  bool on_heap() const {
    return static_cast<const void*>(data_) != static_cast<const void*>(inline_);
  }
  void free_heap() {
    if (on_heap()) std::allocator<T>().deallocate(data_, capacity_);
  }
  void append(const InlineVector& other) {
    if (other.size_ == 0) return;
    reserve(other.size_);
    std::uninitialized_copy_n(other.data_, other.size_, data_);
    size_ = other.size_;
  }
  // Not inlined, so that ending or moving an empty list only looks at its size.
  [[gnu::noinline]] void destroy() { std::destroy_n(data_, size_); }
  // Moves the elements of `other`, of which there are some, into this vector, which is empty.
  void take(InlineVector& other) noexcept {
    if (other.on_heap()) {
      free_heap();
      data_ = std::exchange(other.data_, other.inline_data());
      capacity_ = std::exchange(other.capacity_, N);
    } else if constexpr (MovesAsBytes<T>) {
      // A few bytes of known number take no call of memcpy().
      constexpr std::size_t kAll = sizeof(inline_);
      std::memcpy(static_cast<void*>(data_), other.data_,
                  kAll <= 64 ? kAll : other.size_ * sizeof(T));
    } else {
      std::uninitialized_move_n(other.data_, other.size_, data_);
      std::destroy_n(other.data_, other.size_);
    }
    size_ = std::exchange(other.size_, 0);
  }

  alignas(T) std::byte inline_[sizeof(T) * N];
  T* data_ = inline_data();
  std::size_t size_ = 0;
  std::size_t capacity_ = N;
};

}  // namespace stag
