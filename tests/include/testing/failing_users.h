// A user database that cannot be read for a while.
#pragma once

#include <nss.h>
#include <sys/resource.h>

namespace stag::testing {

// While one stands, getpwnam_r() fails for want of a descriptor; so does all else that wants one.
// The process asks no source of users but /etc/passwd from then on.
class FailingUsers {
 public:
  FailingUsers() {
    __nss_configure_lookup("passwd", "files");
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
  }
  FailingUsers(const FailingUsers&) = delete;
  FailingUsers& operator=(const FailingUsers&) = delete;
  ~FailingUsers() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace stag::testing
