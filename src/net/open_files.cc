#include "net/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace stag::net {

std::uint64_t open_files_limit() {
  rlimit limit{};
  // 1024 is the usual default limit.
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

std::uint64_t connections_within(std::uint64_t open_files) {
  constexpr std::uint64_t kMostOthers = 4096;
  return open_files - std::min(open_files / 2, kMostOthers);
}

}  // namespace stag::net
