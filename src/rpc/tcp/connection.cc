#include "rpc/tcp/connection.h"

#include <utility>

#include "oncrpc/message.h"
#include "rpc/late_xid.h"
#include "rpc/tcp/responder.h"
#include "rpc/tcp/reverse_channel.h"

namespace stag::rpc::tcp {

ServerConnection::ServerConnection(Owner& owner, std::unique_ptr<Wire> wire,
                                   net::ConnectionLimits::Place place, Service& service,
                                   const ServerOptions& options, std::shared_ptr<ByteBudget> budget,
                                   TaskGroup& tasks, std::uint32_t reverse_xid)
    : owner_(owner),
      place_(std::move(place)),
      account_(std::make_shared<Account>(std::move(budget), wire->peer().host, wire->loop(),
                                         options.max_bytes)),
      stream_(std::make_shared<RecordStream>(std::move(wire), options.stream, account_)),
      reverse_(std::make_shared<ReverseChannel>(stream_, reverse_xid)) {
  auto origin = std::make_shared<Origin>();
  origin->peer = stream_->peer();
  origin->local = stream_->local();
  if (origin->peer.host.find(':') != std::string::npos) origin->netid = "tcp6";
  origin->loop = &stream_->loop();
  origin->connection = std::make_shared<rpc::Connection>();
  origin->reverse = reverse_;
  where_ = "tcp " + to_string(origin->peer);
  origin_ = origin;
  responder_ = std::make_shared<Responder>(service, std::move(origin), stream_, account_,
                                           options.max_calls, tasks);
  account_->on_room = [this] { on_room_in_account(); };
  stream_->start(*this);
  observer_ = service.observer();
  if (observer_ != nullptr) observer_->on_connected(*origin_);
}

// Calls in progress may keep the stream and the account.
ServerConnection::~ServerConnection() {
  tell_of_end(Reason::OutOfMemory);
  stream_->disown();
  account_->on_room = nullptr;
}

void ServerConnection::tell_of_end(Reason reason) noexcept {
  if (Observer* const observer = std::exchange(observer_, nullptr))
    observer->on_disconnected(*origin_, reason);
}

void ServerConnection::on_record(Buffer record) {
  Result<oncrpc::MessageStart, Reason> start = oncrpc::peek(record.bytes());
  if (start && start->type == oncrpc::MessageType::CALL)
    return responder_->on_call(std::move(record));
  account_->give(record.size());
  if (!start) return stream_->close(start.error());
  reverse_->on_reply(std::move(record));
}

bool ServerConnection::awaits_reply() const {
  return reverse_->awaits_reply();
}

// Calls in the reverse direction are not told of.
void ServerConnection::on_left(const Rope& reply, bool sent) noexcept {
  if (observer_ != nullptr) observer_->on_whole_reply(*origin_, WholeReply::of(reply, sent));
}

void ServerConnection::on_room_in_account() {
  responder_->start_held();
  stream_->on_room_in_account();
}

void ServerConnection::on_room() {
  responder_->start_held();
}

// One that waits for room for its Reply, or else the one that there is no room to read.
Bytes ServerConnection::waiting_call() const {
  const Bytes next = responder_->next();
  return next.empty() ? stream_->begun() : next;
}

void ServerConnection::on_stream_closed(Reason reason) {
  if (reason == Reason::RpcNoRoom)
    trace_late(reason, where_, LateXid(waiting_call()));
  else
    trace(reason == Reason::ConnectionClosed ? Reason::RpcPeerClosed : reason, where_);
  tell_of_end(reason);
  responder_->detach();
  reverse_->on_stream_closed();
  owner_.on_connection_closed(*this);
}

}  // namespace stag::rpc::tcp
