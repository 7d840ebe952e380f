// One connection of a TCP server: its stream, the Calls that came on it, and Calls to its client.
#pragma once

#include <memory>
#include <string>

#include "base/task_group.h"
#include "net/connection_limits.h"
#include "rpc/observer.h"
#include "rpc/service.h"
#include "rpc/tcp/server.h"
#include "rpc/tcp/stream.h"

namespace stag::rpc::tcp {

class Responder;
class ReverseChannel;

// Thread: the wire's loop.
class ServerConnection final : private RecordStream::Events {
 public:
  class Owner {
   public:
    // Once. Destroys the connection; Calls in progress go on in the TaskGroup.
    virtual void on_connection_closed(ServerConnection& connection) = 0;

   protected:
    ~Owner() = default;
  };

  // Begins to read. `owner`, `service` and `tasks` outlive it; `place` is kept to its end. The
  // first Call to the client has the XID `reverse_xid`.
  ServerConnection(Owner& owner, std::unique_ptr<Wire> wire, net::ConnectionLimits::Place place,
                   Service& service, const ServerOptions& options,
                   std::shared_ptr<ByteBudget> budget, TaskGroup& tasks, std::uint32_t reverse_xid);
  ~ServerConnection();

  const Address& peer() const { return origin_->peer; }
  // The owner is told in a later turn.
  void close(Reason reason) { stream_->close(reason); }
  // Begins no Call any more and ends in good order (RecordStream::finish()). The owner is told when
  // it has ended, in a later turn.
  void finish() { stream_->finish(); }

 private:
  void on_record(Buffer record) override;
  bool awaits_reply() const override;
  void on_left(const Rope& reply, bool sent) noexcept override;
  void on_room() override;
  void on_stream_closed(Reason reason) override;
  void on_room_in_account();
  Bytes waiting_call() const;
  void tell_of_end(Reason reason) noexcept;

  Owner& owner_;
  net::ConnectionLimits::Place place_;
  std::shared_ptr<Account> account_;
  std::shared_ptr<RecordStream> stream_;
  std::shared_ptr<ReverseChannel> reverse_;
  std::shared_ptr<Responder> responder_;
  std::string where_;
  std::shared_ptr<const Origin> origin_;
  Observer* observer_ = nullptr;  // from on_connected() to on_disconnected()
};

}  // namespace stag::rpc::tcp
