// Users by the names that a security mechanism has proven: the database of this host maps
// "anna@EXAMPLE.ORG", a principal of Kerberos, to a user and the user's groups, as an administrator
// decides (idmapd.conf). A directory service may be slow: the server asks it on a worker, for a
// bounded time, and keeps its answer for a while, also that it knows no such user.
//
// Thread: any. A question goes on when no caller waits for its answer any more: the next one to ask
// finds it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/loop.h"
#include "base/result.h"
#include "base/task.h"
#include "rpc/authenticator.h"
#include "vfs/types.h"

namespace stag::nfs {

// A user of this host. For a principal that is none of its users, such as a machine
// ("host/client.example.org"), all are vfs::kNoId: exports take it for their anonymous user.
struct PrincipalIds {
  std::uint32_t uid = vfs::kNoId;
  std::uint32_t gid = vfs::kNoId;
  std::vector<std::uint32_t> gids{};  // supplementary groups, as many as there are
};

// Why a service has no ids for a principal.
enum class NoUser : std::uint8_t {
  Unknown,  // the principal is no user of this host
  Failed    // the service cannot say for now
};

// The service that maps principals to users. It blocks. Thread: any, several at once.
class PrincipalService {
 public:
  virtual ~PrincipalService() = default;
  virtual Result<PrincipalIds, NoUser> ids_of(const std::string& principal) = 0;
};

// The longest principal that is asked for.
inline constexpr std::size_t kLongestPrincipal = 1024;

class PrincipalMap {
 public:
  PrincipalMap(std::shared_ptr<PrincipalService> service, std::shared_ptr<Executor> worker);
  ~PrincipalMap();

  // Null: nobody has answered in time, or the service has failed; an answer that is too old is
  // better than none. `client` as of Executor::Job.
  Task<std::shared_ptr<const PrincipalIds>> ids_of(std::string principal, Loop& loop,
                                                   const void* client);
  // What ids_of() would answer at once; null: it would have to ask.
  std::shared_ptr<const PrincipalIds> known(const std::string& principal, TimePoint now) const;

 private:
  struct State;

  const std::shared_ptr<State> state_;
  const std::shared_ptr<Executor> worker_;
};

}  // namespace stag::nfs
