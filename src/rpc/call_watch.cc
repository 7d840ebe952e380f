#include "rpc/call_watch.h"

#include <algorithm>

namespace stag::rpc {

// RFC 5531 section 9: XID, REPLY, reply_stat; then a verifier and accept_stat, or reject_stat. Our
// own encoding, whose head holds all of that.
void CallWatch::read(const OutgoingReply& reply) {
  const Bytes head = reply.stream.head().bytes();
  ended_.answered = true;
  ended_.reply_bytes = reply.stream.size();
  ended_.status.reply = static_cast<oncrpc::ReplyStat>(word_at(head, 8).value_or(0));
  if (ended_.status.reply == oncrpc::ReplyStat::MSG_DENIED) {
    ended_.status.reject = static_cast<oncrpc::RejectStat>(word_at(head, 12).value_or(0));
    if (ended_.status.reject == oncrpc::RejectStat::AUTH_ERROR)
      ended_.status.auth = static_cast<oncrpc::AuthStat>(word_at(head, 16).value_or(0));
    return;
  }
  const std::size_t verifier = (word_at(head, 16).value_or(0) + 3) / 4 * 4;
  ended_.status.accept = static_cast<oncrpc::AcceptStat>(word_at(head, 20 + verifier).value_or(0));
  if (ended_.status.success() && !ended_.first_result)
    note_results(head.subspan(std::min(24 + verifier, head.size())));
}

}  // namespace stag::rpc
