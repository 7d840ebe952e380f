// What SessionClient does for opens that are held: their stateids in requests, and the lease.
#include <new>

#include "nfs/client/protocol/retrying_client.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"

namespace stag::nfs::client::nfs4 {

bool SessionClient::fill_in_lock(v4::LOCK4args& args, const Request::ByOpen& by) const {
  const std::optional<v4::stateid4> open = opens_.stateid(by.open);
  if (!open) return false;
  const std::optional<v4::stateid4> locks = opens_.lock_stateid(by.open, by.owner);
  args.locker.new_lock_owner = !locks;
  if (locks)
    args.locker.lock_owner() = {*locks, 0};
  else
    args.locker.open_owner() = {
        0, *open, 0, {clientid(), Rope::copy_of(bytes_of(std::string_view(by.owner)))}};
  return true;
}

bool SessionClient::fill_in_data(Request& request, const Request::ByOpen& by) const {
  const std::optional<v4::stateid4> stateid = opens_.data_stateid(by.open);
  if (!stateid) return false;
  for (std::size_t at = by.place; at <= request.size(); ++at)
    if (v4::stateid4* const to = request.data_stateid(at)) *to = *stateid;
  return true;
}

bool SessionClient::fill_in_stateid(Request& request) const {
  if (!request.by_open()) return true;
  const Request::ByOpen& by = *request.by_open();
  if (request.data_stateid(by.place) != nullptr) return fill_in_data(request, by);
  Op& operation = request.operation(by.place);
  // To give something back it must be there, and need not be whole.
  if (operation.argop == v4::OP_LOCKU) {
    const std::optional<v4::stateid4> locks = opens_.lock_stateid(by.open, by.owner);
    if (locks) operation.oplocku().lock_stateid = *locks;
    return locks.has_value();
  }
  const std::optional<v4::stateid4> open = opens_.stateid(by.open);
  if (!open) return false;
  if (operation.argop == v4::OP_CLOSE) {
    operation.opclose().open_stateid = *open;
    return true;
  }
  if (!opens_.intact(by.open)) return false;
  switch (operation.argop) {
    case v4::OP_COPY_NOTIFY:
      operation.opoffload_notify().cna_src_stateid = *open;
      return true;
    case v4::OP_LOCKT:
      operation.oplockt().owner = {clientid(), Rope::copy_of(bytes_of(std::string_view(by.owner)))};
      return true;
    default:
      return fill_in_lock(operation.oplock(), by);
  }
}

v4::stateid4 SessionClient::sent_stateid(Request& request) {
  const v4::stateid4* const of_data = request.data_stateid(request.by_open()->place);
  if (of_data != nullptr) return *of_data;
  Op& operation = request.operation(request.by_open()->place);
  switch (operation.argop) {
    case v4::OP_COPY_NOTIFY:
      return operation.opoffload_notify().cna_src_stateid;
    case v4::OP_CLOSE:
      return operation.opclose().open_stateid;
    case v4::OP_LOCKU:
      return operation.oplocku().lock_stateid;
    case v4::OP_LOCK: {
      v4::locker4& locker = operation.oplock().locker;
      return locker.new_lock_owner ? locker.open_owner().open_stateid
                                   : locker.lock_owner().lock_stateid;
    }
    default:
      return {};
  }
}

// Of a LOCK or LOCKU that was done.
void SessionClient::note_lock(Request& request) {
  if (!request.by_open() || request.status() != v4::NFS4_OK) return;
  const Request::ByOpen& by = *request.by_open();
  OpResult* const result = request.result(by.place);
  if (result == nullptr) return;
  if (result->resop == v4::OP_LOCK && result->oplock().status == v4::NFS4_OK)
    opens_.on_lock(by.open, by.owner, by.lock, result->oplock().resok4().lock_stateid);
  if (result->resop == v4::OP_LOCKU && result->oplocku().status == v4::NFS4_OK)
    opens_.on_lock(by.open, by.owner, by.lock, result->oplocku().lock_stateid());
}

void SessionClient::on_unlock(session::Opens::Id id, const session::Opens::LockOwner& owner,
                              const state::Range& range) {
  opens_.on_unlock(id, owner, range);
  if (minor_ == 0 && !owners_.is_busy(owner)) settle_lock_owner(owner);
}

std::shared_ptr<const session::Opener> SessionClient::opener_of(
    const rpc::Credentials& credentials) const {
  if (is_own(credentials)) return nullptr;
  return std::make_shared<const session::Opener>(session::Opener{credentials});
}

void SessionClient::hold(session::Opens::Id id, const Handle& file, std::uint32_t access,
                         const v4::stateid4& stateid,
                         std::shared_ptr<const session::Opener> opener) {
  opens_.add(id, to_nfs_fh4(file), access, stateid, std::move(opener));
  if (!renewal_set_) renew_later();
}

// RFC 8881 18.2.3: a server may refuse to close while there are locks.
Task<Outcome<Ok>> SessionClient::unlock_all(OperationContext context, File file,
                                            const ProtocolOptions& options) {
  while (const session::Opens::LockOwner* owner = opens_.any_lock_owner(file.open)) {
    const session::Opens::LockOwner name = *owner;
    Request request;
    request.put_handle(file.handle);
    const std::size_t at = request.add(v4::OP_LOCKU, &Op::oplocku,
                                       {v4::READ_LT, 0, v4::stateid4{}, 0, state::Range::kEnd});
    request.set_by({at, file.open, name, {{}, state::RangeMode::None}});
    const Outcome<Reply> reply = co_await run(context, request.once_only(), options);
    if (!reply && reply.error().out_of_memory()) co_return Failure{reply.error()};
    on_unlock(file.open, name, {});
    if (!reply && !reply.error().is(Status::StateLost)) co_return Failure{reply.error()};
  }
  co_return Ok{};
}

// StateLost: nothing is left at the server that could be given back.
Task<Outcome<Ok>> SessionClient::close_open(OperationContext context, File file,
                                            const ProtocolOptions& options, Unheard unheard) {
  const Outcome<Ok> unlocked = co_await unlock_all(context, file, options);
  if (!unlocked && unlocked.error().out_of_memory()) co_return unlocked;
  Request request;
  request.put_handle(file.handle);
  const std::size_t at = request.add(v4::OP_CLOSE, &Op::opclose, {0, v4::stateid4{}});
  request.set_by({at, file.open, {}, {}});
  // Of a CLOSE that comes again: the one before was done.
  if (unheard == Unheard::Kept) request.expect(v4::NFS4ERR_BAD_STATEID);
  const Outcome<Reply> reply = co_await run(context, request.once_only(), options);
  const bool no_reply = !reply && reply.error().kind == Error::Kind::Call;
  const bool kept = unheard == Unheard::Kept || (no_reply && reply.error().out_of_memory());
  if (no_reply && kept) co_return Failure{reply.error()};
  opens_.remove(file.open);
  if (!reply) owners_.renew(file.open);
  owners_.release(file.open);
  if (!reply && !reply.error().is(Status::StateLost)) co_return Failure{reply.error()};
  co_return unlocked;
}

void SessionClient::renew_later() noexcept {
  renewal_set_ = false;
  if (opens_.empty() || stop_.cancelled()) return;
  try {
    renewal_ = channel().loop().after(session_.lease() / 3, [this] { on_renewal_due(); });
    renewal_set_ = true;
  } catch (const std::bad_alloc&) {
  }
}

// The next timer first: whatever becomes of this renewal, there is another.
void SessionClient::on_renewal_due() {
  renew_later();
  if (opens_.empty() || renewing_) return;
  try {
    background_.add(renewed());
  } catch (const std::bad_alloc&) {
  }
}

// RFC 8881 8.3: a SEQUENCE renews the lease, in version 4.0 a RENEW. Whether it worked does not
// matter: the next one, or the next call, finds out again.
Task<void> SessionClient::renewed() {
  const Underway renewing(renewing_);
  ProtocolOptions options = background_options();
  options.cancel = CancelToken(stop_);
  try {
    if (minor_ == 0) {
      co_await renew_v40(options);
    } else if (!ready() || session_.renewal_due(channel().loop().now())) {
      Request request;
      static_cast<void>(co_await run({"renew the lease", {}}, request, options));
    }
  } catch (const std::bad_alloc&) {
  }
  begin_again();
}

void SessionClient::begin_again() {
  if (stop_.cancelled()) return;
  if (!renewal_set_) renew_later();
  if (delegations_.due() > 0) give_back_due();
  if (session_.has_left() && session_.has_session())
    begin_once(destroying_, &SessionClient::destroy_left);
}

}  // namespace stag::nfs::client::nfs4
