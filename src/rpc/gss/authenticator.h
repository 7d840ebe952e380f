// The server's half of RPCSEC_GSS: answers the control messages, and tells who the caller of a data
// request is. A request is judged at once where nobody else uses its context.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/brief_mutex.h"
#include "gss/credential.h"
#include "rpc/gss/context_table.h"
#include "rpc/gss/rpcsec_gss.h"

namespace stag::rpc {

// Thread: any, as every Authenticator.
class GssAuthenticator final : public Authenticator {
 public:
  // Tokens of one client that may wait.
  static constexpr std::uint32_t kWaiting = 2048;

  explicit GssAuthenticator(GssServerOptions options);

  oncrpc::AuthFlavor flavor() const override { return oncrpc::AuthFlavor::RPCSEC_GSS; }
  bool authenticate_at_once(const oncrpc::CallHeader& header, const IncomingCall& call,
                            Authentication& to) override;
  Task<Authentication> authenticate(const oncrpc::CallHeader& header,
                                    const IncomingCall& call) override;
  bool may_accept(const oncrpc::CallHeader& header) const override;
  // RFC 2203 5.3.3.1: a number that is a window behind the highest is refused.
  bool minds_order() const override { return true; }

  const ContextTable& contexts() const { return contexts_; }

 private:
  // Context creation (RFC 2203 section 5.2).
  Task<Authentication> create(const gss::Credential& credential, const oncrpc::CallHeader& header,
                              const IncomingCall& call);
  Task<gss::Step> accept(ServerContext& context, Bytes token, const IncomingCall& call);
  Task<gss::Major> admit(ServerContext& context, Loop& loop);
  Authentication established(const std::shared_ptr<ServerContext>& made, const gss::Step& step,
                             TimePoint now);
  // Data requests and context destruction (RFC 2203 sections 5.3.3 and 5.4). The caller has the
  // context's lock.
  void judge(const std::shared_ptr<ServerContext>& context, const gss::Credential& credential,
             const oncrpc::CallHeader& header, const IncomingCall& call, Authentication& to);
  void destroy(ServerContext& context, const oncrpc::CallHeader& header, Authentication& to);

  const GssServerOptions options_;
  ContextTable contexts_;
  // The tokens of one host (ServerContext::client), which are accepted one after the other.
  struct Lane {
    AwaitedLock turn;
    std::uint32_t tokens = 0;  // that wait, and the one that is being accepted
  };
  class InLane;
  BriefMutex lanes_mutex_;
  std::map<const void*, Lane> lanes_;  // of those that have tokens
};

}  // namespace stag::rpc
