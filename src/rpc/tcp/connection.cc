#include "rpc/tcp/connection.h"

#include "oncrpc/message.h"
#include "rpc/tcp/responder.h"
#include "rpc/tcp/reverse_channel.h"

namespace stag::rpc::tcp {

ServerConnection::ServerConnection(Owner& owner, std::unique_ptr<Wire> wire,
                                   net::PeerPlaces::Place place, Service& service,
                                   const ServerOptions& options, TaskGroup& tasks)
    : owner_(owner),
      place_(std::move(place)),
      stream_(std::make_shared<RecordStream>(std::move(wire), options.stream)),
      reverse_(std::make_shared<ReverseChannel>(stream_)) {
  auto origin = std::make_shared<Origin>();
  origin->peer = stream_->peer();
  origin->local = stream_->local();
  if (origin->peer.host.find(':') != std::string::npos) origin->netid = "tcp6";
  origin->loop = &stream_->loop();
  origin->reverse = reverse_;
  where_ = "tcp " + to_string(origin->peer);
  responder_ =
      std::make_shared<Responder>(service, std::move(origin), stream_, options.max_calls, tasks);
  stream_->start(*this);
}

ServerConnection::~ServerConnection() = default;

void ServerConnection::on_record(Buffer record) {
  Result<oncrpc::MessageStart, Reason> start = oncrpc::peek(record.bytes());
  if (!start) return stream_->close(start.error());
  if (start->type == oncrpc::MessageType::REPLY)
    reverse_->on_reply(std::move(record));
  else
    responder_->on_call(std::move(record));
}

void ServerConnection::on_room() {
  responder_->start_held();
}

void ServerConnection::on_stream_closed(Reason reason) {
  trace(reason == Reason::ConnectionClosed ? Reason::RpcPeerClosed : reason, where_);
  responder_->detach();
  reverse_->on_stream_closed();
  owner_.on_connection_closed(*this);
}

}  // namespace stag::rpc::tcp
