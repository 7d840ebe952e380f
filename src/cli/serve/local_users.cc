#include "cli/serve/local_users.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <vector>

namespace stag::cli {
namespace {

// nullopt: they have become more each time.
std::optional<std::vector<std::uint32_t>> groups_of(const passwd& user) {
  constexpr int kMostGroups = 65536;  // NGROUPS_MAX of Linux, which refuses more
  int count = 64;
  for (int tries = 0; tries < 3; ++tries) {
    std::vector<gid_t> groups(static_cast<std::size_t>(count));
    // It says how many there are when it has been given too little space.
    if (getgrouplist(user.pw_name, user.pw_gid, groups.data(), &count) >= 0)
      return std::vector<std::uint32_t>(groups.begin(),
                                        groups.begin() + std::min(count, kMostGroups));
  }
  return std::nullopt;
}

// An entry of the user database, and the texts in it.
struct UserEntry {
  passwd user{};
  std::vector<char> texts = std::vector<char>(16384);
};

// `look_up` is getpwnam_r() or getpwuid_r(), of a user.
template <class LookUp>
Result<Ok, nfs::NoUser> find(UserEntry& entry, LookUp look_up) {
  constexpr std::size_t kMostSpace = 1 << 20;
  passwd* found = nullptr;
  int failed = 0;
  while ((failed = look_up(&entry.user, entry.texts.data(), entry.texts.size(), &found)) ==
             ERANGE &&
         entry.texts.size() < kMostSpace)
    entry.texts.resize(2 * entry.texts.size());
  if (failed != 0) return Failure{nfs::NoUser::Failed};
  if (found == nullptr) return Failure{nfs::NoUser::Unknown};
  return Ok{};
}

// A machine or a service ("nfs/client.example.org") is no user, whatever becomes of the name
// service: clients need it for mounting.
bool is_machine(const std::string& name) {
  return name.find('/') != name.npos;
}

class LocalGroups final : public nfs::GroupService {
 public:
  Result<std::vector<std::uint32_t>, nfs::NoUser> groups_of(std::uint32_t uid) override {
    UserEntry entry;
    const auto found = find(entry, [uid](auto... to) { return getpwuid_r(uid, to...); });
    if (!found) return Failure{found.error()};
    auto groups = cli::groups_of(entry.user);
    if (!groups) return Failure{nfs::NoUser::Failed};
    return *std::move(groups);
  }
};

class LocalUsers final : public nfs::PrincipalService {
 public:
  explicit LocalUsers(std::function<std::string()> realm) : find_realm_(std::move(realm)) {}

  Result<nfs::PrincipalIds, nfs::NoUser> ids_of(const std::string& principal) override {
    const std::size_t at = principal.rfind('@');
    if (at == principal.npos || is_machine(principal.substr(0, at)))
      return Failure{nfs::NoUser::Unknown};
    const std::string own = realm();
    // The server's realm is not known yet, but may be later: a user taken for nobody until then
    // would leave files that are nobody's.
    if (own.empty()) return Failure{nfs::NoUser::Failed};
    if (principal.substr(at + 1) != own) return Failure{nfs::NoUser::Unknown};
    return local_user(principal.substr(0, at));
  }

 private:
  std::string realm() {
    const std::lock_guard lock(mutex_);
    if (realm_.empty()) realm_ = find_realm_();
    return realm_;
  }

  const std::function<std::string()> find_realm_;
  std::mutex mutex_;
  std::string realm_{};  // once it is found
};

class OneOf final : public nfs::PrincipalService {
 public:
  OneOf(std::shared_ptr<nfs::PrincipalService> first, std::shared_ptr<nfs::PrincipalService> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  Result<nfs::PrincipalIds, nfs::NoUser> ids_of(const std::string& principal) override {
    auto known = first_->ids_of(principal);
    if (known || known.error() == nfs::NoUser::Failed) return known;
    return second_->ids_of(principal);
  }

 private:
  const std::shared_ptr<nfs::PrincipalService> first_, second_;
};

}  // namespace

Result<nfs::PrincipalIds, nfs::NoUser> local_user(const std::string& name) {
  if (is_machine(name)) return Failure{nfs::NoUser::Unknown};
  UserEntry entry;
  const auto found = find(entry, [&](auto... to) { return getpwnam_r(name.c_str(), to...); });
  if (!found) return Failure{found.error()};
  const passwd& user = entry.user;
  return nfs::PrincipalIds{user.pw_uid, user.pw_gid,
                           groups_of(user).value_or(std::vector<std::uint32_t>())};
}

std::shared_ptr<nfs::GroupService> local_groups() {
  return std::make_shared<LocalGroups>();
}

std::shared_ptr<nfs::PrincipalService> local_users(std::function<std::string()> realm) {
  return std::make_shared<LocalUsers>(std::move(realm));
}

std::shared_ptr<nfs::PrincipalService> one_of(std::shared_ptr<nfs::PrincipalService> first,
                                              std::shared_ptr<nfs::PrincipalService> second) {
  return std::make_shared<OneOf>(std::move(first), std::move(second));
}

}  // namespace stag::cli
