// UniqueFunction<R(Args...)>: a callable that is moved, never copied, so that it may own what it
// captures. Callables of up to 48 bytes that move without throwing live inside the object: to make,
// move and call such a one allocates nothing. A larger callable lives on the heap.
//
// Thread: not synchronised; it may be made on one thread and called on another. Ownership: the
// callable and its captures are destroyed with the UniqueFunction, or when another is assigned.
// Errors: what the callable throws passes through; calling an empty one ends the process.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace stag {

template <class Signature>
class UniqueFunction;

template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  // Empty.
  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, UniqueFunction> &&
           std::is_invocable_r_v<R, F&, Args...>) UniqueFunction(F&& callable) {
    emplace<std::remove_cvref_t<F>>(std::forward<F>(callable));
  }
  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~UniqueFunction() { reset(); }

  // Whether it holds a callable.
  explicit operator bool() const { return operations_ != nullptr; }
  R operator()(Args... args) {
    STAG_CHECK(operations_ != nullptr);
    return operations_->call(&storage_, std::forward<Args>(args)...);
  }

 private:
  // `move` and `destroy` are null for trivially copyable callables, as most posted functions are:
  // they capture `this` and a number or two.
  struct Operations {
    R (*call)(void*, Args&&...);
    void (*move)(void* from, void* to) noexcept;
    void (*destroy)(void*) noexcept;
  };
  static constexpr std::size_t kInline = 48;

  template <class F>
  static constexpr bool kFits =
      sizeof(F) <= kInline &&
      alignof(F) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<F>;

  template <class F>
  static constexpr auto mover() -> void (*)(void*, void*) noexcept {
    if constexpr (std::is_trivially_copyable_v<F>) {
      return nullptr;
    } else {
      return [](void* from, void* to) noexcept {
        new (to) F(std::move(*static_cast<F*>(from)));
        static_cast<F*>(from)->~F();
      };
    }
  }
  template <class F>
  static constexpr auto destroyer() -> void (*)(void*) noexcept {
    if constexpr (std::is_trivially_destructible_v<F>) {
      return nullptr;
    } else {
      return [](void* f) noexcept { static_cast<F*>(f)->~F(); };
    }
  }

  template <class F, class From>
  void emplace(From&& callable) {
    if constexpr (kFits<F>) {
      static constexpr Operations kOperations{
          [](void* f, Args&&... args) -> R {
            return (*static_cast<F*>(f))(std::forward<Args>(args)...);
          },
          mover<F>(), destroyer<F>()};
      new (&storage_) F(std::forward<From>(callable));
      operations_ = &kOperations;
    } else {
      auto boxed = [box = std::make_unique<F>(std::forward<From>(callable))](Args... args) -> R {
        return (*box)(std::forward<Args>(args)...);
      };
      emplace<decltype(boxed)>(std::move(boxed));
    }
  }
  void take(UniqueFunction& other) noexcept {
    operations_ = std::exchange(other.operations_, nullptr);
    if (operations_ == nullptr) return;
    if (operations_->move == nullptr)
      std::memcpy(storage_, other.storage_, kInline);
    else
      operations_->move(&other.storage_, &storage_);
  }
  void reset() noexcept {
    if (operations_ == nullptr) return;
    const Operations* const operations = std::exchange(operations_, nullptr);
    if (operations->destroy != nullptr) operations->destroy(&storage_);
  }

  alignas(std::max_align_t) std::byte storage_[kInline];
  const Operations* operations_ = nullptr;
};

}  // namespace stag
