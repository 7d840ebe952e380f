// SessionClient::Run: what run() does, step by step, for coroutines that go on with the results
// without one of the SessionClient's in between; included by .cc files of this folder.
//
//   SessionClient::Run run(client, context, request, options);
//   if (run.begun()) run.take(co_await run.send());
//   if (!run.answered()) co_await run.rest();
//   if (!run.answered()) co_return Failure{run.error()};
#pragma once

#include <optional>

#include "nfs/client/v4/session_client.h"

namespace stag::nfs::client::nfs4 {

class SessionClient::Run {
 public:
  // All of them outlive it.
  Run(SessionClient& client, const OperationContext& context, Request& request,
      const ProtocolOptions& options);
  Run(const Run&) = delete;

  // Whether it can be sent at once: nothing is to be waited for, or recovered, before. Then send()
  // and take() are first.
  bool begun() const { return exchange_.has_value(); }
  Task<Result<rpc::ReplyMessage, rpc::CallError>> send() { return exchange_->send(); }
  void take(Result<rpc::ReplyMessage, rpc::CallError>&& reply);
  // Whether the results, which are those of a success, are in the Request.
  bool answered() const { return answered_; }
  // Until they are, where they are not yet, or there is an error. Ends before this does.
  Task<void> rest();
  const Error& error() const { return came_->error(); }

 private:
  SessionClient& client_;
  const OperationContext& context_;
  Request& request_;
  const ProtocolOptions& options_;
  const bool changes_;
  bool answered_ = false;
  HeldTurn held_;
  rpc::CallOptions call_;
  std::optional<Exchange> exchange_;
  std::optional<Outcome<Attempt>> came_;  // what did not count
};

}  // namespace stag::nfs::client::nfs4
