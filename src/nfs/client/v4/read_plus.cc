// READ_PLUS (RFC 7862 section 15.10). No open is held: its stateid is anonymous.
#include <algorithm>

#include "nfs/client/v4/nfs4.h"

namespace stag::nfs::client::nfs4 {
namespace {

// Bytes of results around the data: of the COMPOUND, and of as many segments as our server tells of
// at once, whose data is padded.
constexpr std::uint32_t kFrame = 1024 + 64 * 28;

// The segments of a result, which continue one another (RFC 7862 15.10.3), put into memory.
class Segments {
 public:
  Segments(std::uint64_t offset, MutableBytes to) : offset_(offset), to_(to) {}

  // False: it is not what continues the segments before.
  bool add(v4::read_plus_content& segment) {
    if (segment.rpc_content == v4::NFS4_CONTENT_DATA) return add_data(segment.rpc_data());
    return segment.rpc_content == v4::NFS4_CONTENT_HOLE && add_hole(segment.rpc_hole());
  }
  SparsePart part(bool eof) {
    return {static_cast<std::uint32_t>(filled_), eof, std::move(holes_)};
  }

 private:
  std::uint64_t at() const { return offset_ + filled_; }
  std::uint64_t left() const { return to_.size() - filled_; }

  bool add_data(const v4::data4& data) {
    if (data.d_offset != at() || data.d_data.size() > left()) return false;
    rpc::copy_into(data.d_data, to_.subspan(filled_));
    filled_ += data.d_data.size();
    return true;
  }
  // A hole may begin before, and end behind, what was asked for.
  bool add_hole(const v4::data_info4& hole) {
    const bool begins_before = filled_ == 0 && hole.di_offset <= offset_;
    if (!begins_before && hole.di_offset != at()) return false;
    const std::uint64_t before = at() - hole.di_offset;
    if (hole.di_length < before) return false;
    const std::uint64_t length = std::min(hole.di_length - before, left());
    if (length == 0) return true;
    std::ranges::fill(to_.subspan(filled_, length), std::byte{});
    const bool adjacent = !holes_.empty() && holes_.back().offset + holes_.back().length == at();
    if (adjacent) holes_.back().length += length;
    if (!adjacent) holes_.push_back({at(), length});
    filled_ += length;
    return true;
  }

  std::uint64_t offset_;
  MutableBytes to_;
  std::uint64_t filled_ = 0;
  std::vector<FileRange> holes_;
};

}  // namespace

Task<Outcome<SparsePart>> Nfs4::read_plus(OperationContext context, Handle file,
                                          std::uint64_t offset, MutableBytes to) {
  if (minor() < 2) co_return co_await Protocol::read_plus(context, file, offset, to);
  const std::uint32_t most = client_->session().limits().ca_maxresponsesize;
  to = to.first(std::min<std::size_t>(to.size(), most > kFrame ? most - kFrame : 0));
  Request request;
  request.put_handle(file);
  const auto count = static_cast<std::uint32_t>(to.size());
  const std::size_t at =
      request.add(v4::OP_READ_PLUS, &Op::opread_plus, {v4::stateid4{}, offset, count});
  request.results_max = count + kFrame;
  Outcome<Reply> reply = co_await run(context, request);
  if (!reply) co_return Failure{reply.error()};
  auto* got = reply->get(at, &OpResult::opread_plus);
  if (got == nullptr)
    co_return Failure{Error::of_protocol(context, "sent results that contradict each other")};
  v4::read_plus_res4& found = got->rp_resok4();
  Segments segments(offset, to);
  for (v4::read_plus_content& segment : found.rpr_contents) {
    if (!segments.add(segment))
      co_return Failure{Error::of_protocol(context, "sent other parts of the file than asked for")};
  }
  co_return segments.part(found.rpr_eof);
}

}  // namespace stag::nfs::client::nfs4
