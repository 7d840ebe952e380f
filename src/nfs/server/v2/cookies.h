// Directory cookies for NFSv2, which has 32 bits for them (RFC 1094 2.2.17) where stores use 64.
//
// A cookie below 2^31 stands for itself. A larger one gets a number from 2^31 up. The table keeps a
// number until it has been filled with newer ones, or the server ends; a client that comes back
// with an older number gets an error and never another entry. A cookie has one number while the
// table keeps it.
//
// Thread: any; a mutex of its own.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace stag::nfs::nfs2 {

class Cookies {
 public:
  // `most` large cookies are remembered, at most 2^31.
  explicit Cookies(std::uint32_t most = 1u << 18) : most_(most) {}

  std::uint32_t number_of(std::uint64_t cookie);
  // nullopt for a number that was never given out, or is forgotten.
  std::optional<std::uint64_t> cookie_of(std::uint32_t number) const;

 private:
  struct Slot {
    std::uint32_t number = 0;
    std::uint64_t cookie = 0;
  };

  const std::uint32_t most_;
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;  // number n stands at n modulo most_
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  std::uint32_t next_ = 0;  // without the bit of large cookies
};

}  // namespace stag::nfs::nfs2
