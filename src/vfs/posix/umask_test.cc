// Modes are the client's to choose, whatever umask the server was started with.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <thread>

#include "vfs/posix/credentials.h"

namespace stag::vfs::posix {
namespace {

// As containers are started by default.
bool refuse_unshare() {
  sock_filter lines[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(lines)), lines};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// The umask of a worker of a process that begins with another one; -1: no filter can be had.
int umask_of_worker(bool refused) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::umask(022);
    if (refused && !refuse_unshare()) ::_exit(255);
    std::thread([] {
      prepare_worker_thread(nullptr);
      ::_exit(static_cast<int>(::umask(0)));
    }).join();
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) != 255 ? WEXITSTATUS(status) : -1;
}

TEST(Umask, is_zero_for_a_worker) {
  EXPECT_EQ(umask_of_worker(false), 0);
}

TEST(Umask, is_zero_for_a_worker_where_the_system_gives_a_thread_none_of_its_own) {
  const int mask = umask_of_worker(true);
  if (mask < 0) GTEST_SKIP() << "no filter of system calls can be had";
  EXPECT_EQ(mask, 0);
}

}  // namespace
}  // namespace stag::vfs::posix
