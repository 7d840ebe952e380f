#include "cli/serve/host_names.h"

#include <netdb.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "net/blocked_signals.h"
#include "net/socket_address.h"
#include "net/worker_pool.h"

namespace stag::cli {
namespace {

// How long one question about netgroups may hold up the next; a check, how long the main loop.
constexpr auto kPatience = std::chrono::seconds(5);

// glibc walks one netgroup at a time.
std::timed_mutex& netgroup_mutex() {
  static std::timed_mutex mutex;
  return mutex;
}

using Checked = Result<std::string, std::string>;

// A thread that waits behind a question that hangs ends, too: otherwise each reload would leave a
// thread.
std::optional<Checked> check_here(const std::string& netgroup) {
  const std::unique_lock lock(netgroup_mutex(), kPatience);
  if (!lock) return std::nullopt;
  if (::setnetgrent(netgroup.c_str()) == 0)
    return std::string("there is no such netgroup (see nsswitch.conf)");
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
  return std::string();
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
  // What stands behind the first dot of the whole name.
  Result<std::string, NoAnswer> domain() override {
    std::array<char, NI_MAXHOST> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return std::string();
    std::string whole(name.data());
    if (whole.find('.') == whole.npos) {
      addrinfo wanted{};
      wanted.ai_flags = AI_CANONNAME;
      addrinfo* first = nullptr;
      const int failed = ::getaddrinfo(whole.c_str(), nullptr, &wanted, &first);
      if (failed == EAI_AGAIN) return Failure{NoAnswer{}};
      if (failed != 0) return std::string();
      const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(first, ::freeaddrinfo);
      if (first->ai_canonname != nullptr) whole = first->ai_canonname;
    }
    const std::size_t dot = whole.find('.');
    return dot == whole.npos ? std::string() : whole.substr(dot + 1);
  }
  Result<bool, NoAnswer> is_member(const std::string& netgroup, const std::string& host) override {
    const std::unique_lock lock(netgroup_mutex(), kPatience);
    if (!lock) return Failure{NoAnswer{}};
    return ::innetgr(netgroup.c_str(), host.c_str(), nullptr, nullptr) == 1;
  }
  // innetgr() does not tell a host that is no member from a source that fails.
  Result<bool, NoAnswer> has_netgroup(const std::string& netgroup) override {
    const std::unique_lock lock(netgroup_mutex(), kPatience);
    if (!lock) return Failure{NoAnswer{}};
    const bool there = ::setnetgrent(netgroup.c_str()) == 1;
    ::endnetgrent();
    return there;
  }

 private:
  static Texts none(int failed) {
    if (failed == EAI_NONAME || failed == EAI_NODATA) return std::vector<std::string>{};
    return Failure{NoAnswer{}};
  }
};

}  // namespace

NetgroupCheck::NetgroupCheck() : NetgroupCheck(check_here, kPatience) {}

Checked NetgroupCheck::check(const std::string& netgroup) {
  const std::string silence = "whoever knows netgroups does not answer (see nsswitch.conf)";
  if (silent_) return silence;
  std::packaged_task<std::optional<Checked>()> task(
      [ask = ask_, netgroup] { return ask(netgroup); });
  auto checked = task.get_future();
  try {
    const net::BlockedSignals blocked;
    std::thread(std::move(task)).detach();
  } catch (const std::system_error&) {
    return std::string("the system has no thread left to ask for it");
  }
  if (checked.wait_for(patience_) == std::future_status::ready)
    if (auto answer = checked.get()) return *std::move(answer);
  silent_ = true;
  return silence;
}

std::shared_ptr<nfs::ClientNames> system_client_names() {
  net::WorkerOptions options;
  // Neighbours with slow names leave room for others.
  options.limits.threads = 8;
  options.limits.threads_each = 2;
  options.name = "names of clients";
  return std::make_shared<nfs::ClientNames>(std::make_shared<SystemHostNames>(),
                                            std::make_shared<net::WorkerPool>(options));
}

}  // namespace stag::cli
