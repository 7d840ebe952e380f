#include "rpc/udp/channel.h"

#include <algorithm>

#include "oncrpc/message.h"
#include "rpc/xid_seeds.h"

namespace stag::rpc::udp {

// Lives in the frame of its call(), which may end by an exception anywhere.
struct UdpChannel::Pending {
  Pending(UdpChannel& of, CallMessage& call, Buffer bytes)
      : channel(of),
        message(call),
        datagram(std::move(bytes)),
        patience(of.options_.retransmit_min) {
    channel.waiting_.push_back(this);
    ++channel.active_;
  }
  Pending(const Pending&) = delete;
  ~Pending() {
    channel.remove(*this);
    --channel.active_;
  }
  UdpChannel& channel;
  CallMessage& message;
  Buffer datagram;
  Duration patience;
  Completion<Result<ReplyMessage, CallError>> done{};
  Timer deadline{};
  Timer again{};
};

UdpChannel::UdpChannel(net::EpollLoop& loop, Address server, const ChannelOptions& options,
                       std::string from)
    : Channel(seed_or_random(options.seed)),
      loop_(loop),
      server_(std::move(server)),
      options_(options),
      from_(std::move(from)),
      where_("udp " + to_string(server_)) {}

UdpChannel::~UdpChannel() {
  STAG_CHECK(active_ == 0);
}

Task<Result<Ok, Reason>> UdpChannel::open(CancelToken cancel) {
  const auto addresses = co_await net::resolve(loop_, server_, options_.resolve_timeout, cancel);
  if (!addresses) co_return Failure{addresses.error()};
  Reason reason = Reason::HostNotFound;
  for (const net::SocketAddress& address : *addresses) {
    Result<net::UdpSocket, Reason> socket = net::UdpSocket::connect(loop_, address, from_);
    if (socket) {
      socket_.emplace(*std::move(socket));
      receiver_.emplace(
          *socket_, loop_, kFailurePause,
          [this](Bytes message, const net::Datagram&) { on_datagram(message); },
          [this](Reason failure) { trouble_ = failure; });
      co_return Ok{};
    }
    reason = socket.error();
  }
  co_return Failure{reason};
}

Task<Result<ReplyMessage, CallError>> UdpChannel::call(CallMessage& message) {
  Reason refused = shut_;
  if (refused == Reason::None && message.cancel.cancelled()) refused = Reason::Cancelled;
  if (refused != Reason::None) co_return Failure{CallError::transport(refused, where_)};
  STAG_CHECK(socket_.has_value());
  Result<Buffer, Reason> datagram = datagram_of(message);
  if (!datagram) co_return Failure{CallError::transport(datagram.error(), where_)};
  Pending pending(*this, message, *std::move(datagram));
  if (message.deadline)
    pending.deadline =
        loop_.after(*message.deadline - loop_.now(), [this, &pending] { expire(pending); });
  // The callback ends the call in a later turn: it must not destroy itself while it runs.
  const CancelCallback cancelled(message.cancel, [this, &pending] {
    if (!remove(pending)) return;
    loop_.post([this, &pending] { pending.done.complete(Failure{failed(Reason::Cancelled)}); });
  });
  transmit(pending);
  co_return co_await pending.done;
}

// For one transmission. A copy: nothing of the caller's is referred to once a datagram was handed
// to the system.
Result<Buffer, Reason> UdpChannel::datagram_of(CallMessage& message) {
  const Result<Ok, Reason> made = message.begin_transmission();
  if (!made) return Failure{made.error()};
  const Rope rope = message.stream.rope();
  if (rope.size() > kLongestDatagram) return Failure{Reason::RpcCallTooLong};
  return rope.flatten();
}

void UdpChannel::transmit(Pending& pending) {
  pending.again = loop_.after(pending.patience, [this, &pending] { transmit_again(pending); });
  pending.patience = std::min(2 * pending.patience, options_.retransmit_max);
  const Result<Ok, Reason> sent = socket_->send(pending.datagram.bytes());
  if (!sent) trouble_ = sent.error();
}

// What is signed is another datagram each time.
void UdpChannel::transmit_again(Pending& pending) {
  if (pending.message.signer != nullptr) {
    Result<Buffer, Reason> datagram = datagram_of(pending.message);
    if (!datagram) return end(pending, Failure{failed(datagram.error())});
    pending.datagram = *std::move(datagram);
  }
  transmit(pending);
}

void UdpChannel::expire(Pending& pending) {
  trace(Reason::TimedOut, where_);
  const Reason reason = trouble_ == Reason::None ? Reason::TimedOut : trouble_;
  end(pending, Failure{failed(reason)});
}

CallError UdpChannel::failed(Reason reason) const {
  CallError error = CallError::transport(reason, where_);
  error.sent = true;
  return error;
}

// False when it has been ended already.
bool UdpChannel::remove(Pending& pending) {
  const auto found = std::find(waiting_.begin(), waiting_.end(), &pending);
  if (found == waiting_.end()) return false;
  waiting_.erase(found);
  pending.deadline.cancel();
  pending.again.cancel();
  return true;
}

void UdpChannel::end(Pending& pending, Result<ReplyMessage, CallError> result) {
  if (remove(pending)) pending.done.complete(std::move(result));
}

void UdpChannel::on_datagram(Bytes message) {
  const Result<oncrpc::MessageStart, Reason> start = oncrpc::peek(message);
  if (!start) return trace(start.error(), where_);
  if (start->type != oncrpc::MessageType::REPLY) return trace(Reason::RpcNoReverseService, where_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Pending* pending) {
    return pending->message.xid == start->xid;
  });
  // The second Reply to a Call that was sent twice is no news.
  if (found == waiting_.end()) return trace(Reason::RpcReplyUnmatched, where_);
  trouble_ = Reason::None;
  ReplyMessage reply;
  reply.payload = Buffer::copy_of(message);
  end(**found, std::move(reply));
}

Task<void> UdpChannel::close() {
  shut_ = Reason::Shutdown;
  while (!waiting_.empty()) end(*waiting_.back(), Failure{failed(Reason::Shutdown)});
  while (active_ > 0) co_await resume_on(loop_);
  if (socket_) socket_->close();
  // The DatagramReceiver may be in the middle of the datagram whose call closes the Channel and
  // lets it go.
  co_await resume_on(loop_);
}

Task<Result<std::unique_ptr<Channel>, CallError>> UdpConnector::connect(Address server,
                                                                        CancelToken cancel) {
  auto channel = std::make_unique<UdpChannel>(loop_, std::move(server), options_, from_);
  const Result<Ok, Reason> opened = co_await channel->open(cancel);
  if (!opened) co_return Failure{CallError::transport(opened.error(), channel->where())};
  co_return std::unique_ptr<Channel>(std::move(channel));
}

}  // namespace stag::rpc::udp
