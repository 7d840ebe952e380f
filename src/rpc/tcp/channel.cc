#include "rpc/tcp/channel.h"

#include <new>
#include <utility>

#include "oncrpc/message.h"
#include "rpc/xid_seeds.h"

namespace stag::rpc::tcp {
namespace {

// Connections in a row that end at the first Call without an answer, before the port is taken for
// one of another kind. Enough for a server that turns clients away for the moment.
constexpr std::uint32_t kMostUnanswered = 4;

}  // namespace

TcpChannel::TcpChannel(net::EpollLoop& loop, Address server, const ChannelOptions& options,
                       std::string from)
    : Channel(seed_or_random(options.seed)),
      loop_(loop),
      server_(std::move(server)),
      options_(options),
      from_(std::move(from)),
      requester_(loop, *this, "tcp " + to_string(server_)),
      silence_(loop, *this, options_.probe_after),
      reconnector_(loop, *this, {.first = options.backoff_min, .longest = options.backoff_max},
                   next_xid()) {}

TcpChannel::~TcpChannel() {
  STAG_CHECK(stream_ == nullptr && !reconnector_.connecting());
}

Task<Result<Ok, Reason>> TcpChannel::attempt(CancelToken cancel) {
  net::ConnectOptions options;
  options.timeout = options_.connect_timeout;
  options.from = from_;
  Result<net::TcpSocket, Reason> socket = co_await net::connect(loop_, server_, options, cancel);
  if (!socket) co_return Failure{socket.error()};
  if (reconnector_.stopped()) co_return Failure{Reason::Shutdown};
  adopt(std::move(*socket));
  co_return Ok{};
}

// The stream is the Channel's once all is there that there may be no memory for.
void TcpChannel::adopt(net::TcpSocket socket) {
  account_ = std::make_shared<Account>(nullptr, server_.host, loop_, 0);
  auto stream = std::make_shared<RecordStream>(std::make_unique<SocketWire>(std::move(socket)),
                                               options_.stream, account_);
  if (service_ != nullptr) serve_reverse_on(stream);
  stream->start(*this);
  stream_ = std::move(stream);
  requester_.attach(stream_);
}

void TcpChannel::serve_reverse(Service& service) {
  service_ = &service;
  if (stream_ != nullptr) serve_reverse_on(stream_);
}

void TcpChannel::serve_reverse_on(const std::shared_ptr<RecordStream>& stream) {
  auto origin = std::make_shared<Origin>();
  origin->peer = stream->peer();
  origin->local = stream->local();
  origin->loop = &loop_;
  origin->connection = std::make_shared<rpc::Connection>();
  responder_ =
      std::make_shared<Responder>(*service_, std::move(origin), stream, account_,
                                  options_.max_reverse_calls, tasks_, RecordStream::Turn::Ahead);
}

void TcpChannel::on_stream_wanted() {
  reconnector_.start();
}

void TcpChannel::on_record(Buffer record) {
  Result<oncrpc::MessageStart, Reason> start = oncrpc::peek(record.bytes());
  if (!start) {
    trace(start.error(), where());
    return stream_->close(start.error());
  }
  if (start->type == oncrpc::MessageType::REPLY) {
    if (silence_.on_reply(start->xid)) return;
    // First: the caller that gets the Reply may destroy the Channel.
    if (requester_.waits_for(start->xid)) reconnector_.worked();
    return requester_.on_reply(std::move(record));
  }
  if (responder_ == nullptr) return trace(Reason::RpcNoReverseService, where());
  responder_->on_call(std::move(record));
}

// A port that speaks something else closes every connection at the first Call. A server that was
// ever heard may be starting again. One that turns clients away for the moment takes them later:
// the next call connects anew.
bool TcpChannel::is_unanswered(bool by_peer) {
  unanswered_ = by_peer && !heard_ && requester_.waiting() > 0 ? unanswered_ + 1 : 0;
  if (unanswered_ < kMostUnanswered) return false;
  unanswered_ = 0;
  return true;
}

// The end of calls for which no other connection would be better. Where it was their fault the
// server is well, and the next call waits for nothing: it may be made while these are told.
void TcpChannel::end_hopeless(Reason end) noexcept {
  const bool by_peer = end == Reason::ConnectionClosed || end == Reason::ConnectionReset;
  // A server would execute them again, and send the same again.
  if (end == Reason::RpcRecordTooLong || end == Reason::RpcRecordFragmented) {
    reconnector_.worked();
    end_calls(&Requester::end_all, end);
  }
  if (by_peer && requester_.has_long_calls()) {
    if (requester_.count_refusal()) reconnector_.worked();
    end_calls(&Requester::end_refused, Reason::RpcCallTooLong);
  } else if (is_unanswered(by_peer)) {
    end_calls(&Requester::end_all, Reason::RpcUnanswered);
  }
}

// Detached first, by what asks for no memory: nothing is left of a connection that is lost.
void TcpChannel::on_stream_closed(Reason reason) {
  connections_lost_.fetch_add(1, std::memory_order_relaxed);
  heard_ |= stream_->received_bytes() > 0;
  if (responder_ != nullptr) responder_->detach();
  responder_ = nullptr;
  silence_.on_stream_closed();
  stream_ = nullptr;
  requester_.detach(reason);
  trace(Reason::RpcConnectionLost, requester_.where(), info(reason).text);
  end_hopeless(reason);
  if (requester_.waiting() > 0) reconnect();
}

void TcpChannel::reconnect() noexcept {
  try {
    reconnector_.start();
  } catch (const std::bad_alloc&) {
    end_calls(&Requester::end_all, Reason::OutOfMemory);
  }
}

// No attempt to connect goes on for the calls that wait. What ended it may be over at the next
// call.
void TcpChannel::on_attempts_ended(Reason reason) {
  if (reason != Reason::None && reason != Reason::Shutdown) end_calls(&Requester::end_all, reason);
}

void TcpChannel::end_calls(void (Requester::*end)(Reason) noexcept, Reason reason) noexcept {
  const bool outer = std::exchange(ending_calls_, true);
  (requester_.*end)(reason);
  ending_calls_ = outer;
}

Task<void> TcpChannel::close() {
  reconnector_.stop();
  requester_.shut(Reason::Shutdown);
  if (stream_ != nullptr) stream_->close(Reason::Shutdown);
  co_await reconnector_.join();
  co_await tasks_.join();
  while (stream_ != nullptr || reconnector_.connecting() || requester_.active() > 0 ||
         ending_calls_)
    co_await resume_on(loop_);
}

Task<Result<std::unique_ptr<Channel>, CallError>> TcpConnector::connect(Address server,
                                                                        CancelToken cancel) {
  auto channel = std::make_unique<TcpChannel>(loop_, std::move(server), options_, from_);
  Result<Ok, Reason> connected = co_await channel->connect(cancel);
  if (!connected) co_return Failure{CallError::transport(connected.error(), channel->where())};
  co_return std::unique_ptr<Channel>(std::move(channel));
}

}  // namespace stag::rpc::tcp
