// The entries of a READDIR reply, encoded one after the other as long as they fit (RFC 8881 18.23).
#pragma once

#include <string_view>

#include "nfs/v4/attributes/attributes.h"
#include "xdr/encoder.h"

namespace stag::nfs::nfs4 {

// 18.23.3: the cookies 0 to 2 are special to clients.
inline constexpr std::uint64_t kReservedCookies = 2;

class EntryList {
 public:
  explicit EntryList(std::uint32_t bytes) : left_(bytes) {}

  // Encodes one entry, whose attributes `attributes` writes; false: it does not fit.
  template <class Attributes>
  bool add(std::string_view name, std::uint64_t cookie, Attributes attributes) {
    const xdr::Encoder::Mark before = encoder_.mark();
    const std::uint32_t begin = encoder_.position();
    encoder_.boolean(true);
    encoder_.u64(cookie + kReservedCookies);
    encoder_.string(xdr::kNoItem, name);
    attributes(encoder_);
    const std::uint32_t size = encoder_.position() - begin;
    if (size > left_) {
      encoder_.rewind(before);
      full_ = true;
      return false;
    }
    left_ -= size;
    ++count_;
    return true;
  }
  // Whether there is nothing in it because nothing fits.
  bool too_small() const { return full_ && count_ == 0; }
  bool full() const { return full_; }
  bool empty() const { return count_ == 0; }
  xdr::Stream finish() {
    encoder_.boolean(false);
    return std::move(encoder_).finish();
  }

 private:
  xdr::Encoder encoder_;
  std::uint32_t left_;
  std::uint32_t count_ = 0;
  bool full_ = false;
};

}  // namespace stag::nfs::nfs4
