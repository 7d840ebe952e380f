// The users of this host, as its name service (nsswitch.conf) knows them: by their principals,
// where "anna@REALM", of the realm of this host, is the user anna, and by their numbers.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "nfs/export/principal_map.h"
#include "nfs/export/user_groups.h"

namespace stag::cli {

// The user of this name. Blocks.
Result<nfs::PrincipalIds, nfs::NoUser> local_user(const std::string& name);

// The groups of users by their numbers.
std::shared_ptr<nfs::GroupService> local_groups();

// `realm` is asked for principals that may be users until it yields one, and may block. While that
// is empty (krb5.conf has no default_realm, or cannot be read now) nobody knows who they are.
std::shared_ptr<nfs::PrincipalService> local_users(std::function<std::string()> realm);
// Where `first` does not know a principal, `second` may; where `first` cannot say, no other
// decides.
std::shared_ptr<nfs::PrincipalService> one_of(std::shared_ptr<nfs::PrincipalService> first,
                                              std::shared_ptr<nfs::PrincipalService> second);

}  // namespace stag::cli
