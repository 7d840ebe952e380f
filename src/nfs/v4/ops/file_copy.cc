#include "nfs/v4/ops/file_copy.h"

#include <algorithm>

#include "base/checked.h"
#include "nfs/v4/attributes/attributes.h"
#include "nfs/v4/ops/ranges.h"

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

Task<v4::nfsstat4> FileCopy::status_of(vfs::Status refusal) const {
  if (from_.export_ != nullptr) {
    const v4::nfsstat4 status = co_await range_status(from_, refusal);
    if (status == v4::NFS4ERR_WRONG_TYPE) co_return status;
  }
  co_return co_await range_status(to_, refusal);
}

Task<v4::nfsstat4> FileCopy::step() {
  if (within_store_) {
    const auto copied = co_await to_.store().copy(to_.caller(), from_.handle, to_.handle, rest());
    if (copied) {
      advance(copied->count, copied->committed);
      co_return v4::NFS4_OK;
    }
    if (copied.error() != vfs::Status::NotSupported) co_return co_await status_of(copied.error());
    within_store_ = false;
  }
  co_return co_await pass_through();
}

Task<v4::nfsstat4> FileCopy::pass_through() {
  const vfs::CopyRange left = rest();
  const auto count = static_cast<std::uint32_t>(
      left.length == 0 ? kMaxTransfer : std::min<std::uint64_t>(left.length, kMaxTransfer));
  auto found = co_await from_.store().read(from_.caller(), from_.handle, left.from, count);
  if (!found) co_return co_await status_of(found.error());
  // RFC 7862 15.2.3: nothing of a range that does not lie within its file is copied.
  if (!range_within(left.from, left.length, found->attributes.size))
    co_return co_await status_of(vfs::Status::Invalid);
  if (found->data.empty()) {
    advance(0, committed_);
    co_return v4::NFS4_OK;
  }
  co_return co_await write(left.to, std::move(found->data));
}

Task<v4::nfsstat4> FileCopy::write(std::uint64_t offset, Rope data) {
  const auto written = co_await to_.store().write(to_.caller(), to_.handle, offset, std::move(data),
                                                  vfs::Stability::Unstable);
  if (!written) co_return co_await status_of(written.error());
  advance(written->count, written->committed);
  co_return v4::NFS4_OK;
}

Task<v4::nfsstat4> FileCopy::read_from(SourceFile& source, std::uint64_t most) {
  const auto size = co_await source.size();
  if (!size) co_return size.error();
  if (!range_within(range_.from, range_.length, *size)) co_return v4::NFS4ERR_INVAL;
  to_the_end_ = range_.length == 0;
  if (to_the_end_) range_.length = *size - range_.from;
  range_.length = std::min(range_.length, most);
  done_ = range_.length == 0;
  reading_ = std::make_shared<ReadAhead>(source, range_.from, range_.from + range_.length);
  co_return v4::NFS4_OK;
}

Task<SourceFile::Answer<Rope>> FileCopy::next_piece() {
  auto piece = co_await reading_->next(to_.store());
  if (!piece) co_return Failure{piece.error()};
  if (piece->data.empty() && !to_the_end_) co_return Failure{v4::NFS4ERR_INVAL};
  co_return std::move(piece->data);
}

Task<v4::nfsstat4> FileCopy::write_piece(Rope data) {
  if (data.empty()) done_ = true;
  while (!data.empty()) {
    const std::uint64_t before = count_;
    const v4::nfsstat4 status = co_await write(range_.to + before, data);
    if (status != v4::NFS4_OK) co_return status;
    if (count_ == before) co_return v4::NFS4ERR_IO;
    const std::size_t written = std::min<std::uint64_t>(count_ - before, data.size());
    data = data.slice(written, data.size() - written);
  }
  co_return v4::NFS4_OK;
}

}  // namespace stag::nfs::nfs4
