// The segments of a READ_PLUS result (RFC 7862 15.10): data, and holes by their length only.
#pragma once

#include <algorithm>

#include "nfs/v4/ops/ranges.h"

namespace stag::nfs::nfs4 {

// What was found so far, from `at` on.
class ReadPlusSegments {
 public:
  ReadPlusSegments(const ExportObject& file, std::uint64_t offset, std::uint64_t count,
                   std::uint64_t room)
      : file_(file), at_(offset), left_(count), room_(std::max(room, kLeast) - kHeader) {}

  // nullopt: as far as it goes.
  Task<std::optional<vfs::Status>> find(v4::read_plus_res4& to) {
    // Nothing is wanted but the end of the file, and whether there may be reading.
    if (left_ == 0) co_return co_await read(to, 0);
    while (left_ > 0 && !to.rpr_eof && to.rpr_contents.size() < kSegments &&
           room_ >= kLeast - kHeader) {
      const auto fault = co_await next(to);
      // What was found before is told, the fault to the one who asks for the rest.
      if (fault) co_return to.rpr_contents.empty() ? fault : std::nullopt;
    }
    co_return std::nullopt;
  }

  // Bytes of data among them.
  std::uint64_t read_bytes() const { return read_; }

 private:
  // Bytes of results: what stands before all segments, and before the data of one.
  static constexpr std::uint64_t kHeader = 12;
  static constexpr std::uint64_t kSegmentHeader = 4 + 16 + 4;
  // With one segment, which is made whatever the room is: a client that is told nothing asks for
  // the same again, and a result that is too long is refused as any other one.
  static constexpr std::uint64_t kLeast = kHeader + kSegmentHeader + 4;
  // So many segments at most; the client asks for the rest.
  static constexpr std::size_t kSegments = 64;

  Task<std::optional<vfs::Status>> next(v4::read_plus_res4& to) {
    const auto data =
        co_await file_.store().seek(file_.caller(), file_.handle, at_, vfs::SeekTo::Data);
    if (!data && data.error() == vfs::Status::NotSupported) co_return co_await read(to, left_);
    if (!data && data.error() == vfs::Status::Invalid) co_return co_await beyond_end(to);
    if (!data) co_return data.error();
    if (data->offset > at_) {
      add_hole(to, data->offset - at_);
      to.rpr_eof = data->eof && left_ >= data->offset - at_;
      advance(data->offset - at_);
      co_return std::nullopt;
    }
    const auto hole =
        co_await file_.store().seek(file_.caller(), file_.handle, at_, vfs::SeekTo::Hole);
    if (!hole) co_return hole.error();
    co_return co_await read(to, std::min(left_, hole->offset - at_));
  }

  // For a regular file; others are refused by READ's words.
  Task<std::optional<vfs::Status>> beyond_end(v4::read_plus_res4& to) {
    const auto attributes = co_await attributes_now(file_);
    if (!attributes || attributes->type != vfs::FileType::Regular) co_return vfs::Status::Invalid;
    to.rpr_eof = true;
    co_return std::nullopt;
  }

  Task<std::optional<vfs::Status>> read(v4::read_plus_res4& to, std::uint64_t count) {
    const std::uint64_t most =
        std::min<std::uint64_t>(kMaxTransfer, room_ - kSegmentHeader) / 4 * 4;
    auto found = co_await file_.store().read(file_.caller(), file_.handle, at_,
                                             static_cast<std::uint32_t>(std::min(count, most)));
    if (!found) co_return found.error();
    const std::uint64_t size = found->data.size();
    to.rpr_eof = found->eof;
    if (size == 0) left_ = 0;  // It became shorter meanwhile.
    if (size == 0) co_return std::nullopt;
    v4::read_plus_content& segment = to.rpr_contents.emplace_back();
    segment.rpc_content = v4::NFS4_CONTENT_DATA;
    segment.rpc_data() = {at_, std::move(found->data)};
    room_ -= std::min(room_, (size + 3) / 4 * 4);
    read_ += size;
    advance(size);
    co_return std::nullopt;
  }

  void add_hole(v4::read_plus_res4& to, std::uint64_t length) {
    v4::read_plus_content& segment = to.rpr_contents.emplace_back();
    segment.rpc_content = v4::NFS4_CONTENT_HOLE;
    segment.rpc_hole() = {at_, std::min(length, left_)};
  }
  // Behind a segment.
  void advance(std::uint64_t length) {
    at_ += std::min(length, left_);
    left_ -= std::min(length, left_);
    room_ -= std::min(room_, kSegmentHeader);
  }

  const ExportObject& file_;
  std::uint64_t at_;
  std::uint64_t left_;
  std::uint64_t room_;
  std::uint64_t read_ = 0;
};

}  // namespace stag::nfs::nfs4
