// Acting as another user, for the length of a few system calls on one thread.
//
// A CredentialScope switches this thread's file-system user and group and its supplementary groups
// (setfsuid(2): the kernel then checks permissions, owns new files and counts quotas as for that
// user) and switches user and group back at its end. A scope never spans a co_await: the thread
// would go on as another user. The groups stay as they are between scopes, which saves most system
// calls; they do not matter to root. Without root nothing is switched: every caller is the server's
// user.
#pragma once

#include <memory>

#include "base/executor.h"
#include "vfs/types.h"

namespace stag::vfs::posix {

// Whether this process may switch users; found out once.
bool can_switch_users();
// Whether every caller would be root, whom the kernel refuses nothing: the process is, and may not
// switch users. Not so where root is the only user of its namespace, who has no more rights than
// the user of the machine that it stands for.
bool would_serve_all_as_root();

// `who`, or the server's user where that cannot be switched.
const Credentials& acting_as(const Credentials& who);

class CredentialScope {
 public:
  explicit CredentialScope(const Credentials& who);
  CredentialScope(const CredentialScope&) = delete;
  CredentialScope& operator=(const CredentialScope&) = delete;
  ~CredentialScope();

  // False: the kernel knows no such user and the scope acts as the server; nothing may be done in
  // it.
  bool ok() const { return ok_; }

 private:
  friend class ServerScope;
  const std::uint32_t uid_;
  const std::uint32_t gid_;
  bool ok_ = true;
  bool switched_ = false;
};

// Whether a loop's thread may act as `who`; if not, a worker may. Where loops keep their
// credentials it may as the server only.
bool may_act_on_loop(const Credentials& who);
// Whether it may call prepare_loop_thread().
bool may_prepare_loop();

// The server again for its length, whoever the thread acts as: for what is done within a
// CredentialScope on behalf of somebody else. An Executor above all is given jobs by the server
// only: a thread that it starts for them inherits the user of the thread that asked, and keeps it.
class ServerScope {
 public:
  ServerScope();
  ServerScope(const ServerScope&) = delete;
  ServerScope& operator=(const ServerScope&) = delete;
  ~ServerScope();

 private:
  const CredentialScope* const left_;  // null: the thread acted as the server
};

// Both for good. A loop's thread lays down the right to ignore quotas and the
// blocks reserved for root: to give it up and take it back around every write cost four system
// calls.
void prepare_loop_thread();
// One that runs blocking work for others, too, as the server, whoever it was started by; and gets
// an umask of its own, of 0, since modes are the client's to choose. Where the system refuses that
// (a container's filter of system calls) the process gets it: its own files have to be made with
// modes that need none. `of`: whose thread it is; null: a loop's.
void prepare_worker_thread(const Executor* of);
// Whether the calling thread is such a one, which may block.
bool is_worker_thread();
// Whether it is one of this Executor.
bool is_worker_of(const std::weak_ptr<Executor>& executor);

}  // namespace stag::vfs::posix
