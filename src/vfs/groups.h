// Groups: the supplementary groups of a user, a value. As many as a call carries lie in the object;
// more are in a list that copies share, so that to copy them allocates nothing. Most are empty: to
// make, move or destroy those takes a few instructions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace stag::vfs {

class Groups {
 public:
  using value_type = std::uint32_t;
  using const_iterator = const std::uint32_t*;
  using List = std::vector<std::uint32_t>;
  static constexpr std::size_t kInside = 16;  // of AUTH_SYS (RFC 5531 appendix A)

  // Not defaulted, so that `Groups groups{}` does not fill them with zeros first.
  Groups() {}
  Groups(std::initializer_list<std::uint32_t> ids) {
    for (const std::uint32_t id : ids) push_back(id);
  }
  // Shares `list`, which is there.
  explicit Groups(std::shared_ptr<const List> list)
      : size_(list->size()), shared_(std::move(list)) {}
  Groups(const Groups& other) {
    if (other.size_ != 0) take(other);
  }
  Groups(Groups&& other) noexcept {
    if (other.size_ != 0) take(std::move(other));
  }
  Groups& operator=(const Groups& other) { return take(other), *this; }
  Groups& operator=(Groups&& other) noexcept { return take(std::move(other)), *this; }
  ~Groups() = default;

  // Beyond kInside each takes a copy of the list: who has many makes it first.
  void push_back(std::uint32_t id) {
    if (shared_ != nullptr || size_ == kInside) return add_to_list(id);
    own_[size_++] = id;
  }

  const std::uint32_t* data() const { return shared_ == nullptr ? own_ : shared_->data(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::uint32_t* begin() const { return data(); }
  const std::uint32_t* end() const { return data() + size_; }

  bool has(std::uint32_t id) const { return std::find(begin(), end(), id) != end(); }

  friend bool operator==(const Groups& a, const Groups& b) {
    if (a.shared_ != nullptr && a.shared_ == b.shared_) return true;
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  template <class Other>
  void take(Other&& other) {
    if (other.shared_ == nullptr) std::copy_n(other.own_, other.size_, own_);
    size_ = other.size_;
    shared_ = std::forward<Other>(other).shared_;
    if constexpr (!std::is_lvalue_reference_v<Other>) other.size_ = 0;
  }
  void add_to_list(std::uint32_t id) {
    auto longer = std::make_shared<List>(begin(), end());
    longer->push_back(id);
    *this = Groups(std::shared_ptr<const List>(std::move(longer)));
  }

  std::uint32_t own_[kInside];
  std::size_t size_ = 0;
  std::shared_ptr<const List> shared_{};  // null: they lie in own_
};

}  // namespace stag::vfs
