// LateXid: "xid 0x0000002a", what the log says in detail of a call that was refused before anything
// else was read of it: by that it is found in a capture, and in its client's own log.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/late_detail.h"
#include "base/rope.h"

namespace stag::rpc {

class LateXid final : public LateDetail {
 public:
  explicit LateXid(std::uint32_t xid) : xid_(xid) {}
  // That of a message with its XID at the beginning (RFC 5531 9, RFC 8166 4.2.1); of less than that
  // nothing is said.
  explicit LateXid(const Rope& message) {
    std::array<std::byte, kXidSize> begin{};
    if (message.size() < begin.size()) return;
    message.slice(0, begin.size()).copy_to(begin);
    xid_ = load_be<std::uint32_t>(begin.data());
  }
  explicit LateXid(Bytes message) {
    if (message.size() >= kXidSize) xid_ = load_be<std::uint32_t>(message.data());
  }

  std::string text() const override {
    std::array<char, 16> text{};
    if (xid_) std::snprintf(text.data(), text.size(), "xid 0x%08x", *xid_);
    return text.data();
  }

 private:
  static constexpr std::size_t kXidSize = 4;
  std::optional<std::uint32_t> xid_;
};

}  // namespace stag::rpc
