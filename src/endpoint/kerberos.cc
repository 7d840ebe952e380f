#include "endpoint/kerberos.h"

#include "gss/krb5/krb5.h"
#include "rpc/gss/rpcsec_gss.h"

namespace stag::endpoint {

Result<rpc::Credentials, gss::Error> kerberos(const std::string& host, gss::Service service) {
  gss::krb5::InitiatorOptions options;
  options.host = host;
  auto initiator = gss::krb5::initiator(options);
  if (!initiator) return Failure{initiator.error()};
  rpc::GssClientOptions client;
  client.initiator = *std::move(initiator);
  client.service = service;
  return rpc::Credentials::secured(rpc::rpcsec_gss(std::move(client)));
}

}  // namespace stag::endpoint
