#include "fuse/request.h"

#include <cerrno>
#include <utility>

#include "fuse/values.h"

namespace stag::fuse {

Request::Request(RequestContext& context, fuse_req_t request, Wait wait)
    : request_(request), interruption_(context, fuse_req_ctx(request)->pid, wait) {
  if (wait != Wait::Lock) waiting_.begin(context.long_waits, fuse_req_ctx(request)->pid);
  fuse_req_interrupt_func(request_, interrupted, this);
}

Request::~Request() {
  fail(ENOMEM);
}

fuse_req_t Request::take() {
  interruption_.end();
  waiting_.end();
  if (request_ != nullptr) fuse_req_interrupt_func(request_, nullptr, nullptr);
  return std::exchange(request_, nullptr);
}

void Request::fail(int error) {
  if (fuse_req_t request = take()) fuse_reply_err(request, error);
  if (locked_) locked_->end();
}

void Request::fail(const nfs::client::Error& error) {
  fail(errno_of(error));
}

void Request::abandon() {
  fail(EINTR);
  if (change_) change_->leave();
  if (operation_ != nullptr) operation_->cancel();
}

// Called by libfuse, which holds a lock of the request: it cannot be answered here.
void Request::interrupted(fuse_req_t, void* self) {
  Request& request = *static_cast<Request*>(self);
  request.interruption_.begin([&request] { request.abandon(); });
}

}  // namespace stag::fuse
