// Request: a request of the kernel, which gets one answer. A program that waits for a server that
// does not answer can be interrupted: a while after the signal the kernel is told EINTR, and the
// operation goes on by itself, or is cancelled where that has a meaning to the server.
//
// Thread: the loop of the Mount.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/cancel.h"
#include "fuse/changes.h"
#include "fuse/interruption.h"
#include "fuse/invalidations.h"
#include "nfs/client/protocol/error.h"

namespace stag::fuse {

class Request {
 public:
  // `context` outlives it.
  Request(RequestContext& context, fuse_req_t request, Wait wait = Wait::Other);
  // Without an answer, that of an operation that ran out of memory.
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // The request, for one of libfuse's fuse_reply_ functions; null when it was answered already.
  fuse_req_t take();
  // `operation`, which outlives it, is cancelled with it in place of going on by itself. It may
  // take long.
  void ends(CancelSource& operation) {
    operation_ = &operation;
    waiting_.end();
  }
  // It changes the data of a file until end_change() or its own end, by itself once it was given
  // up.
  void begin_change(Changes& all, std::uint64_t number) { change_.emplace(all, number); }
  void end_change() { change_.reset(); }
  // The kernel keeps pages of the file locked until it is answered.
  void locks_pages(Invalidations& all, std::uint64_t number) {
    locked_.emplace(all, number, [this] { fail(EIO); });
  }
  // It reads or writes by so many bytes of memory of its own.
  void holds(std::size_t bytes) { interruption_.holds(bytes); }
  // Whether it still waits for its answer.
  bool waits() const { return request_ != nullptr; }
  void fail(int error);
  void fail(const nfs::client::Error& error);
  void done() { fail(0); }

 private:
  static void interrupted(fuse_req_t request, void* self);
  void abandon();

  fuse_req_t request_;
  Interruption interruption_;
  LongWaits::Waiting waiting_;
  CancelSource* operation_ = nullptr;
  std::optional<Changes::Change> change_;
  std::optional<Invalidations::Lock> locked_;
};

}  // namespace stag::fuse
