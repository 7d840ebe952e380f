#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>

#include "gss/krb5/context.h"
#include "gss/krb5/handles.h"
#include "gss/krb5/krb5.h"
#include "gss/krb5/status.h"

namespace stag::gss::krb5 {
namespace {

class AcceptorContext final : public Krb5Context {
 public:
  explicit AcceptorContext(std::shared_ptr<const Credential> credential)
      : credential_(std::move(credential)) {}

  Step step(Bytes token) override {
    gss_buffer_desc in = view_of(token);
    GssBuffer out;
    Name peer;
    OM_uint32 minor = 0, flags = 0, lifetime = 0;
    const OM_uint32 major = gss_accept_sec_context(&minor, &context_, credential_->get(), &in,
                                                   GSS_C_NO_CHANNEL_BINDINGS, peer.out(), nullptr,
                                                   out.out(), &flags, &lifetime, nullptr);
    Step step{major_of(major), minor, Buffer::copy_of(out.bytes()), {}};
    if (GSS_ERROR(major)) {
      step.token = {};  // RFC 2203 5.2.3.1: of a failure only the status is sent
      step.error = error_of(major, minor, Reason::GssTokenRefused);
    } else if (step.major == Major::COMPLETE) {
      lifetime_ = lifetime;
      establish(peer.get(), step);
    }
    return step;
  }

 private:
  void establish(gss_name_t peer, Step& step) {
    GssBuffer text;
    OM_uint32 minor = 0;
    const OM_uint32 major = gss_display_name(&minor, peer, text.out(), nullptr);
    peer_ = text_of(text.bytes());
    if (!GSS_ERROR(major) && !peer_.empty()) return;
    step = Step{Major::FAILURE, minor, {}, error_of(major, minor, Reason::GssTokenRefused)};
  }

  const std::shared_ptr<const Credential> credential_;
};

class Krb5Acceptor final : public Acceptor {
 public:
  explicit Krb5Acceptor(Credential credential)
      : credential_(std::make_shared<const Credential>(std::move(credential))) {}
  std::unique_ptr<Context> begin() override {
    return std::make_unique<AcceptorContext>(credential_);
  }
  Sizes sizes() const override { return kSizes; }

 private:
  const std::shared_ptr<const Credential> credential_;
};

}  // namespace

Result<std::unique_ptr<Acceptor>, Error> acceptor(const AcceptorOptions& options) {
  OM_uint32 minor = 0;
  Name name;
  if (!options.service.empty()) {
    gss_buffer_desc text = view_of(bytes_of(options.service));
    const OM_uint32 major = gss_import_name(&minor, &text, GSS_C_NT_HOSTBASED_SERVICE, name.out());
    if (GSS_ERROR(major)) return Failure{error_of(major, minor, Reason::GssFailed)};
  }
  gss_key_value_element_desc keytab{"keytab", options.keytab.c_str()};
  const gss_key_value_set_desc store{options.keytab.empty() ? 0u : 1u, &keytab};
  gss_OID_set_desc mechanisms{1, gss_mech_krb5};
  Credential credential;
  const OM_uint32 major =
      gss_acquire_cred_from(&minor, name.get(), GSS_C_INDEFINITE, &mechanisms, GSS_C_ACCEPT, &store,
                            credential.out(), nullptr, nullptr);
  if (GSS_ERROR(major)) return Failure{error_of(major, minor, Reason::GssNoKeytab)};
  return std::unique_ptr<Acceptor>(std::make_unique<Krb5Acceptor>(std::move(credential)));
}

}  // namespace stag::gss::krb5
