#include "fuse/init_answer.h"

#include <linux/fuse.h>

#include <cstddef>
#include <cstring>

namespace stag::fuse {

void allow_parallel_directories(MutableBytes answer) {
  std::uint32_t flags;
  constexpr std::size_t kAt = offsetof(fuse_init_out, flags);
  if (answer.size() < kAt + sizeof(flags)) return;
  std::memcpy(&flags, answer.data() + kAt, sizeof(flags));
  flags |= FUSE_PARALLEL_DIROPS;
  std::memcpy(answer.data() + kAt, &flags, sizeof(flags));
}

}  // namespace stag::fuse
