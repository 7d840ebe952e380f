// OwnerSequence: the numbers of the operations of one open or lock owner of NFSv4.0 (RFC 7530
// sections 9.1.3, 9.1.7). One operation is in progress at a time.
//
// Whether the server has used the number of an operation that was never answered is not known. The
// next operation takes the number behind it: with the number itself the server would repeat its
// answer to what was asked then. NFS4ERR_BAD_SEQID says that the number is still free.
//
// Pure: no clock, no thread.
#pragma once

#include <cstdint>

#include "nfs/proto/nfs4.h"

namespace stag::nfs::session {

class OwnerSequence {
 public:
  // Of an answer: the number was right, another one is to be tried, or there is none that the
  // server takes, so that the owner is of no use any more.
  enum class Verdict : std::uint8_t { Good, Again, Bad };

  v4::seqid4 next() const { return sum(first_, doubts_); }
  // The status of the operation that was sent with the number `sent`.
  Verdict on_status(v4::seqid4 sent, v4::nfsstat4 status);
  // The operation got no answer.
  void on_loss() { ++doubts_; }
  // Whether the server takes next().
  bool certain() const { return doubts_ == 0; }

 private:
  // RFC 7530 9.1.3: one follows the largest number.
  static v4::seqid4 sum(v4::seqid4 number, std::uint32_t more) {
    const v4::seqid4 result = number + more;
    return result < number ? result + 1 : result;
  }

  v4::seqid4 first_ = 1;      // the least that the server may wait for
  std::uint32_t doubts_ = 0;  // how many numbers behind it may be used
};

}  // namespace stag::nfs::session
