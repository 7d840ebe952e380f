// What a system may have no more of.
#pragma once

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>

#include "base/check.h"

namespace stag::testing {

// The undefined-behaviour sanitizer looks by a pipe of its own whether it may read an object whose
// type is new to it, and takes it for a wrong one where it gets none.
constexpr bool sanitizer_needs_descriptors() {
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
  return true;
#endif
#endif
  return false;
}

// Only `spare` more descriptors can be opened while this lives.
class FewFiles {
 public:
  explicit FewFiles(rlim_t spare) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);
    rlimit low = before_;
    low.rlim_cur = static_cast<rlim_t>(next) + spare;
    ::close(next);
    setrlimit(RLIMIT_NOFILE, &low);
  }
  ~FewFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;

 private:
  rlimit before_{};
};

// No thread can be started while this lives: there is no room for its stack.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge = before_;
    pthread_attr_setstacksize(&huge, std::size_t{1} << 50);
    STAG_CHECK(pthread_setattr_default_np(&huge) == 0);
  }
  ~NoThreads() { pthread_setattr_default_np(&before_); }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace stag::testing
