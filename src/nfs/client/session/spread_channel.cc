#include "nfs/client/session/spread_channel.h"

#include <new>
#include <utility>

#include "nfs/proto/nfs3.h"
#include "rpc/client.h"

namespace stag::nfs::client {
namespace {

// Bytes of arguments, or of memory for results, from which on it is worth while to wake another
// loop.
constexpr std::size_t kBulk = 16 << 10;

bool has_bulk(const rpc::CallMessage& message) {
  std::size_t results = 0;
  for (const rpc::ResultBuffer& buffer : message.result_buffers) results += buffer.memory.size();
  return results >= kBulk || message.stream.size() >= kBulk;
}

}  // namespace

// The XIDs of the channels below are used: this one's own are never seen.
SpreadChannel::SpreadChannel(std::size_t most) : Channel(0) {
  channels_.reserve(most);
}

rpc::Channel& SpreadChannel::next(bool elsewhere) {
  std::size_t& last = last_[elsewhere ? 1 : 0];
  for (const bool any : {false, true}) {
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      last = (last + 1) % channels_.size();
      One& one = channels_[last];
      if (!any && one.elsewhere != elsewhere) continue;
      if (is_up(one)) return *one.channel;
    }
  }
  return *channels_[last].channel;
}

// A connection that was lost proves itself by a NULL call: one that is made again may be turned
// away at once, again and again, with the calls that it was given meanwhile.
bool SpreadChannel::is_up(One& one) {
  const bool connected = one.channel->limits().has_value();
  const std::uint64_t lost = one.channel->connections_lost();
  const bool proven = connected && std::exchange(one.lost, lost) == lost;
  if (!proven && !one.connecting) connect(one);
  return proven && !one.connecting;
}

std::optional<rpc::ChannelLimits> SpreadChannel::limits() const {
  for (const One& one : channels_)
    if (auto limits = one.channel->limits()) return limits;
  return std::nullopt;
}

void SpreadChannel::connect(One& one) {
  try {
    connecting_.add(connected(one));
  } catch (const std::bad_alloc&) {  // the next call that goes past it tries again
  }
}

// Any answer will do, also that the server has no such version.
Task<void> SpreadChannel::connected(One& one) {
  one.connecting = true;
  try {
    rpc::Client client(*one.channel);
    static_cast<void>(co_await client.ping(v3::NFS_PROGRAM, v3::NFS_V3));
  } catch (const std::bad_alloc&) {
  }
  one.connecting = false;
}

Task<Result<rpc::ReplyMessage, rpc::CallError>> SpreadChannel::call(rpc::CallMessage& message) {
  rpc::Channel& channel = next(works_elsewhere_ && has_bulk(message));
  message.use_xid(channel.next_xid());
  return channel.call(message);
}

std::uint64_t SpreadChannel::connections_lost() const {
  std::uint64_t lost = 0;
  for (const One& one : channels_) lost += one.channel->connections_lost();
  return lost;
}

Task<void> SpreadChannel::close() {
  for (const One& one : channels_) co_await one.channel->close();
  co_await connecting_.join();
}

void SpreadChannel::serve_reverse(rpc::Service& service) {
  for (const One& one : channels_) one.channel->serve_reverse(service);
}

}  // namespace stag::nfs::client
