#include "cli/serve/host_names.h"

#include <netdb.h>

#include <array>
#include <memory>
#include <mutex>

#include "net/socket_address.h"
#include "net/worker_pool.h"

namespace stag::cli {
namespace {

// glibc walks one netgroup at a time.
std::mutex& netgroup_mutex() {
  static std::mutex mutex;
  return mutex;
}

class SystemHostNames final : public nfs::HostNameService {
 public:
  Texts names_of(const std::string& address) override {
    const auto known = net::numeric_address({address, 0});
    if (!known) return std::vector<std::string>{};
    std::array<char, NI_MAXHOST> name{};
    const int failed = ::getnameinfo(known->data(), known->size(), name.data(), name.size(),
                                     nullptr, 0, NI_NAMEREQD);
    if (failed != 0) return none(failed);
    return std::vector<std::string>{name.data()};
  }
  Texts addresses_of(const std::string& name) override {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* first = nullptr;
    const int failed = ::getaddrinfo(name.c_str(), nullptr, &wanted, &first);
    if (failed != 0) return none(failed);
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(first, ::freeaddrinfo);
    std::vector<std::string> addresses;
    for (const addrinfo* each = first; each != nullptr; each = each->ai_next)
      addresses.push_back(net::SocketAddress(each->ai_addr, each->ai_addrlen).address().host);
    return addresses;
  }
  bool is_member(const std::string& netgroup, const std::string& host) override {
    const std::lock_guard lock(netgroup_mutex());
    return ::innetgr(netgroup.c_str(), host.c_str(), nullptr, nullptr) == 1;
  }

 private:
  static Texts none(int failed) {
    if (failed == EAI_NONAME || failed == EAI_NODATA) return std::vector<std::string>{};
    return Failure{NoAnswer{}};
  }
};

}  // namespace

Result<Ok, std::string> check_system_netgroup(const std::string& netgroup) {
  const std::lock_guard lock(netgroup_mutex());
  if (::setnetgrent(netgroup.c_str()) == 0)
    return Failure{std::string("there is no such netgroup (see nsswitch.conf)")};
  std::array<char, 4096> buffer{};
  char *host = nullptr, *user = nullptr, *domain = nullptr;
  bool any = false;
  while (::getnetgrent_r(&host, &user, &domain, buffer.data(), buffer.size()) == 1)
    any = any || host == nullptr;
  ::endnetgrent();
  if (any)
    return Failure{
        std::string("the netgroup has an entry for every host; write * if that is "
                    "what it is for")};
  return Ok{};
}

std::shared_ptr<nfs::ClientNames> system_client_names() {
  net::WorkerOptions options;
  // One client with slow names leaves room for others.
  options.limits.threads = 8;
  options.limits.threads_each = 2;
  options.name = "names of clients";
  return std::make_shared<nfs::ClientNames>(std::make_shared<SystemHostNames>(),
                                            std::make_shared<net::WorkerPool>(options));
}

}  // namespace stag::cli
