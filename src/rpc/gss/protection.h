// The Protections of RPCSEC_GSS: of a data request, and of an answer to a control message.
#pragma once

#include <memory>

#include "base/pooled.h"
#include "gss/credential.h"
#include "gss/mechanism.h"
#include "rpc/gss/rpcsec_gss.h"
#include "rpc/gss/server_context.h"

namespace stag::rpc {

// Has nothing but a verifier.
class GssVerifier : public Protection, public Pooled {
 public:
  explicit GssVerifier(const gss::Mic& mic) : mic_(mic) {}
  oncrpc::OpaqueAuth reply_verifier() override {
    return {oncrpc::AuthFlavor::RPCSEC_GSS, mic_.bytes()};
  }
  std::uint32_t reply_overhead() const override {
    return mic_.size() + static_cast<std::uint32_t>(xdr_pad(mic_.size()));
  }

 private:
  const gss::Mic mic_;
};

// Protects arguments and results, too. What is long is computed by workers; where they have no room
// the loop does it.
class GssProtection final : public GssVerifier {
 public:
  // `options` outlives this object, as does `loop`, which is the Call's.
  GssProtection(const gss::Mic& mic, std::shared_ptr<ServerContext> context,
                const gss::Credential& credential, const GssServerOptions& options, Loop& loop);

  bool transforms() const override { return service_ != gss::Service::none; }
  Task<Result<Buffer, oncrpc::ReplyStatus>> unwrap(Buffer arguments) override;
  Task<std::optional<xdr::Stream>> wrap(xdr::Stream results) override;
  std::uint32_t reply_overhead() const override;

 private:
  const std::shared_ptr<ServerContext> context_;
  const GssServerOptions& options_;
  Loop& loop_;
  const gss::Service service_;
  const std::uint32_t seq_num_;
};

}  // namespace stag::rpc
