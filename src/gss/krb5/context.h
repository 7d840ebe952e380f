// A security context of MIT's library: what acceptor and initiator have in common.
#pragma once

#include <gssapi/gssapi.h>

#include <string>

#include "gss/mechanism.h"

namespace stag::gss::krb5 {

class Krb5Context : public Context {
 public:
  Krb5Context() = default;
  Krb5Context(const Krb5Context&) = delete;
  Krb5Context& operator=(const Krb5Context&) = delete;
  ~Krb5Context() override;

  std::string peer() const override { return peer_; }
  std::uint32_t lifetime() const override { return lifetime_; }
  Major get_mic(Pieces message, Mic& to) override;
  Major verify_mic(Pieces message, Bytes mic) override;
  Result<Buffer, Major> wrap(Pieces message) override;
  Result<Buffer, Major> unwrap(Buffer sealed) override;

 protected:
  gss_ctx_id_t context_ = GSS_C_NO_CONTEXT;
  std::string peer_;
  std::uint32_t lifetime_ = 0;
};

// RFC 3961, RFC 8009: sizes of the enctypes that MIT has, with some room.
inline constexpr Sizes kSizes{64, 128};

}  // namespace stag::gss::krb5
