#include "cli/serve/local_users.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace stag::cli {
namespace {

std::vector<std::uint32_t> groups_of(const passwd& user) {
  int count = 64;
  for (int tries = 0; tries < 3; ++tries) {
    std::vector<gid_t> groups(static_cast<std::size_t>(count));
    // It says how many there are when it has been given too little space.
    if (getgrouplist(user.pw_name, user.pw_gid, groups.data(), &count) >= 0)
      return {groups.begin(), groups.begin() + count};
  }
  return {};
}

class LocalUsers final : public nfs::PrincipalService {
 public:
  explicit LocalUsers(std::function<std::string()> realm) : find_realm_(std::move(realm)) {}

  Result<nfs::PrincipalIds, nfs::NoUser> ids_of(const std::string& principal) override {
    if (!realm_) realm_ = find_realm_();
    const std::size_t at = principal.rfind('@');
    if (at == principal.npos || realm_->empty() || principal.substr(at + 1) != *realm_)
      return Failure{nfs::NoUser::Unknown};
    return local_user(principal.substr(0, at));
  }

 private:
  const std::function<std::string()> find_realm_;
  std::optional<std::string> realm_{};
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
  // A machine or a service ("nfs/client.example.org") is no user, whatever becomes of the name
  // service: clients need it for mounting.
  if (name.find('/') != name.npos) return Failure{nfs::NoUser::Unknown};
  constexpr std::size_t kMostSpace = 1 << 20;
  std::vector<char> space(16384);
  passwd user{};
  passwd* found = nullptr;
  int failed = 0;
  while ((failed = getpwnam_r(name.c_str(), &user, space.data(), space.size(), &found)) == ERANGE &&
         space.size() < kMostSpace)
    space.resize(2 * space.size());
  if (failed != 0) return Failure{nfs::NoUser::Failed};
  if (found == nullptr) return Failure{nfs::NoUser::Unknown};
  return nfs::PrincipalIds{user.pw_uid, user.pw_gid, groups_of(user)};
}

std::shared_ptr<nfs::PrincipalService> local_users(std::function<std::string()> realm) {
  return std::make_shared<LocalUsers>(std::move(realm));
}

std::shared_ptr<nfs::PrincipalService> one_of(std::shared_ptr<nfs::PrincipalService> first,
                                              std::shared_ptr<nfs::PrincipalService> second) {
  return std::make_shared<OneOf>(std::move(first), std::move(second));
}

}  // namespace stag::cli
