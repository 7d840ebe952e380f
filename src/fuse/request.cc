#include "fuse/request.h"

#include <cerrno>
#include <new>
#include <utility>

#include "fuse/values.h"

namespace stag::fuse {
namespace {

// Signals that end no program come here, too, and few programs expect EINTR from files.
constexpr auto kPatience = std::chrono::seconds(2);

}  // namespace

Request::Request(RequestContext& context, fuse_req_t request)
    : context_(context), request_(request) {
  fuse_req_interrupt_func(request_, interrupted, this);
}

Request::~Request() {
  fail(ENOMEM);
  if (abandoned_) --context_.abandoned;
}

fuse_req_t Request::take() {
  patience_.cancel();
  if (request_ != nullptr) fuse_req_interrupt_func(request_, nullptr, nullptr);
  return std::exchange(request_, nullptr);
}

void Request::fail(int error) {
  if (fuse_req_t request = take()) fuse_reply_err(request, error);
}

void Request::fail(const nfs::client::Error& error) {
  fail(errno_of(error));
}

void Request::abandon() {
  if (context_.abandoned >= RequestContext::kMostAbandoned) return;
  ++context_.abandoned;
  abandoned_ = true;
  fail(EINTR);
  if (operation_ != nullptr) operation_->cancel();
}

// Called by libfuse, which holds a lock of the request: it cannot be answered here.
void Request::interrupted(fuse_req_t, void* self) {
  Request& request = *static_cast<Request*>(self);
  try {
    request.patience_ = request.context_.loop.after(kPatience, [&request] { request.abandon(); });
  } catch (const std::bad_alloc&) {
    // The program waits for the server, then.
  }
}

}  // namespace stag::fuse
