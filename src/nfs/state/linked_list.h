// A doubly linked list of records that carry their own links: nothing is allocated. The caller owns
// the records.
#pragma once

namespace stag::nfs::state {

template <class T>
struct Link {
  T* next = nullptr;
  T* previous = nullptr;
};

template <class T, Link<T> T::*kLink>
class LinkedList {
 public:
  T* front() const { return first_; }
  static T* next(const T& record) { return (record.*kLink).next; }
  bool empty() const { return first_ == nullptr; }

  void push_front(T& record) {
    (record.*kLink) = {first_, nullptr};
    if (first_ != nullptr) (first_->*kLink).previous = &record;
    first_ = &record;
  }
  // It is in here.
  void erase(T& record) {
    const Link<T> link = record.*kLink;
    (link.previous != nullptr ? (link.previous->*kLink).next : first_) = link.next;
    if (link.next != nullptr) (link.next->*kLink).previous = link.previous;
  }

 private:
  T* first_ = nullptr;
};

}  // namespace stag::nfs::state
