// How a client ID and a session are made, and made again when the server has lost them: one step
// after the other, by one caller for all.
#include "nfs/client/protocol/retrying_client.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"
#include "nfs/client/v4/status.h"

namespace stag::nfs::client::nfs4 {

using session::ClientV40;

bool SessionClient::ready() const {
  return minor_ == 0 ? client_v40_.step() == ClientV40::Step::Ready
                     : session_.step() == session::Step::Ready;
}

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

Task<Outcome<SessionClient::Attempt>> SessionClient::take_step(OperationContext context,
                                                               const ProtocolOptions& options) {
  const session::Step step = session_.step();
  if (step == session::Step::ReclaimComplete) {
    Outcome<Taken> taken = co_await take_turn(context, options);
    if (!taken) co_return Failure{taken.error()};
    if (taken->fate != Fate::Go) co_return Attempt{taken->fate, v4::NFS4_OK, {}};
    Request request;
    request.add(v4::OP_RECLAIM_COMPLETE);
    Outcome<Attempt> came = co_await send_with(taken->turn, false, context, request, options);
    if (came && came->fate == Fate::Go) came->fate = session_.on_reclaim_complete(came->status);
    // It was done, whatever its results were.
    if (came && came->fate == Fate::Gone) came->fate = session_.on_reclaim_complete(v4::NFS4_OK);
    co_return came;
  }
  Op operation;
  if (step == session::Step::ExchangeId) {
    operation.argop = v4::OP_EXCHANGE_ID;
    operation.opexchange_id() = session_.exchange_id();
  } else {
    operation.argop = v4::OP_CREATE_SESSION;
    operation.opcreate_session() = session_.create_session();
  }
  Outcome<Attempt> came = co_await alone(context, std::move(operation), call_options_of(options));
  if (!came || came->fate != Fate::Go) co_return came;
  OpResult& result = came->results.front();
  came->fate = step == session::Step::ExchangeId
                   ? session_.on_exchange_id(result.opexchange_id())
                   : session_.on_create_session(result.opcreate_session());
  co_return came;
}

// After a fate that is no end: pauses where one is due. An error is the end.
Task<Outcome<Ok>> SessionClient::go_on(Fate fate, v4::nfsstat4 status, OperationContext context,
                                       JukeboxRetry& retry) {
  switch (fate) {
    case Fate::Go:
    case Fate::Again:
      co_return Ok{};
    case Fate::Later:
      if (!retry.left()) co_return Failure{Error::of_status(context, Status::Delay)};
      co_await retry.pause();
      co_return Ok{};
    case Fate::Refused:
      co_return Failure{Error::of_status(context, to_status(status))};
    case Fate::Gone:
      co_return Failure{Error::of_protocol(context, "did this, and has lost the results")};
    case Fate::Broken:
      break;
  }
  co_return Failure{Error::of_protocol(context, "does not keep to the session that it gave")};
}

Task<Outcome<Ok>> SessionClient::recover(OperationContext context, const ProtocolOptions& options) {
  JukeboxRetry retry(channel().loop(), options);
  while (!ready()) {
    if (recovering_) {
      co_await recovered_.wait(options.cancel);
      if (options.cancel.cancelled()) co_return Failure{cancelled_error(context, channel())};
      continue;
    }
    Outcome<Attempt> came = Attempt{};
    {
      const InProgress in_progress(recovering_, recovered_);
      if (minor_ == 0)
        came = co_await take_step_v40(context, options);
      else
        came = co_await take_step(context, options);
    }
    if (!came) co_return Failure{came.error()};
    minor_refused_ = came->status == v4::NFS4ERR_MINOR_VERS_MISMATCH;
    const Outcome<Ok> going = co_await go_on(came->fate, came->status, context, retry);
    if (!going) co_return going;
  }
  free_slot_.wake_all();
  co_return Ok{};
}

}  // namespace stag::nfs::client::nfs4
