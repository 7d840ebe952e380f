// Server: programs behind any number of transports and loops.
//
//   rpc::Server server;
//   server.add(std::move(program));
//   auto listener = endpoint::listen(server, ...);
//
// Everything is registered before the first transport starts; from then on the Server is read-only
// but for its replay cache, and serve() runs on many loops at once. It outlives its transports and
// the Calls they carried (active_calls() tells).
#pragma once

#include <memory>
#include <vector>

#include "base/striped_count.h"
#include "oncrpc/dispatch.h"
#include "rpc/authenticator.h"
#include "rpc/program.h"
#include "rpc/replay_cache.h"
#include "rpc/service.h"

namespace stag::rpc {

struct ServerOptions {
  ReplayCacheOptions replay_cache;
};

class Server : public Service {
 public:
  // Knows AUTH_NONE and AUTH_SYS.
  explicit Server(ServerOptions options = {});
  virtual ~Server();

  void add(Program program);
  // One program, one procedure: makes the Program when it is not there yet.
  template <xdr::Procedure P, class F>
  Server& add(F function) {
    program(P::program, P::version).template add<P>(std::move(function));
    return *this;
  }
  // Replaces the authenticator of the same flavor.
  void add(std::unique_ptr<Authenticator> authenticator);

  // What is served, in the order it was added: for whoever registers it with rpcbind.
  std::vector<const Program*> programs() const;

  Task<std::optional<OutgoingReply>> serve(IncomingCall& call) override;

  bool is_worth_fetching(const Origin& origin, Bytes message) const override;
  std::uint64_t reply_max(const Origin& origin, const Buffer& call) const noexcept override;

  ReplayCache& replay_cache() { return replay_cache_; }
  std::size_t active_calls() const override { return active_.sum(); }

 private:
  // What a Call is for.
  struct Target {
    const Program::Entry* entry = nullptr;
    bool once_only = false;  // a repetition is answered from the replay cache
  };
  Program& program(std::uint32_t program, std::uint32_t version);
  Authenticator* authenticator(oncrpc::AuthFlavor flavor) const;
  Result<Target, oncrpc::ReplyStatus> find(const oncrpc::CallHeader& header,
                                           const Origin& origin) const;
  // Calls that are protected, and those that must not run twice.
  Task<std::optional<OutgoingReply>> serve_kept(CallContext& context, IncomingCall& call,
                                                xdr::Decoder& decoder, Target target,
                                                Protection* protection);
  Task<std::optional<CallResults>> run_once(CallContext& context, const IncomingCall& call,
                                            xdr::Decoder& decoder, const Program::Entry& entry);

  oncrpc::DispatchTable<Program> programs_;
  std::vector<std::unique_ptr<Authenticator>> authenticators_;
  ReplayCache replay_cache_;
  StripedCount active_;
};

}  // namespace stag::rpc
