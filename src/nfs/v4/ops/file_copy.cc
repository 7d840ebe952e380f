#include "nfs/v4/ops/file_copy.h"

#include <algorithm>

#include "base/checked.h"
#include "nfs/v4/attributes/attributes.h"

namespace stag::nfs::nfs4 {

vfs::CopyRange FileCopy::rest() const {
  vfs::CopyRange rest = range_;
  rest.from += count_;
  rest.to += count_;
  // A length of 0 stays one: all that follows.
  if (range_.length != 0) rest.length -= count_;
  return rest;
}

void FileCopy::advance(std::uint64_t bytes, vfs::Stability committed) {
  count_ += bytes;
  done_ = bytes == 0 || count_ == range_.length;
  if (bytes != 0) committed_ = std::min(committed_, committed);
}

Task<std::optional<vfs::Status>> FileCopy::step() {
  if (within_store_) {
    const auto copied = co_await to_.store().copy(to_.caller(), from_.handle, to_.handle, rest());
    if (copied) {
      advance(copied->count, copied->committed);
      co_return std::nullopt;
    }
    if (copied.error() != vfs::Status::NotSupported) co_return copied.error();
    within_store_ = false;
  }
  co_return co_await pass_through();
}

Task<std::optional<vfs::Status>> FileCopy::pass_through() {
  const vfs::CopyRange left = rest();
  const auto count = static_cast<std::uint32_t>(
      left.length == 0 ? kMaxTransfer : std::min<std::uint64_t>(left.length, kMaxTransfer));
  auto found = co_await from_.store().read(from_.caller(), from_.handle, left.from, count);
  if (!found) co_return found.error();
  // RFC 7862 15.2.3: nothing of a range that does not lie within its file is copied.
  if (!range_within(left.from, left.length, found->attributes.size)) co_return vfs::Status::Invalid;
  if (found->data.empty()) {
    advance(0, committed_);
    co_return std::nullopt;
  }
  const auto written = co_await to_.store().write(to_.caller(), to_.handle, left.to,
                                                  std::move(found->data), vfs::Stability::Unstable);
  if (!written) co_return written.error();
  advance(written->count, written->committed);
  co_return std::nullopt;
}

}  // namespace stag::nfs::nfs4
