// Version 4.0: COMPOUNDs without a session (RFC 7530).
#include "nfs/client/protocol/retrying_client.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"

namespace stag::nfs::client::nfs4 {

using session::ClientV40;

Task<Outcome<SessionClient::Attempt>> SessionClient::take_step_v40(OperationContext context,
                                                                   const ProtocolOptions& options) {
  const bool setting = client_v40_.step() == ClientV40::Step::SetClientid;
  Op operation;
  if (setting) {
    operation.argop = v4::OP_SETCLIENTID;
    operation.opsetclientid() = client_v40_.set_clientid();
  } else {
    operation.argop = v4::OP_SETCLIENTID_CONFIRM;
    operation.opsetclientid_confirm() = client_v40_.confirm();
  }
  Outcome<Attempt> came = co_await alone(context, std::move(operation), call_options_of(options));
  if (!came || came->fate != Fate::Go) co_return came;
  came->fate = setting ? client_v40_.on_set_clientid(came->results.front().opsetclientid())
                       : client_v40_.on_confirm(came->status);
  co_return came;
}

Task<Outcome<Ok>> SessionClient::identify_v40(OperationContext context,
                                              const ProtocolOptions& options) {
  JukeboxRetry retry(channel().loop(), options);
  while (client_v40_.step() != ClientV40::Step::Ready) {
    if (recovering_) {
      co_await recovered_.wait(options.cancel);
      if (options.cancel.cancelled()) co_return Failure{cancelled_error(context, channel())};
      continue;
    }
    Outcome<Attempt> came = Attempt{};
    {
      const InProgress in_progress(recovering_, recovered_);
      came = co_await take_step_v40(context, options);
    }
    if (!came) co_return Failure{came.error()};
    const Outcome<Ok> going = co_await go_on(came->fate, came->status, context, retry);
    if (!going) co_return going;
  }
  co_return Ok{};
}

// As it is: what stands in the place of SEQUENCE is left out, and the results are numbered as if it
// were there.
Task<Outcome<SessionClient::Attempt>> SessionClient::attempt_v40(OperationContext context,
                                                                 Request& request,
                                                                 const ProtocolOptions& options) {
  if (request.open_place()) {
    const Outcome<Ok> known = co_await identify_v40(context, options);
    if (!known) co_return Failure{known.error()};
    fill_in_owner(request);
  }
  std::vector<Op>& operations = request.operations();
  Op sequence = std::move(operations.front());
  operations.erase(operations.begin());
  rpc::CallOptions call = call_options_of(options);
  call.sinks = request.sinks;
  call.results_max = request.results_max;
  Outcome<Attempt> came = co_await send(context, operations, call);
  operations.insert(operations.begin(), std::move(sequence));
  if (!came) co_return came;
  came->results.emplace(came->results.begin())->resop = v4::OP_SEQUENCE;
  if (request.open_place()) came->fate = client_v40_.on_status(came->status);
  co_return came;
}

}  // namespace stag::nfs::client::nfs4
