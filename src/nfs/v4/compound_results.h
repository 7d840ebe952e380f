// The results of one COMPOUND as they grow (COMPOUND4res), and how long they may become.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nfs/v4/operation.h"
#include "xdr/encoder.h"

namespace stag::nfs::nfs4 {

// Number and status of an operation's result.
inline constexpr std::uint32_t kOperationHeader = 8;

// Status and count are those of a success at first, and written over where it comes otherwise.
class Results {
 public:
  // `operations`: so many have results where all succeed.
  Results(xdr::Encoder& encoder, Bytes tag, std::size_t operations = 0);

  xdr::Encoder& begin(std::uint32_t number) {
    before_ = encoder_.mark();
    encoder_.u32(number);
    ++count_;
    return encoder_;
  }
  // In place of what the operation encoded.
  void replace(std::uint32_t number, const Operation* row, v4::nfsstat4 status);
  // RFC 8267 6.4.1: the Write chunk of an item that is not there is not for the next one.
  void pass_over(const Operation& row) {
    if (row.item != xdr::kNoItem) encoder_.absent(row.item);
  }
  void finish(v4::nfsstat4 status) {
    if (status != v4::NFS4_OK) encoder_.patch_u32(status_at_, static_cast<std::uint32_t>(status));
    if (count_ != expected_) encoder_.patch_u32(count_at_, count_);
  }
  std::uint32_t size() const { return encoder_.position() - status_at_; }
  // Bytes of these that go apart where a Call has so many Write chunks.
  std::uint64_t size_apart(std::uint32_t write_chunks) const {
    return encoder_.bytes_of_items(write_chunks);
  }

 private:
  xdr::Encoder& encoder_;
  std::uint32_t status_at_;
  std::uint32_t count_at_ = 0;
  std::uint32_t expected_;
  std::uint32_t count_ = 0;
  xdr::Encoder::Mark before_{};
};

// What the client's session or the server allows, and what the transport can bring back for this
// Call.
class ResultLimits {
 public:
  // The limits of the COMPOUND whose SEQUENCE, if any, has run.
  ResultLimits(const Compound& compound, const rpc::CallContext& call);

  // Bytes by which the results may grow; negative when they are too long.
  std::int64_t left(const Results& results) const {
    if (write_chunks_ == 0) return least_ - results.size();
    return std::min(reply_left(results, 0), kept_max_ - results.size());
  }
  // Why they may not grow by so many bytes; NFS4_OK: they may. For what is not to be done in vain.
  v4::nfsstat4 refusal(const Results& results, std::int64_t bytes) const {
    return refusal(results, bytes, 0);
  }
  // The same of results that are there. What protects a Reply is known at its most only: where they
  // may go into the chunks of the Call, the transport sees whether they do.
  v4::nfsstat4 refusal_of_known(const Results& results, std::int64_t bytes) const {
    return refusal(results, bytes, slack_);
  }

 private:
  ResultLimits(const Compound& compound, const rpc::CallContext& call, std::int64_t header);
  v4::nfsstat4 refusal(const Results& results, std::int64_t bytes, std::int64_t slack) const {
    if (bytes <= least_ - results.size()) return v4::NFS4_OK;
    if (bytes > reply_left(results, slack)) return too_big_;
    return bytes > kept_max_ - results.size() ? v4::NFS4ERR_REP_TOO_BIG_TO_CACHE : v4::NFS4_OK;
  }
  std::int64_t reply_left(const Results& results, std::int64_t slack) const {
    const std::int64_t apart = write_chunks_ == 0 ? 0 : bytes_apart(results);
    return std::min(reply_max_, room_ + slack + apart) - results.size();
  }
  std::int64_t bytes_apart(const Results& results) const;

  // Bytes of results: in the whole Reply, in one that is kept for a retry, and without what Write
  // chunks take.
  std::int64_t reply_max_;
  std::int64_t kept_max_;
  std::int64_t room_;
  std::int64_t least_;  // of these three
  std::int64_t slack_;  // by which the protection may take less
  std::uint32_t write_chunks_;
  v4::nfsstat4 too_big_;
};

}  // namespace stag::nfs::nfs4
