#include "fuse/last_calls.h"

#include <algorithm>

namespace stag::fuse {

LastCalls::LastCalls(Loop& loop, const UnstableWrites& writes, Duration lease, CancelSource& calls)
    : courtesy_(loop.after(kCourtesy,
                           [&writes, &calls] {
                             if (writes.kept_bytes() == 0) calls.cancel();
                           })),
      lease_(loop.after(std::max(kCourtesy, lease), [&calls] { calls.cancel(); })) {}

}  // namespace stag::fuse
