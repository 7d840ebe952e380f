#include "rpc/tcp/worker.h"

#include "oncrpc/message.h"
#include "rpc/tcp/requester.h"
#include "rpc/tcp/responder.h"

namespace stag::rpc::tcp {
namespace {

// Calls to the client on its own connection. It does not come back when the connection is lost.
class ReverseChannel final : public Channel, private Requester::Owner {
 public:
  ReverseChannel(Loop& loop, std::shared_ptr<RecordStream> stream)
      : Channel(1),
        loop_(loop),
        stream_(stream),
        requester_(loop, *this, "tcp " + to_string(stream->peer())) {
    requester_.attach(std::move(stream));
  }

  void on_reply(Buffer record) { requester_.on_reply(std::move(record)); }
  void on_stream_closed() {
    requester_.detach(Reason::RpcConnectionLost);
    requester_.shut(Reason::RpcConnectionLost);
    stream_ = nullptr;
  }

  Task<Result<ReplyMessage, CallError>> call(CallMessage& message) override {
    return requester_.call(message);
  }
  Task<void> close() override {
    requester_.shut(Reason::Shutdown);
    while (requester_.active() > 0) co_await resume_on(loop_);
  }
  void serve_reverse(Service&) override { trace(Reason::RpcNoReverseDirection, where()); }
  Loop& loop() override { return loop_; }
  TransportKind kind() const override { return TransportKind::Tcp; }
  std::string where() const override { return requester_.where(); }

 private:
  void on_stream_wanted() override {}
  void on_silence() override {
    if (stream_ != nullptr) stream_->close(Reason::TimedOut);
  }

  Loop& loop_;
  std::shared_ptr<RecordStream> stream_;
  Requester requester_;
};

}  // namespace

class ServerConnection final : private RecordStream::Events {
 public:
  ServerConnection(Worker& worker, net::TcpSocket socket, net::PeerPlaces::Place place)
      : worker_(worker),
        place_(std::move(place)),
        stream_(std::make_shared<RecordStream>(std::move(socket), worker.options_.stream)),
        reverse_(std::make_shared<ReverseChannel>(worker.loop_, stream_)) {
    auto origin = std::make_shared<Origin>();
    origin->peer = stream_->peer();
    origin->local = stream_->local();
    if (origin->peer.host.find(':') != std::string::npos) origin->netid = "tcp6";
    origin->loop = &worker.loop_;
    origin->reverse = reverse_;
    where_ = "tcp " + to_string(origin->peer);
    responder_ = std::make_shared<Responder>(worker.service_, std::move(origin), stream_,
                                             worker.options_.max_calls, worker.tasks_);
    stream_->start(*this);
  }

  void close(Reason reason) { stream_->close(reason); }

 private:
  void on_record(Buffer record) override {
    Result<oncrpc::MessageStart, Reason> start = oncrpc::peek(record.bytes());
    if (!start) return stream_->close(start.error());
    if (start->type == oncrpc::MessageType::REPLY)
      reverse_->on_reply(std::move(record));
    else
      responder_->on_call(std::move(record));
  }
  void on_room() override { responder_->start_held(); }
  void on_stream_closed(Reason reason) override {
    trace(reason == Reason::ConnectionClosed ? Reason::RpcPeerClosed : reason, where_);
    responder_->detach();
    reverse_->on_stream_closed();
    worker_.forget(this);
  }

  Worker& worker_;
  net::PeerPlaces::Place place_;
  std::shared_ptr<RecordStream> stream_;
  std::shared_ptr<ReverseChannel> reverse_;
  std::shared_ptr<Responder> responder_;
  std::string where_;
};

Worker::Worker(net::EpollLoop& loop, Service& service, const ServerOptions& options)
    : loop_(loop), service_(service), options_(options) {}

Worker::~Worker() {
  STAG_CHECK(open_.empty());
}

void Worker::adopt(net::UniqueFd fd, net::PeerPlaces::Place place) {
  if (closing_) return;
  Result<net::TcpSocket, Reason> socket = net::TcpSocket::adopt(loop_, std::move(fd));
  if (!socket.ok()) return trace(socket.error());
  auto connection = std::make_unique<ServerConnection>(*this, *std::move(socket), std::move(place));
  ServerConnection* key = connection.get();
  open_.emplace(key, std::move(connection));
}

void Worker::forget(ServerConnection* connection) {
  open_.erase(connection);
}

Task<void> Worker::close() {
  closing_ = true;
  for (const auto& open : open_) open.second->close(Reason::Shutdown);
  while (!open_.empty()) co_await resume_on(loop_);
  co_await tasks_.join();
}

}  // namespace stag::rpc::tcp
