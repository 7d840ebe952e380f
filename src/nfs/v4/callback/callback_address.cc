#include "nfs/v4/callback/callback_address.h"

#include "rpcbind/universal_address.h"

namespace stag::nfs::nfs4 {

namespace {

// RFC 5531 8.3, "Transient": no service has its number there, so nobody can have a server call a
// service that trusts the server's address.
constexpr std::uint32_t kTransientFirst = 0x40000000;
constexpr std::uint32_t kTransientLast = 0x5fffffff;

}  // namespace

bool names_callback(const v4::cb_client4& callback) {
  return callback.cb_program != 0 && !callback.cb_location.na_r_addr.empty();
}

std::optional<Address> callback_address(const v4::cb_client4& callback, const std::string& client,
                                        const CallbackNetworks& networks) {
  const std::string& netid = callback.cb_location.na_r_netid;
  if (netid != "tcp" && netid != "tcp6") return std::nullopt;
  if (callback.cb_program < kTransientFirst || callback.cb_program > kTransientLast)
    return std::nullopt;
  std::optional<Address> named = rpcbind::from_universal(callback.cb_location.na_r_addr);
  if (!named || named->port == 0) return std::nullopt;
  const auto wanted = IpAddress::parse(named->host), own = IpAddress::parse(client);
  if (!wanted) return std::nullopt;
  // With the scope that a link-local address has here.
  if (own == wanted) return Address{client, named->port};
  return networks.contain(named->host) ? named : std::nullopt;
}

std::optional<rpc::Credentials> callback_credentials(const rpc::Caller& caller) {
  switch (caller.flavor) {
    case oncrpc::AuthFlavor::AUTH_NONE:
      return rpc::Credentials();
    case oncrpc::AuthFlavor::AUTH_SYS:
      return rpc::Credentials::sys("", caller.uid, caller.gid,
                                   {caller.gids.data(), caller.gids.size()});
    default:
      return std::nullopt;
  }
}

}  // namespace stag::nfs::nfs4
