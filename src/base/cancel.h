// Cancelling: a CancelSource is pulled once, every CancelCallback registered with its token runs,
// on the same loop. Cancelling asks; what was asked still ends in its own way and time, and only
// then gives memory back.
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
  // Idempotent. Callbacks run inside, each unhooked before it runs; one of them may destroy this.
  void cancel();

 private:
  friend class CancelCallback;
  bool cancelled_ = false;
  CancelCallback* first_ = nullptr;
};

// A view of a source; the default one is never cancelled. The source outlives its tokens' use.
class CancelToken {
 public:
  CancelToken() = default;
  CancelToken(CancelSource& source) : source_(&source) {}
  bool cancelled() const { return source_ != nullptr && source_->cancelled(); }
  // Whether there is anything that could cancel.
  bool has_source() const { return source_ != nullptr; }

 private:
  friend class CancelCallback;
  CancelSource* source_ = nullptr;
};

// Runs `callback` when the source is cancelled, or inside the constructor if it already is. Unhooks
// itself when destroyed.
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
