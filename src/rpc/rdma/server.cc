#include "rpc/rdma/server.h"

#include "base/completion.h"
#include "rpc/rdma/reverse_channel.h"

namespace stag::rpc::rdma {

class Server::LoopShard final : private LinkOwner {
 public:
  LoopShard(Loop& loop, std::vector<IpNetwork> allow, std::uint32_t seed)
      : loop_(loop), allow_(std::move(allow)), reverse_xids_(seed) {}
  ~LoopShard() { STAG_CHECK(links_.empty()); }

  Loop& loop() { return loop_; }

  void add(std::unique_ptr<fabric::Connection> connection, const LinkSettings& settings,
           Service& service) {
    const bool allowed = is_allowed(allow_, connection->peer_address().host);
    auto link =
        std::make_shared<Link>(std::move(connection), settings, static_cast<LinkOwner&>(*this));
    auto reverse = std::make_shared<ReverseChannel>(link, reverse_xids_.next());
    const auto entry = links_.emplace(link.get(), Entry{link, reverse}).first;
    if (closing_) link->close(Reason::Shutdown);
    // It was, when it asked to connect.
    if (!allowed) link->close(Reason::PeerNotAllowed);
    try {
      link->open(&service, reverse);
    } catch (const std::bad_alloc&) {
      links_.erase(entry);
      throw;
    }
  }

  // Ends the connections of others than these, and of such as are on their way here.
  void allow(std::vector<IpNetwork> networks) {
    allow_ = std::move(networks);
    for (auto& [link, entry] : links_)
      if (!is_allowed(allow_, link->peer().host)) link->close(Reason::PeerNotAllowed);
  }

  // `done` runs on this shard's loop once every connection is gone.
  void close(Loop::Function done) {
    closing_ = true;
    done_ = std::move(done);
    for (auto& [link, entry] : links_) link->close(Reason::Shutdown);
    end_if_empty();
  }

 private:
  struct Entry {
    std::shared_ptr<Link> link;
    std::shared_ptr<ReverseChannel> reverse;
  };

  void on_link_down(Link& link, Reason) override {
    links_.erase(&link);
    end_if_empty();
  }
  void end_if_empty() {
    if (closing_ && links_.empty() && done_) std::exchange(done_, nullptr)();
  }

  Loop& loop_;
  std::vector<IpNetwork> allow_;
  std::unordered_map<Link*, Entry> links_;
  XidSeeds reverse_xids_;
  bool closing_ = false;
  Loop::Function done_;
};

Server::Server(Service& service, ServerOptions options)
    : service_(service),
      options_(options),
      allow_(options.allow),
      seeds_(options.seed),
      budget_(std::make_shared<ByteBudget>(options.max_bytes_all)) {}

Server::~Server() {
  STAG_CHECK(listener_ == nullptr);
}

Result<Address, Reason> Server::listen(fabric::Fabric& fabric, const Address& address) {
  STAG_CHECK(listener_ == nullptr);
  loop_ = &fabric.loop();
  answer_ = connection_options(options_.transport, fabric, Side::Server, options_.reverse_credits,
                               options_.credits);
  shards_.clear();
  for (Loop* each : fabric.accepting_loops())
    shards_.push_back(std::make_unique<LoopShard>(*each, allow_, seeds_.next()));
  fabric::ListenOptions options;
  options.max_connections = options_.max_connections;
  options.max_connections_per_peer = options_.max_connections_per_peer;
  auto listener = fabric.listen(address, options, *this);
  if (!listener) return Failure{listener.error()};
  listener_ = *std::move(listener);
  return listener_->local_address();
}

void Server::allow(const std::vector<IpNetwork>& networks) {
  allow_ = networks;
  for (const std::unique_ptr<LoopShard>& shard : shards_)
    shard->loop().post([shard = shard.get(), networks] { shard->allow(networks); });
}

Task<void> Server::close() {
  stop_accepting();
  Completion<Ok> all_closed;
  std::size_t left = shards_.size();
  for (const std::unique_ptr<LoopShard>& shard : shards_)
    shard->loop().post([&, shard = shard.get()] {
      shard->close([&] {
        loop_->post([&] {
          if (--left == 0) all_closed.complete(Ok{});
        });
      });
    });
  if (left != 0) co_await all_closed;
}

Result<fabric::ConnectOptions, Reason> Server::on_connect_request(
    const fabric::ConnectRequest& request) {
  if (!is_allowed(allow_, request.peer.host)) {
    trace(Reason::PeerNotAllowed, to_string(request.peer));
    return Failure{Reason::PeerNotAllowed};
  }
  try {
    return answer_;
  } catch (const std::bad_alloc&) {
    return Failure{Reason::OutOfMemory};
  }
}

void Server::on_connection(std::unique_ptr<fabric::Connection> connection) {
  LinkSettings settings;
  settings.transport = options_.transport;
  settings.transport.max_chunk_bytes = max_chunk_bytes_.load(std::memory_order_relaxed);
  settings.side = Side::Server;
  settings.credits_requested = options_.reverse_credits;
  settings.credits_granted = options_.credits;
  settings.announced = !answer_.private_data.empty();
  settings.requests_chunks = options_.reverse_chunks;
  settings.budget = budget_;
  LoopShard& shard = shard_of(connection->loop());
  try {
    shard.add(std::move(connection), settings, service_);
  } catch (const std::bad_alloc&) {
    // With what was made of its Link the connection is gone.
    trace(Reason::OutOfMemory);
  }
}

Server::LoopShard& Server::shard_of(Loop& loop) {
  for (const std::unique_ptr<LoopShard>& shard : shards_)
    if (&shard->loop() == &loop) return *shard;
  STAG_CHECK(false);
  return *shards_.front();
}

}  // namespace stag::rpc::rdma
