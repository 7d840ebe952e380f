// Server: programs behind any number of transports and loops.
//
//   rpc::Server server;
//   server.add(std::move(program));
//   auto listener = endpoint::listen(server, ...);
//
// Programs and authenticators are added before the first transport starts; from then on the Server
// is read-only apart from its replay cache. Thread: serve() runs on many loops at once. Ownership:
// the Server outlives its transports and the Calls that they carried (active_calls() counts them).
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "oncrpc/dispatch.h"
#include "rpc/authenticator.h"
#include "rpc/program.h"
#include "rpc/replay_cache.h"
#include "rpc/service.h"

namespace stag::rpc {

class CallWatch;
class LoopCounts;

struct ServerOptions {
  ReplayCacheOptions replay_cache;
};

class Server : public Service {
 public:
  // Has the authenticators of AUTH_NONE and AUTH_SYS.
  explicit Server(ServerOptions options = {});
  virtual ~Server();

  // One Program for each program and version.
  void add(Program program);
  // Adds the handler of procedure P; makes its Program, with the default binding, when there is
  // none.
  template <ServableProcedure P, class F>
  Server& add(F function) {
    program(P::program, P::version).template add<P>(std::move(function));
    return *this;
  }
  // Replaces the authenticator of the same flavor.
  void add(std::unique_ptr<Authenticator> authenticator);

  // Tells `observer` of every Call; before the first transport starts. It outlives the Server.
  void observe(Observer& observer) { observer_ = &observer; }
  Observer* observer() const noexcept override { return observer_; }

  // The programs in the order they were added, for example to register them with rpcbind.
  std::vector<const Program*> programs() const;

  Task<std::optional<OutgoingReply>> serve(IncomingCall& call) override;

  void on_arrival(IncomingCall& call) override;
  bool is_worth_fetching(const Origin& origin, Bytes message) const override;
  Buffer place(const IncomingCall& call, std::uint32_t position,
               std::uint32_t length) noexcept override;
  std::optional<std::uint64_t> reply_max(const Origin& origin,
                                         const Buffer& call) const noexcept override;

  // From now on no Call begins: each is dropped without an answer, and its client asks again when
  // its connection has ended. Calls in progress go on; when active_calls() is 0 there will be none
  // any more. Thread: any.
  void stop_serving() { stopped_.store(true); }

  ReplayCache& replay_cache() { return replay_cache_; }
  std::size_t active_calls() const override;
  std::size_t active_calls_on(const Loop& loop) const override;

 private:
  // What a Call is for.
  struct Target {
    const Program::Entry* entry = nullptr;
    bool once_only = false;  // a repetition is answered from the replay cache
  };
  Program& program(std::uint32_t program, std::uint32_t version);
  Authenticator* authenticator(oncrpc::AuthFlavor flavor) const;
  bool authenticate_at_once(const oncrpc::CallHeader& header, IncomingCall& call,
                            Authentication& to) const;
  Result<Target, oncrpc::ReplyStatus> find(const oncrpc::CallHeader& header,
                                           const Origin& origin) const;
  // Calls that are protected, and those that must not run twice.
  Task<std::optional<OutgoingReply>> serve_kept(CallContext& context, IncomingCall& call,
                                                xdr::Decoder& decoder, Target target,
                                                Protection* protection, CallWatch& watch);
  Task<std::optional<CallResults>> run_once(CallContext& context, const IncomingCall& call,
                                            xdr::Decoder& decoder, const Program::Entry& entry);

  oncrpc::DispatchTable<Program> programs_;
  std::vector<std::unique_ptr<Authenticator>> authenticators_;
  ReplayCache replay_cache_;
  const std::unique_ptr<LoopCounts> active_;
  std::atomic<bool> stopped_ = false;
  bool places_ = false;  // any of the programs
  Observer* observer_ = nullptr;
};

}  // namespace stag::rpc
