// The groups of users as the server's own name service has them, for calls with AUTH_SYS, which
// carry at most sixteen (RFC 5531 appendix A), and those that the client claims. The name service
// may be slow: the server asks it on a worker, a call waits for a bounded time, and the server
// keeps the answer for a while. Before an answer is too old, the server asks again while it still
// holds, so a user who goes on calling waits once.
//
// As with rpc.mountd's --manage-gids, a user whom the name service does not know has no groups but
// the one that the call names as the user's own. If the groups of a user cannot be found out now,
// the server serves the user neither by the groups that the call claims nor without groups, for
// permissions are also taken away by group.
//
// Thread: any. A question goes on when no caller waits for its answer any more: the next one to ask
// finds it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/executor.h"
#include "base/loop.h"
#include "base/result.h"
#include "base/task.h"
#include "nfs/export/principal_map.h"
#include "rpc/authenticator.h"

namespace stag::nfs {

// The service that knows the groups of users by their numbers. It blocks, and is called by several
// threads at once.
class GroupService {
 public:
  virtual ~GroupService() = default;
  virtual Result<std::vector<std::uint32_t>, NoUser> groups_of(std::uint32_t uid) = 0;
};

struct UserGroupsOptions {
  std::size_t entries = 8192;  // users who are kept
  // Numbers of nobody that are kept: clients may name any, which displaces no user.
  std::size_t strangers = 1024;
  // Calls that wait, of all clients, and of one address; others are told to come again at once.
  std::size_t waiting = 4096;
  std::size_t waiting_each = 256;
};

class UserGroups {
 public:
  using List = std::shared_ptr<const std::vector<std::uint32_t>>;

  // `clock`, of any thread, is that of the loops.
  UserGroups(std::shared_ptr<GroupService> service, std::shared_ptr<Executor> workers,
             std::function<TimePoint()> clock, const UserGroupsOptions& options = {});
  ~UserGroups();
  UserGroups(const UserGroups&) = delete;
  UserGroups& operator=(const UserGroups&) = delete;

  // The client that calls; `loop` is that of the calling thread.
  struct Asker {
    Loop& loop;
    std::string_view host;  // Address::host, numeric
  };
  // What holds for the user, without waiting; null: it is to be waited for. Of a user for whom this
  // thread has asked within a second it takes no lock and allocates nothing.
  List known(std::uint32_t uid, const Asker& asker);
  // Waits. Null: nobody has answered in time, or the service has failed; an answer that is too old
  // is better than none. What `asker` refers to outlives the Task.
  Task<List> of(std::uint32_t uid, Asker asker);
  // Everybody is asked for anew. What was said before counts only where the service fails.
  void forget();

 private:
  struct State;
  struct Seen;
  struct Answer;
  struct Question;
  struct Job;
  class Turn;

  List look(std::uint32_t uid, const Asker& asker, TimePoint now);
  void submit(std::unique_ptr<Job> job);

  const std::shared_ptr<State> state_;
  const std::shared_ptr<Executor> workers_;
  // Of all that there ever were in this process, each has another number, and so after forget().
  std::atomic<std::uint64_t> version_;
};

// The authenticator of AUTH_SYS (rpc::auth_sys()) whose callers have these groups.
std::unique_ptr<rpc::Authenticator> auth_sys_with(std::shared_ptr<UserGroups> groups);

}  // namespace stag::nfs
