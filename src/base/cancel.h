// Cancellation: CancelSource::cancel() runs every CancelCallback that is registered with a token of
// that source. To cancel is to ask: the cancelled operation still ends in its own way and time, and
// only then gives memory back to its caller.
//
// Thread: source, tokens and callbacks belong to one loop's thread.
#pragma once

#include <utility>

#include "base/unique_function.h"

namespace stag {

class CancelCallback;

class CancelSource {
 public:
  CancelSource() = default;
  CancelSource(const CancelSource&) = delete;
  CancelSource& operator=(const CancelSource&) = delete;
  ~CancelSource();

  bool cancelled() const { return cancelled_; }
  // Idempotent. Runs the callbacks before it returns, each unregistered first; a callback may
  // destroy this source.
  void cancel();

 private:
  friend class CancelCallback;
  bool cancelled_ = false;
  CancelCallback* first_ = nullptr;
};

// A view of a source, which outlives the uses of its tokens. A default token is never cancelled.
class CancelToken {
 public:
  CancelToken() = default;
  CancelToken(CancelSource& source) : source_(&source) {}
  bool cancelled() const { return source_ != nullptr && source_->cancelled(); }
  // False for a default token, which nothing can cancel.
  bool has_source() const { return source_ != nullptr; }

 private:
  friend class CancelCallback;
  CancelSource* source_ = nullptr;
};

// Runs `callback` once, when the source is cancelled, or inside the constructor if the source is
// cancelled already. Unregisters itself when destroyed.
class CancelCallback {
 public:
  CancelCallback(CancelToken token, UniqueFunction<void()> callback);
  CancelCallback(const CancelCallback&) = delete;
  CancelCallback& operator=(const CancelCallback&) = delete;
  ~CancelCallback() { unhook(); }

 private:
  friend class CancelSource;
  void unhook();

  CancelSource* source_ = nullptr;
  CancelCallback* next_ = nullptr;
  CancelCallback* previous_ = nullptr;
  UniqueFunction<void()> callback_;
};

}  // namespace stag
