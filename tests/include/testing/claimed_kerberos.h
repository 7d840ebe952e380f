// RPCSEC_GSS without Kerberos, for tests of what a server makes of the callers that a mechanism has
// authenticated: the client claims its pseudo-flavor, ids and name, and is believed.
#pragma once

#include <memory>
#include <string>

#include "rpc/authenticator.h"
#include "rpc/channel.h"
#include "rpc/client_security.h"
#include "rpc/credentials.h"
#include "xdr/decoder.h"
#include "xdr/encoder.h"

namespace stag::testing {

class ClaimedKerberosAuthenticator final : public rpc::Authenticator {
 public:
  oncrpc::AuthFlavor flavor() const override { return oncrpc::AuthFlavor::RPCSEC_GSS; }
  bool authenticate_at_once(const oncrpc::CallHeader& header, const rpc::IncomingCall&,
                            rpc::Authentication& to) override {
    xdr::Decoder decoder(Buffer::copy_of(header.credential.body));
    std::uint32_t flavor = 0;
    std::string name;
    if (!decoder.integers(flavor, to.caller.uid, to.caller.gid) || !decoder.string(0, name, 255)) {
      to.refuse(oncrpc::AuthStat::AUTH_BADCRED);
      return true;
    }
    to.caller.flavor = static_cast<oncrpc::AuthFlavor>(flavor);
    to.caller.name = std::make_shared<const std::string>(std::move(name));
    return true;
  }
};

class ClaimedKerberos final : public rpc::ClientSecurity {
 public:
  ClaimedKerberos(oncrpc::AuthFlavor flavor, std::uint32_t uid, std::uint32_t gid,
                  std::string_view name)
      : flavor_(flavor) {
    xdr::Encoder encoder;
    encoder.u32(static_cast<std::uint32_t>(flavor));
    encoder.u32(uid);
    encoder.u32(gid);
    encoder.string(0, name);
    body_ = std::move(encoder).finish().rope().flatten();
  }
  bool transforms() const override { return flavor_ != oncrpc::AuthFlavor::KRB5; }
  std::uint32_t reply_overhead() const override { return 0; }
  Task<Result<std::unique_ptr<rpc::CallSecurity>, rpc::CallError>> begin(
      rpc::Channel&, const oncrpc::CallHeader&, const rpc::CallMessage&) override {
    co_return std::unique_ptr<rpc::CallSecurity>(std::make_unique<Claim>(body_));
  }
  oncrpc::AuthFlavor flavor() const override { return flavor_; }

 private:
  class Claim final : public rpc::CallSecurity {
   public:
    explicit Claim(const Buffer& body) : body_(body) {}
    Result<oncrpc::OpaqueAuth, Reason> credential() override {
      return oncrpc::OpaqueAuth{oncrpc::AuthFlavor::RPCSEC_GSS, body_.bytes()};
    }
    Result<oncrpc::OpaqueAuth, Reason> verifier(Bytes) override { return oncrpc::OpaqueAuth{}; }
    bool accepts(const oncrpc::OpaqueAuth&) override { return true; }
    bool renew(oncrpc::AuthStat) override { return false; }

   private:
    const Buffer body_;
  };

  const oncrpc::AuthFlavor flavor_;
  Buffer body_;
};

inline rpc::Credentials claimed_kerberos(oncrpc::AuthFlavor flavor, std::uint32_t uid,
                                         std::uint32_t gid,
                                         std::string_view name = "user@EXAMPLE.ORG") {
  return rpc::Credentials::secured(std::make_shared<ClaimedKerberos>(flavor, uid, gid, name));
}

}  // namespace stag::testing
