// Version 4.0: COMPOUNDs without a session (RFC 7530).
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"

namespace stag::nfs::client::nfs4 {

// As it is: what stands in the place of SEQUENCE is left out, and the results are numbered as if it
// were there.
Task<Outcome<SessionClient::Attempt>> SessionClient::send_v40(OperationContext context,
                                                              Request& request,
                                                              const ProtocolOptions& options) {
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
