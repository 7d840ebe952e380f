// Request: a request of the kernel, which gets one answer. A program that waits for a server that
// does not answer can be interrupted: a while after the signal the kernel is told EINTR, and the
// operation goes on by itself.
//
// Thread: the loop of the Mount.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "base/loop.h"
#include "nfs/client/protocol/error.h"

namespace stag::fuse {

class Request {
 public:
  Request(Loop& loop, fuse_req_t request);
  // Without an answer, that of an operation that ran out of memory.
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // The request, for one of libfuse's fuse_reply_ functions; null when it was answered already.
  fuse_req_t take();
  void fail(int error);
  void fail(const nfs::client::Error& error);
  void done() { fail(0); }

 private:
  static void interrupted(fuse_req_t request, void* self);

  Loop& loop_;
  fuse_req_t request_;
  Timer patience_;
};

}  // namespace stag::fuse
