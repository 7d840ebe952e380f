// A hash table of records that carry their own hash and chain: what goes in and out allocates
// nothing, so nothing can fail half way. Grows when there is memory for it. The caller owns the
// records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace stag::nfs::state {

// A hash says which shard something is in, by its remainder: within a shard that tells nothing.
inline constexpr std::uint32_t kFileShards = 64;

// T has `std::uint64_t hash`, as even as a keyed hash is, and `T* chain`.
template <class T>
class HashChains {
 public:
  HashChains() : buckets_(8) {}

  // The one with this hash that match(record) is true of, or null.
  template <class Match>
  T* find(std::uint64_t hash, Match&& match) const {
    T* record = buckets_[bucket_of(hash, buckets_)];
    while (record != nullptr && (record->hash != hash || !match(*record))) record = record->chain;
    return record;
  }
  void insert(T& record) {
    if (++size_ > buckets_.size()) grow();
    link(buckets_, record);
  }
  // It is in here.
  void erase(T& record) {
    T** at = &buckets_[bucket_of(record.hash, buckets_)];
    while (*at != &record) at = &(*at)->chain;
    *at = record.chain;
    --size_;
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (T* first : buckets_)
      for (T* record = first; record != nullptr; record = record->chain) visit(*record);
  }
  std::size_t size() const { return size_; }

 private:
  static std::size_t bucket_of(std::uint64_t hash, const std::vector<T*>& buckets) {
    return hash / kFileShards % buckets.size();
  }
  static void link(std::vector<T*>& buckets, T& record) {
    T*& first = buckets[bucket_of(record.hash, buckets)];
    record.chain = first;
    first = &record;
  }
  void grow() {
    std::vector<T*> more;
    try {
      more.resize(2 * buckets_.size());
    } catch (const std::bad_alloc&) {
      return;  // Longer chains serve as well.
    }
    for (T* first : buckets_)
      while (first != nullptr) {
        T* const record = first;
        first = record->chain;
        link(more, *record);
      }
    buckets_.swap(more);
  }

  std::vector<T*> buckets_;
  std::size_t size_ = 0;
};

}  // namespace stag::nfs::state
