#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>

#include "base/inline_vector.h"
#include "gss/krb5/context.h"
#include "gss/krb5/handles.h"
#include "gss/krb5/krb5.h"
#include "gss/krb5/status.h"

namespace stag::gss::krb5 {
namespace {

// RFC 2203 5.2.2: neither replay detection nor sequence. The server proves itself, too.
constexpr OM_uint32 kFlags = GSS_C_MUTUAL_FLAG | GSS_C_INTEG_FLAG | GSS_C_CONF_FLAG;

class InitiatorContext final : public Krb5Context {
 public:
  InitiatorContext(std::shared_ptr<const Name> target, std::string target_text,
                   Credential credential)
      : target_(std::move(target)), credential_(std::move(credential)) {
    peer_ = std::move(target_text);
  }

  Step step(Bytes token) override {
    gss_buffer_desc in = view_of(token);
    GssBuffer out;
    OM_uint32 minor = 0, flags = 0, lifetime = 0;
    const OM_uint32 major = gss_init_sec_context(
        &minor, credential_.get(), &context_, target_->get(), gss_mech_krb5, kFlags, 0,
        GSS_C_NO_CHANNEL_BINDINGS, token.empty() ? GSS_C_NO_BUFFER : &in, nullptr, out.out(),
        &flags, &lifetime);
    Step step{major_of(major), minor, Buffer::copy_of(out.bytes()), {}};
    if (GSS_ERROR(major)) step.error = error_of(major, minor, Reason::GssFailed);
    if (step.major != Major::COMPLETE) return step;
    lifetime_ = lifetime;
    if ((flags & kFlags) != kFlags)
      step = Step{Major::FAILURE, 0, {}, {Reason::GssFailed, "the server did not prove itself"}};
    return step;
  }

 private:
  const std::shared_ptr<const Name> target_;
  const Credential credential_;
};

class Krb5Initiator final : public Initiator {
 public:
  Krb5Initiator(InitiatorOptions options, Name target)
      : options_(std::move(options)), target_(std::make_shared<const Name>(std::move(target))) {
    // Tickets of a keytab stay in this process: the user's own cache is no place for them.
    if (!options_.client_keytab.empty() && options_.ccache.empty())
      options_.ccache = "MEMORY:stag " + options_.client_keytab + " " + options_.principal;
  }

  Result<std::unique_ptr<Context>, Error> begin() override {
    OM_uint32 minor = 0;
    Name self;
    if (!options_.principal.empty()) {
      gss_buffer_desc text = view_of(bytes_of(options_.principal));
      const OM_uint32 major = gss_import_name(
          &minor, &text, const_cast<gss_OID>(GSS_KRB5_NT_PRINCIPAL_NAME), self.out());
      if (GSS_ERROR(major)) return Failure{error_of(major, minor, Reason::GssFailed)};
    }
    InlineVector<gss_key_value_element_desc, 2> elements;
    if (!options_.ccache.empty()) elements.push_back({"ccache", options_.ccache.c_str()});
    if (!options_.client_keytab.empty())
      elements.push_back({"client_keytab", options_.client_keytab.c_str()});
    const gss_key_value_set_desc store{static_cast<OM_uint32>(elements.size()), elements.data()};
    gss_OID_set_desc mechanisms{1, gss_mech_krb5};
    Credential credential;
    const OM_uint32 major =
        gss_acquire_cred_from(&minor, self.get(), GSS_C_INDEFINITE, &mechanisms, GSS_C_INITIATE,
                              &store, credential.out(), nullptr, nullptr);
    if (GSS_ERROR(major)) return Failure{no_credential(major, minor)};
    return std::unique_ptr<Context>(std::make_unique<InitiatorContext>(
        target_, options_.service + "@" + options_.host, std::move(credential)));
  }

  Error explain(Major major, std::uint32_t minor) const override {
    const auto status = static_cast<OM_uint32>(major);
    return {reason_of(status, minor, Reason::GssServerRefused), {}, is_repeated(status, minor)};
  }
  Sizes sizes() const override { return kSizes; }

 private:
  // A program that has a keytab has no use for advice about tickets, nor has one whose
  // configuration cannot be read.
  Error no_credential(OM_uint32 major, OM_uint32 minor) const {
    const bool looked = GSS_ROUTINE_ERROR(major) == GSS_S_NO_CRED;
    Error error = error_of(major, minor, looked ? Reason::GssNoTicket : Reason::GssFailed);
    if (error.reason == Reason::GssNoTicket && !options_.client_keytab.empty())
      error.reason = Reason::GssNoKeytab;
    return error;
  }

  InitiatorOptions options_;
  const std::shared_ptr<const Name> target_;
};

}  // namespace

Result<std::unique_ptr<Initiator>, Error> initiator(const InitiatorOptions& options) {
  const std::string target = options.service + "@" + options.host;
  gss_buffer_desc text = view_of(bytes_of(target));
  OM_uint32 minor = 0;
  Name name;
  const OM_uint32 major = gss_import_name(&minor, &text, GSS_C_NT_HOSTBASED_SERVICE, name.out());
  if (GSS_ERROR(major)) return Failure{error_of(major, minor, Reason::GssFailed)};
  return std::unique_ptr<Initiator>(std::make_unique<Krb5Initiator>(options, std::move(name)));
}

}  // namespace stag::gss::krb5
