#include "nfs/client/session/spread_channel.h"

namespace stag::nfs::client {

// The XIDs of the channels below are used: this one's own are never seen.
SpreadChannel::SpreadChannel(std::unique_ptr<rpc::Channel> first) : Channel(0) {
  channels_.push_back(std::move(first));
}

rpc::Channel& SpreadChannel::next() {
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    next_ = (next_ + 1) % channels_.size();
    if (channels_[next_]->limits()) break;
  }
  return *channels_[next_];
}

Task<Result<rpc::ReplyMessage, rpc::CallError>> SpreadChannel::call(rpc::CallMessage& message) {
  rpc::Channel& channel = next();
  message.use_xid(channel.next_xid());
  return channel.call(message);
}

std::uint64_t SpreadChannel::losses() const {
  std::uint64_t losses = 0;
  for (const std::unique_ptr<rpc::Channel>& channel : channels_) losses += channel->losses();
  return losses;
}

Task<void> SpreadChannel::close() {
  for (const std::unique_ptr<rpc::Channel>& channel : channels_) co_await channel->close();
}

void SpreadChannel::serve_reverse(rpc::Service& service) {
  for (const std::unique_ptr<rpc::Channel>& channel : channels_) channel->serve_reverse(service);
}

}  // namespace stag::nfs::client
