#include "base/pause.h"

#include "base/completion.h"
#include "base/result.h"

namespace stag {

Task<void> pause(Loop& loop, Duration length, CancelToken token) {
  Completion<Ok> over;
  const auto finish = [&over] {
    if (!over.completed()) over.complete(Ok{});
  };
  const Timer timer = loop.after(length, finish);
  const CancelCallback cancelled(token, finish);
  co_await over;
}

}  // namespace stag
