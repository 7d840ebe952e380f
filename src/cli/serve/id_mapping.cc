#include "cli/serve/id_mapping.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "base/unique_fd.h"
#include "cli/serve/local_users.h"
#include "gss/krb5/realm.h"
#include "net/worker_pool.h"
#include "vfs/types.h"

namespace stag::cli {
namespace {

using nfs::nfs4::IdKind;

// nfsidmap.h
struct NfsIdMapFunctions {
  int (*init)(char* file) = nullptr;
  int (*domain)(char* server, char* domain, std::size_t size) = nullptr;
  int (*user_name)(uid_t uid, char* domain, char* name, std::size_t size) = nullptr;
  int (*group_name)(gid_t gid, char* domain, char* name, std::size_t size) = nullptr;
  int (*user_id)(char* name, uid_t* uid) = nullptr;
  int (*group_id)(char* name, gid_t* gid) = nullptr;
  int (*principal_ids)(char* mechanism, char* principal, uid_t* uid, gid_t* gid) = nullptr;
  int (*principal_groups)(char* mechanism, char* principal, gid_t* groups, int* count) = nullptr;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Its plug-ins look for symbols of the library among all that are global; it is never unloaded, for
// they are not, either.
Result<NfsIdMapFunctions, std::string> load() {
  void* const library = dlopen("libnfsidmap.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return Failure{std::string("libnfsidmap is not installed")};
  NfsIdMapFunctions made;
  const bool all = find(library, "nfs4_init_name_mapping", made.init) &&
                   find(library, "nfs4_get_default_domain", made.domain) &&
                   find(library, "nfs4_uid_to_name", made.user_name) &&
                   find(library, "nfs4_gid_to_name", made.group_name) &&
                   find(library, "nfs4_name_to_uid", made.user_id) &&
                   find(library, "nfs4_name_to_gid", made.group_id) &&
                   find(library, "nfs4_gss_princ_to_ids", made.principal_ids) &&
                   find(library, "nfs4_gss_princ_to_grouplist", made.principal_groups);
  if (!all) return Failure{std::string("this libnfsidmap lacks a function")};
  return made;
}

// Makes the library read a file that says the domain and nothing else.
int init_with_domain(const NfsIdMapFunctions& functions, const std::string& domain) {
  const std::string text =
      fmt::format("[General]\nDomain = {}\n\n[Translation]\nMethod = nsswitch\n", domain);
  const UniqueFd file(memfd_create("idmapd.conf", MFD_CLOEXEC));
  if (!file || write(file.fd(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return -1;
  std::string path = fmt::format("/proc/self/fd/{}", file.fd());
  return functions.init(path.data());
}

class LibNfsIdMap final : public nfs::nfs4::NameService {
 public:
  LibNfsIdMap(const NfsIdMapFunctions& functions, std::string domain,
              std::shared_ptr<LibraryTurn> turn)
      : functions_(functions), domain_(std::move(domain)), turn_(std::move(turn)) {}

  std::optional<std::string> name_of(IdKind kind, std::uint32_t id) override {
    std::array<char, 512> name{};
    const bool user = kind == IdKind::User;
    const LibraryTurn::Held held(*turn_, LibraryTurn::For::Name);
    const int failed =
        user ? functions_.user_name(id, domain_.data(), name.data(), name.size() - 1)
             : functions_.group_name(id, domain_.data(), name.data(), name.size() - 1);
    if (failed != 0 || name[0] == '\0') return std::nullopt;
    return std::string(name.data());
  }
  std::optional<std::uint32_t> id_of(IdKind kind, const std::string& name) override {
    std::string copy = name;
    uid_t id = vfs::kNoId;
    const LibraryTurn::Held held(*turn_, LibraryTurn::For::Name);
    const int failed = kind == IdKind::User ? functions_.user_id(copy.data(), &id)
                                            : functions_.group_id(copy.data(), &id);
    if (failed != 0 || id == vfs::kNoId) return std::nullopt;
    return id;
  }

 private:
  const NfsIdMapFunctions functions_;
  std::string domain_;
  const std::shared_ptr<LibraryTurn> turn_;
};

class PrincipalsOfLibNfsIdMap final : public nfs::PrincipalService {
 public:
  // `by_domain_alone`: no file maps principals one by one.
  PrincipalsOfLibNfsIdMap(const NfsIdMapFunctions& functions, std::shared_ptr<LibraryTurn> turn,
                          bool by_domain_alone)
      : functions_(functions), turn_(std::move(turn)), by_domain_alone_(by_domain_alone) {}

  Result<nfs::PrincipalIds, nfs::NoUser> ids_of(const std::string& principal) override {
    // Of a machine ("host/client.example.org") the library would ask the name service, which may
    // hang, and clients need it for mounting.
    if (by_domain_alone_ && principal.find('/') != principal.npos)
      return Failure{nfs::NoUser::Unknown};
    nfs::PrincipalIds ids;
    const int failed = look_up(principal, ids);
    if (failed != 0 || ids.uid == vfs::kNoId) return Failure{why_not(failed, principal)};
    return ids;
  }

 private:
  int look_up(const std::string& principal, nfs::PrincipalIds& to) const {
    std::string name = principal, mechanism = "krb5";
    const LibraryTurn::Held held(*turn_, LibraryTurn::For::Principal);
    const int failed = functions_.principal_ids(mechanism.data(), name.data(), &to.uid, &to.gid);
    if (failed == 0 && to.uid != vfs::kNoId) to.gids = groups_of(principal);
    return failed;
  }
  // Of a name service that fails the library's "nsswitch" method says that the user is unknown.
  static nfs::NoUser why_not(int failed, const std::string& principal) {
    if (failed != 0 && failed != -ENOENT && failed != -EINVAL) return nfs::NoUser::Failed;
    const auto user = local_user(principal.substr(0, principal.find('@')));
    return user ? nfs::NoUser::Unknown : user.error();
  }
  // Of who has the turn. The library says how many there are when it has been given too little
  // space.
  std::vector<std::uint32_t> groups_of(const std::string& principal) const {
    int count = 64;
    for (int tries = 0; tries < 3; ++tries) {
      std::string name = principal, mechanism = "krb5";
      std::vector<gid_t> groups(static_cast<std::size_t>(count));
      const bool all =
          functions_.principal_groups(mechanism.data(), name.data(), groups.data(), &count) >= 0;
      count = std::clamp(count, 0, kMostGroups);
      if (all) return {groups.begin(), groups.begin() + std::min<long>(count, ssize(groups))};
    }
    return {};
  }

  static constexpr int kMostGroups = 65536;  // NGROUPS_MAX of Linux
  const NfsIdMapFunctions functions_;
  const std::shared_ptr<LibraryTurn> turn_;
  const bool by_domain_alone_;
};

}  // namespace

Result<NfsIdMap, std::string> open_libnfsidmap(const std::string& domain) {
  const auto functions = load();
  if (!functions) return Failure{functions.error()};
  const int failed =
      domain.empty() ? functions->init(nullptr) : init_with_domain(*functions, domain);
  if (failed != 0) return Failure{std::string("libnfsidmap cannot read its configuration")};
  std::array<char, 256> found{};
  if (functions->domain(nullptr, found.data(), found.size() - 1) != 0)
    return Failure{std::string("libnfsidmap knows no domain; name one with --id-domain")};
  const auto turn = std::make_shared<LibraryTurn>();
  const bool by_domain_alone = !domain.empty();
  return NfsIdMap{std::make_unique<LibNfsIdMap>(*functions, std::string(found.data()), turn),
                  std::make_shared<PrincipalsOfLibNfsIdMap>(*functions, turn, by_domain_alone),
                  turn};
}

net::WorkerOptions workers_for_principals() {
  net::WorkerOptions options;
  options.limits.threads = 8;
  options.limits.threads_each = 2;
  options.limits.waiting_each = 2048;
  options.limits.waiting = 8192;
  options.limits.waiting_most = 16384;
  options.name = "users of principals";
  return options;
}

void IdMappingOptions::declare(Arguments& arguments) {
  arguments.choice("--id-map", mode, {"numbers", "names"},
                   "how version 4 clients are told owners; they may always name either");
  arguments.text("--id-domain", domain, "DOMAIN",
                 "the domain of names, as in user@DOMAIN [that of /etc/idmapd.conf]");
  arguments.flag(
      "--manage-gids", manage_gids,
      "calls with sec=sys count with the groups that this machine's name service has for "
      "the user, not with those that they carry, sixteen at most [no]");
}

namespace {

// With workers of its own, which start when they are first asked: a name service that hangs takes
// them all. Clients who name many users leave room for others.
std::shared_ptr<nfs::UserGroups> system_groups() {
  net::WorkerOptions options;
  options.limits.threads = 8;
  options.limits.threads_each = 2;
  options.name = "groups of users";
  return std::make_shared<nfs::UserGroups>(
      local_groups(), std::make_shared<net::WorkerPool>(options),
      [] { return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()); });
}

}  // namespace

Result<KnownUsers, std::string> IdMappingOptions::open() const {
  const bool named = mode == "names";
  if (domain.find_first_of(" \t\r\n@") != domain.npos)
    return Failure{fmt::format("--id-domain '{}' is no domain", domain)};
  auto library = open_libnfsidmap(domain);
  if (!library && (named || !domain.empty()))
    return Failure{
        fmt::format("owners cannot be names (--id-map, --id-domain): {}", library.error())};
  KnownUsers known;
  std::shared_ptr<nfs::PrincipalService> principals = local_users(gss::krb5::default_realm);
  if (library) {
    nfs::nfs4::IdMapOptions options;
    options.gives_names = named;
    net::WorkerOptions one;
    one.limits.threads = 1;
    one.name = "names of users";
    known.owners = std::make_shared<nfs::nfs4::IdMap>(
        std::move(library->names), std::make_shared<net::WorkerPool>(one), options);
    // Without a domain in its configuration the library guesses one, and whose realm that is.
    principals =
        domain.empty() ? one_of(library->principals, std::move(principals)) : library->principals;
  }
  if (manage_gids) known.groups = system_groups();
  known.principals = std::make_shared<nfs::PrincipalMap>(
      std::move(principals), std::make_shared<net::WorkerPool>(workers_for_principals()));
  return known;
}

}  // namespace stag::cli
