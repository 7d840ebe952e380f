#include "cli/commands/conform_callbacks.h"

#include "endpoint/callback_listener.h"
#include "rpcbind/universal_address.h"

namespace stag::cli {
namespace {

class ListeningPlace final : public conform::nfs4::CallbackPlace {
 public:
  ListeningPlace(net::EpollLoop& loop, Address at)
      : listener_(endpoint::make_callback_listener(loop, std::move(at))) {}

  bool listen(rpc::Service& service) override {
    const Result<Address, Reason> at = listener_->listen(service);
    if (!at) return false;
    // RFC 5665 5.2.3.3, 5.2.3.4.
    where_ = {rpcbind::is_ipv6(at->host) ? "tcp6" : "tcp", rpcbind::to_universal(*at)};
    return true;
  }
  nfs::v4::clientaddr4 where() const override { return where_; }
  Task<void> close() override {
    if (!std::exchange(closed_, true)) co_await listener_->close();
  }

 private:
  const std::unique_ptr<rpc::CallbackListener> listener_;
  nfs::v4::clientaddr4 where_;
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<conform::nfs4::CallbackPlace> make_callback_place(net::EpollLoop& loop,
                                                                  Address at) {
  return std::make_unique<ListeningPlace>(loop, std::move(at));
}

}  // namespace stag::cli
