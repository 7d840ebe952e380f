#include "vfs/posix/credentials.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/loop_credentials.h"

namespace stag::vfs::posix {
namespace {

#ifdef SYS_setgroups32
constexpr long kSetGroups = SYS_setgroups32;
#else
constexpr long kSetGroups = SYS_setgroups;
#endif

thread_local bool is_prepared_worker = false;
thread_local const Executor* executor_of_thread = nullptr;
// In which the thread acts as somebody else.
thread_local const CredentialScope* current_scope = nullptr;

// The supplementary groups this thread has now, once we have set them.
std::optional<Groups>& groups_of_thread() {
  thread_local std::optional<Groups> groups;
  return groups;
}

// The raw call: glibc's setgroups() changes every thread of the process.
bool switch_groups(const Groups& groups) {
  auto& current = groups_of_thread();
  if (current && *current == groups) return true;
  if (::syscall(kSetGroups, groups.size(), groups.data()) != 0) return false;
  current = groups;
  return true;
}

// Where there is no group of some number the kernel would refuse them all.
Groups groups_of(const Credentials& who) {
  if (!who.groups.has(kNoId)) return who.groups;
  auto known = std::make_shared<Groups::List>(who.groups.begin(), who.groups.end());
  std::replace(known->begin(), known->end(), kNoId, who.gid);
  return Groups(std::move(known));
}

bool switch_user(std::uint32_t uid) {
  ::setfsuid(uid);
  return static_cast<std::uint32_t>(::setfsuid(kNoId)) == uid;
}
bool switch_group(std::uint32_t gid) {
  ::setfsgid(gid);
  return static_cast<std::uint32_t>(::setfsgid(kNoId)) == gid;
}

// Of root's capabilities for files, which the thread has no more as another user, the kernel gives
// it back those that it may have.
void act_as_server() {
  ::setfsuid(::geteuid());
  ::setfsgid(::getegid());
}

// In the group of the server itself; supplementary groups do not matter to root.
bool is_root_of_server(const Credentials& who) {
  static const std::uint32_t kOwnGroup = ::getegid();
  return who.uid == 0 && who.gid == kOwnGroup;
}

bool try_to_switch() {
  if (::geteuid() != 0) return false;
  const bool group = switch_group(1);
  const bool user = switch_user(1);
  act_as_server();
  return group && user;
}

// user_namespaces(7): a line for each range of users.
bool is_the_only_user() {
  std::ifstream ranges("/proc/self/uid_map");
  std::uint64_t inside = 0, outside = 0, length = 0, users = 0;
  while (ranges >> inside >> outside >> length) users += length;
  return users == 1;
}

void drop_resource_capability() {
  if (!can_switch_users()) return;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return;
  data[0].effective &= ~(std::uint32_t{1} << CAP_SYS_RESOURCE);
  ::syscall(SYS_capset, &header, data);
}

}  // namespace

bool can_switch_users() {
  static const bool kCan = try_to_switch();
  return kCan;
}

bool would_serve_all_as_root() {
  return ::geteuid() == 0 && !can_switch_users() && !is_the_only_user();
}

const Credentials& acting_as(const Credentials& who) {
  static const Credentials kServer{::geteuid(), ::getegid(), {}};
  return can_switch_users() ? who : kServer;
}

bool may_act_on_loop(const Credentials& who) {
  return may_prepare_loop() || is_root_of_server(who);
}

bool may_prepare_loop() {
  return !loops_keep_credentials() || !can_switch_users();
}

CredentialScope::CredentialScope(const Credentials& who) : uid_(who.uid), gid_(who.gid) {
  if (!can_switch_users()) return;
  if (who.uid == kNoId || who.gid == kNoId) {
    ok_ = false;
    return;
  }
  if (is_root_of_server(who)) return;
  switched_ = true;
  // Groups and group first: afterwards the thread may have lost the right to change them.
  if (who.uid != 0) ok_ = switch_groups(groups_of(who));
  ok_ = ok_ && switch_group(who.gid) && switch_user(who.uid);
  if (ok_) current_scope = this;
}

CredentialScope::~CredentialScope() {
  if (!switched_) return;
  current_scope = nullptr;
  act_as_server();
}

ServerScope::ServerScope() : left_(std::exchange(current_scope, nullptr)) {
  if (left_ != nullptr) act_as_server();
}

// As the server the rest of the scope would be let in everywhere.
ServerScope::~ServerScope() {
  if (left_ == nullptr) return;
  STAG_CHECK(switch_group(left_->gid_) && switch_user(left_->uid_));
  current_scope = left_;
}

void prepare_loop_thread() {
  thread_local const bool kPrepared = [] {
    drop_resource_capability();
    return true;
  }();
  (void)kPrepared;
}

void prepare_worker_thread(const Executor* of) {
  executor_of_thread = of;
  if (std::exchange(is_prepared_worker, true)) return;
  if (can_switch_users()) act_as_server();
  static_cast<void>(::unshare(CLONE_FS));
  ::umask(0);
  prepare_loop_thread();
}

bool is_worker_thread() {
  return is_prepared_worker;
}

bool is_worker_of(const std::weak_ptr<Executor>& executor) {
  return executor_of_thread != nullptr && executor.lock().get() == executor_of_thread;
}

}  // namespace stag::vfs::posix
