// How an IwarpConnection finds out that its peer does not go on.
#include <algorithm>

#include "fabric/iwarp/iwarp_connection.h"
#include "net/loop.h"

namespace stag::fabric {

// Of the bytes that were ever written. The socket may have taken megabytes that leave slowly: what
// it accepts says little about the peer. MPA Replies are not counted, but may be unacknowledged.
std::uint64_t IwarpConnection::acknowledged() const {
  const std::uint64_t written = batch_.written();
  return written - std::min<std::uint64_t>(written, socket_.unacknowledged());
}

// While all is acknowledged nothing of ours is on its way: then only what comes is progress.
std::uint64_t IwarpConnection::progress_mark() const {
  const std::uint64_t taken = acknowledged();
  return received_ + (taken < batch_.appended() ? taken : 0);
}

// One timer while the peer owes anything; idle connections have none.
void IwarpConnection::watch_peer() {
  peer_watched_ = stall_limit_ > Duration(0);
  if (!peer_watched_) return;
  stall_timer_ = loop_.after(stall_limit_ / 2, [this] { look_at_peer(); });
}

void IwarpConnection::look_at_peer() try {
  const TimePoint now = loop_.now();
  const std::uint64_t taken = acknowledged();
  if (taking_.is_stalled(now, {batch_.appended(), taken, taken})) return end(Reason::PeerStalled);
  const std::uint64_t answered = traffic_.reads_out - reads_.size();
  if (answering_.is_stalled(now, {traffic_.reads_out, answered, receiver_.read_bytes()}))
    return end(Reason::PeerStalled);
  const std::uint64_t whole = receiver_.fpdus_before_unfinished();
  const std::uint64_t begun = receiver_.at_boundary() ? whole : whole + 1;
  if (ending_.is_stalled(now, {begun, whole, receiver_.bytes_of_unfinished()}))
    return end(Reason::PeerMessageUnfinished);
  peer_watched_ = false;
  if (taking_.running() || answering_.running() || ending_.running()) watch_peer();
} catch (...) {
  end_by_exception();
}

}  // namespace stag::fabric
