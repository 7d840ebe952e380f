#include "cli/serve/kerberos.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "gss/krb5/krb5.h"

namespace stag::cli {
namespace {

using Ids = Result<rpc::UserIds, rpc::NoUserIds>;

constexpr std::uint64_t kMostContexts = 1 << 20;

bool takes_kerberos(const nfs::ExportOptions& options) {
  return std::ranges::any_of(options.flavors, nfs::is_kerberos);
}

rpc::UserIds to_user_ids(const nfs::PrincipalIds& from) {
  rpc::UserIds ids;
  ids.uid = from.uid;
  ids.gid = from.gid;
  for (const std::uint32_t gid : from.gids) ids.gids.push_back(gid);
  return ids;
}

// A client whose principal is not known in time may come again: its context is not set up.
Task<Ids> asked(std::shared_ptr<nfs::PrincipalMap> principals, Loop& loop, std::string principal,
                const void* client) {
  const auto ids = co_await principals->ids_of(std::move(principal), loop, client);
  if (ids == nullptr) co_return Failure{rpc::NoUserIds::NotNow};
  co_return to_user_ids(*ids);
}

}  // namespace

bool takes_kerberos(const std::vector<ExportLine>& lines) {
  return std::ranges::any_of(lines, [](const ExportLine& line) {
    return takes_kerberos(line.options) ||
           std::ranges::any_of(line.clients, [](const nfs::ClientRule& rule) {
             return takes_kerberos(rule.options);
           });
  });
}

void KerberosOptions::declare(Arguments& arguments) {
  arguments.text("--keytab", keytab_, "FILE",
                 "keys of this server, nfs/HOST, for exports with sec=krb5, krb5i or krb5p "
                 "[/etc/krb5.keytab]");
  arguments.number("--gss-contexts", contexts_, 1, kMostContexts,
                   "security contexts that are kept, one for each user of each client; beyond, the "
                   "one goes which was unused for longest, of the client that has most");
}

Result<std::unique_ptr<gss::Acceptor>, std::string> KerberosOptions::acceptor() const {
  auto acceptor = gss::krb5::acceptor({.keytab = keytab_});
  if (acceptor) return *std::move(acceptor);
  const gss::Error& why = acceptor.error();
  return Failure{fmt::format(
      "cannot use {} (--keytab): {}{}{}",
      keytab_.empty() ? "the default keytab, /etc/krb5.keytab as a rule" : "keytab " + keytab_,
      info(why.reason).text, why.detail.empty() ? "" : "; ", why.detail)};
}

Result<Ok, std::string> KerberosOptions::check(const std::vector<ExportLine>& lines) const {
  if (!takes_kerberos(lines) && keytab_.empty()) return Ok{};
  if (const auto made = acceptor(); !made) return Failure{made.error()};
  return Ok{};
}

Result<std::unique_ptr<rpc::Authenticator>, std::string> KerberosOptions::open(
    bool wanted, std::shared_ptr<nfs::PrincipalMap> principals, StoreWatch& stores,
    std::size_t loops) {
  if (!wanted && keytab_.empty()) return std::unique_ptr<rpc::Authenticator>();
  auto made = acceptor();
  if (!made) return Failure{made.error()};
  rpc::GssServerOptions options;
  options.acceptor = *std::move(made);
  options.contexts = contexts_;
  net::WorkerOptions workers;
  workers.limits.stuck_after = stores.patience();
  workers.name = "keytab";
  options.tokens = stores.make(workers);
  protection_ = std::make_shared<net::WorkerPool>(workers_for_protection(loops));
  options.executor = protection_.get();
  options.ids = [principals](Loop& loop, const std::string& principal,
                             const void* client) -> Eventual<Ids> {
    if (const auto known = principals->known(principal, loop.now()))
      return Ids(to_user_ids(*known));
    return asked(principals, loop, principal, client);
  };
  opened_ = true;
  return rpc::rpcsec_gss(std::move(options));
}

net::WorkerOptions workers_for_protection(std::size_t loops) {
  net::WorkerOptions options;
  net::WorkerLimits& limits = options.limits;
  limits.threads = std::max(limits.threads, loops);
  limits.threads_each = limits.threads;  // Each job ends soon, and turns do for the rest.
  limits.waiting = limits.waiting_each = limits.waiting_most =
      std::numeric_limits<std::size_t>::max();
  options.name = "protection";
  return options;
}

std::string KerberosOptions::obstacle(const std::vector<ExportLine>& lines) const {
  if (opened_ || !takes_kerberos(lines)) return {};
  return "sec=krb5, krb5i and krb5p want a keytab, which is read when the server starts: start it "
         "again";
}

}  // namespace stag::cli
