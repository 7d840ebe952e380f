#include "base/cancel.h"

namespace stag {

CancelSource::~CancelSource() {
  for (CancelCallback* hook = first_; hook != nullptr; hook = hook->next_) hook->source_ = nullptr;
}

void CancelSource::cancel() {
  cancelled_ = true;
  // A callback may end the coroutine whose frame holds this source: from here on only `hooks` is
  // touched.
  CancelSource hooks;
  std::swap(hooks.first_, first_);
  for (CancelCallback* hook = hooks.first_; hook != nullptr; hook = hook->next_)
    hook->source_ = &hooks;
  while (hooks.first_ != nullptr) {
    CancelCallback* hook = hooks.first_;
    hook->unhook();
    // The callback may destroy its own hook.
    UniqueFunction<void()> callback = std::move(hook->callback_);
    callback();
  }
}

CancelCallback::CancelCallback(CancelToken token, UniqueFunction<void()> callback)
    : callback_(std::move(callback)) {
  if (token.source_ == nullptr) return;
  if (token.source_->cancelled_) {
    callback_();
    return;
  }
  source_ = token.source_;
  next_ = source_->first_;
  if (next_ != nullptr) next_->previous_ = this;
  source_->first_ = this;
}

void CancelCallback::unhook() {
  if (source_ == nullptr) return;
  (previous_ != nullptr ? previous_->next_ : source_->first_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  source_ = nullptr;
  next_ = previous_ = nullptr;
}

}  // namespace stag
