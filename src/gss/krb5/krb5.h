// Kerberos V5 (RFC 4121) by MIT's GSSAPI library, for RPCSEC_GSS. Where the environment sets
// GSS_USE_PROXY, the library asks gssproxy for the credentials. The functions may block (files,
// KDC, DNS). Thread: any.
#pragma once

#include <memory>
#include <string>

#include "gss/mechanism.h"

namespace stag::gss::krb5 {

struct AcceptorOptions {
  // The keytab's file name, or type and name ("FILE:/etc/krb5.keytab"). Empty: the library's
  // default (KRB5_KTNAME, else default_keytab_name of krb5.conf).
  std::string keytab{};
  // "nfs": the keys of nfs/HOST, whatever HOST the client asked for. Empty: every key.
  std::string service = "nfs";
};

// Reads the keytab, and fails when it has no key for the service. Each context reads it again, so
// that a new key counts at once.
Result<std::unique_ptr<Acceptor>, Error> acceptor(const AcceptorOptions& options);

struct InitiatorOptions {
  std::string service = "nfs";
  std::string host{};  // the server's name in Kerberos, a host name; numeric addresses have none
  // The credential cache ("FILE:/tmp/krb5cc_0", "KCM:"). Empty: the library's default.
  std::string ccache{};
  // A keytab with the key of the client itself, for programs without a user: tickets are then
  // fetched and renewed as they are needed. Empty: the library's default client keytab, where there
  // is one.
  std::string client_keytab{};
  // Which principal of the cache or keytab ("alice@EXAMPLE.ORG"). Empty: the default one.
  std::string principal{};
};

// Does not look for a credential yet: Initiator::begin() does.
Result<std::unique_ptr<Initiator>, Error> initiator(const InitiatorOptions& options);

}  // namespace stag::gss::krb5
