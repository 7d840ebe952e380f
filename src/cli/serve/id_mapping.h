// Names of users and groups for NFSv4 clients, and the users of Kerberos principals, from
// libnfsidmap and its /etc/idmapd.conf, and the groups of users, from the name service. The library
// is loaded at run time; without it owners are numbers.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/serve/library_turn.h"
#include "cli/support/arguments.h"
#include "net/worker_pool.h"
#include "nfs/export/principal_map.h"
#include "nfs/export/user_groups.h"
#include "nfs/v4/attributes/id_map.h"

namespace stag::cli {

// libnfsidmap, as the service that knows owners by their names and users by their principals. Its
// state is that of the process: both take turns, principals first.
struct NfsIdMap {
  std::unique_ptr<nfs::nfs4::NameService> names;
  std::shared_ptr<nfs::PrincipalService> principals;
  std::shared_ptr<LibraryTurn> turn;
};

// `domain` empty: that of /etc/idmapd.conf. One at a time in a process, which the library keeps its
// state in. The error is one phrase. Blocking.
Result<NfsIdMap, std::string> open_libnfsidmap(const std::string& domain);

// The threads that ask who principals are, none of which waits for owners' names. After a restart
// all users of a login host come at once, and a user for whom there is no room is refused.
net::WorkerOptions workers_for_principals();

struct KnownUsers {
  std::shared_ptr<nfs::nfs4::IdMap> owners;  // null: they are numbers
  std::shared_ptr<nfs::PrincipalMap> principals;
  std::shared_ptr<nfs::UserGroups> groups;  // null: those that calls carry
};

struct IdMappingOptions {
  std::string mode = "numbers";
  std::string domain;
  bool manage_gids = false;

  void declare(Arguments& arguments);
  // Without the library and without these options owners are numbers, and principals of the own
  // realm are the users of this host. These are also who the library does not know, unless a domain
  // is named. The error is a sentence. Blocking.
  Result<KnownUsers, std::string> open() const;
};

}  // namespace stag::cli
