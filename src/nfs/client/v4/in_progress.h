// What the parts of SessionClient share.
#pragma once

#include "nfs/client/protocol/error.h"
#include "nfs/client/protocol/options.h"
#include "nfs/client/v4/wait_list.h"
#include "rpc/client.h"

namespace stag::nfs::client::nfs4 {

inline rpc::CallOptions call_options_of(const ProtocolOptions& options) {
  rpc::CallOptions call;
  call.timeout = options.timeout;
  call.cancel = options.cancel;
  call.credentials = &options.credentials;
  return call;
}

inline Error cancelled_error(OperationContext context, const rpc::Channel& channel) {
  return Error::of_call(context, rpc::CallError::transport(Reason::Cancelled, channel.where()));
}

// Set while one coroutine recovers for all, however that ends.
class InProgress {
 public:
  InProgress(bool& flag, WaitList& waiting) : flag_(flag), waiting_(waiting) { flag_ = true; }
  ~InProgress() {
    flag_ = false;
    waiting_.wake_all();
  }
  InProgress(const InProgress&) = delete;
  InProgress& operator=(const InProgress&) = delete;

 private:
  bool& flag_;
  WaitList& waiting_;
};

// Set while a coroutine runs that sets it first, and so not where there was no memory for the
// coroutine.
class Underway {
 public:
  explicit Underway(bool& flag) : flag_(flag) { flag_ = true; }
  ~Underway() { flag_ = false; }
  Underway(const Underway&) = delete;
  Underway& operator=(const Underway&) = delete;

 private:
  bool& flag_;
};

}  // namespace stag::nfs::client::nfs4
