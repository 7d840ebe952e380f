#include "nfs/blocking/credentials.h"

#include <unistd.h>

#include <array>

#include "endpoint/kerberos.h"

namespace stag::nfs::blocking {
namespace {

using client::Error;
using client::Url;

// This process, but for what the URL says of the user.
rpc::Credentials user(const Url& url) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return rpc::Credentials::sys(host.data(), url.uid.value_or(geteuid()),
                               url.gid.value_or(getegid()));
}

gss::Service service_of(Url::Security security) {
  if (security == Url::Security::Krb5p) return gss::Service::privacy;
  return security == Url::Security::Krb5i ? gss::Service::integrity : gss::Service::none;
}

client::Outcome<rpc::Credentials> kerberos(const Url& url, gss::Service service) {
  auto credentials = endpoint::kerberos(url.host, service);
  if (credentials) return *std::move(credentials);
  const gss::Error& why = credentials.error();
  std::string sentence = "in the URL, sec: " + std::string(info(why.reason).text);
  if (!why.detail.empty()) sentence += "; " + why.detail;
  return Failure{Error::of_url(std::move(sentence))};
}

}  // namespace

client::Outcome<Ok> adopt_user(const Url& url, client::FileSystemOptions& files) {
  client::ProtocolOptions& calls = files.calls;
  if (calls.credentials.security() != nullptr) return Ok{};
  if (url.security == Url::Security::Sys) {
    if (url.uid || url.gid) calls.credentials = user(url);
    return Ok{};
  }
  // The MOUNT service may be another process, which does not know the contexts of the NFS service.
  if (!files.mount_credentials) files.mount_credentials = user(url);
  const gss::Service service = service_of(url.security);
  client::Outcome<rpc::Credentials> secured = kerberos(url, service);
  if (!secured) return Failure{secured.error()};
  calls.credentials = *std::move(secured);
  const bool may_have_session = url.version.value_or(4) == 4;
  if (service != gss::Service::none || !may_have_session || calls.machine_credentials) return Ok{};
  // The same user's, with integrity.
  client::Outcome<rpc::Credentials> machine = kerberos(url, gss::Service::integrity);
  if (!machine) return Failure{machine.error()};
  calls.machine_credentials = *std::move(machine);
  return Ok{};
}

}  // namespace stag::nfs::blocking
