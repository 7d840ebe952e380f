// Version 4.0: COMPOUNDs without a session (RFC 7530). What opens and locks is numbered by the
// owner whose operation it is (section 9.1.7), and goes in that owner's turn.
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"

namespace stag::nfs::client::nfs4 {

using Verdict = session::OwnerSequence::Verdict;
using Of = session::ClientV40::Of;

Task<Outcome<SessionClient::Attempt>> SessionClient::send_v40(OperationContext context,
                                                              Request& request,
                                                              const ProtocolOptions& options) {
  return send(context, request, call_options(context, request, options));
}

Task<Outcome<SessionClient::Attempt>> SessionClient::attempt_v40(OperationContext context,
                                                                 Request& request,
                                                                 const ProtocolOptions& options) {
  if (!request.open_place() && !request.by_open())
    co_return co_await send_v40(context, request, options);
  Outcome<Attempt> came = co_await attempt_in_turn(context, request, options);
  settle_owners(request);
  co_return came;
}

// Owners that were named for this operation, and have nothing: another one may be in its turn.
void SessionClient::settle_owners(Request& request) {
  if (!request.by_open()) return;
  const Request::ByOpen& by = *request.by_open();
  const v4::nfs_opnum4 what = request.number(by.place);
  const bool locks = what == v4::OP_LOCK || what == v4::OP_LOCKU;
  if (locks && !owners_.is_busy(by.owner)) settle_lock_owner(by.owner);
  if (opens_.file(by.open) == nullptr) owners_.release(by.open);
}

Task<Outcome<SessionClient::Attempt>> SessionClient::attempt_in_turn(
    OperationContext context, Request& request, const ProtocolOptions& options) {
  // Ended in the order of the other way round.
  OwnersV40::Turn opens, locks;
  OwnersV40::Pair owners;
  begin_to_wait(context);
  for (bool mine = false; !mine;) {
    const Outcome<Ok> recovered = co_await recover(context, options, &request);
    if (!recovered) co_return Failure{recovered.error()};
    locks.end();
    opens.end();
    owners = owners_of(request);
    const Outcome<Ok> first = co_await begin_turn(opens, owners.open, context, options);
    if (!first) co_return Failure{first.error()};
    const Outcome<Ok> second = co_await begin_turn(locks, owners.locks, context, options);
    if (!second) co_return Failure{second.error()};
    // While it waited the server may have lost the client, or an owner have become another one.
    mine = ready_for(request) && owners == owners_of(request);
    if (!mine || !owners.locks || !owners.locks->first_lock) continue;
    const Outcome<Ok> found = co_await find_first_lock(context, request, owners, options);
    if (!found) co_return Failure{found.error()};
    mine = ready_for(request) && owners == owners_of(request);
  }
  if (!fill_in_stateid(request)) co_return Failure{Error::of_status(context, Status::StateLost)};
  // LOCKT names the client, and goes by no state of it.
  const bool by_state =
      request.by_open() && request.number(request.by_open()->place) != v4::OP_LOCKT;
  const Of of = by_state ? Of::State : Of::Operation;
  Outcome<Attempt> came = co_await send_numbered(context, request, owners, options, of);
  if (came) note_lock(request);
  co_return came;
}

Task<Outcome<Ok>> SessionClient::begin_turn(OwnersV40::Turn& turn, OwnersV40::Ref owner,
                                            OperationContext context,
                                            const ProtocolOptions& options) {
  while (!turn.begin(owner)) {
    const Outcome<Ok> woken = co_await wait_in(owner->waiting, context, options);
    if (!woken) co_return woken;
  }
  co_return Ok{};
}

void SessionClient::note_lost_lock(Request& request) {
  if (!request.by_open()) return;
  const Request::ByOpen& by = *request.by_open();
  if (request.number(by.place) == v4::OP_LOCK) opens_.on_maybe_locked(by.open, by.owner, by.lock);
}

// An owner of locks whose first LOCK by this open was lost: the same again, before anything else.
Task<Outcome<Ok>> SessionClient::find_first_lock(OperationContext context, Request& request,
                                                 OwnersV40::Pair owners,
                                                 const ProtocolOptions& options) {
  const OwnersV40::FirstLock first = *owners.locks->first_lock;
  const Request::ByOpen& by = *request.by_open();
  if (first.open != by.open) co_return Ok{};
  const v4::nfs_fh4* const file = opens_.file(by.open);
  const bool current = first.incarnation == client_v40_.incarnation() && file != nullptr;
  if (!current) {
    owners.locks->first_lock.reset();
    co_return Ok{};
  }
  Request again;
  again.put_handle(*file);
  const std::size_t at = again.add(v4::OP_LOCK, &Op::oplock, v4::LOCK4args(first.args));
  Outcome<Attempt> came = co_await send_v40(context, again, options);
  if (!came) co_return Failure{came.error()};
  owners.locks->first_lock.reset();
  if (again.answered() <= at) co_return Ok{};
  const v4::open_to_lock_owner4& numbers = first.args.locker.open_owner();
  static_cast<void>(owners.locks->sequence.on_status(numbers.lock_seqid, came->status));
  // One that is certain has gone on since.
  if (!owners.open->sequence.certain())
    static_cast<void>(owners.open->sequence.on_status(numbers.open_seqid, came->status));
  if (came->status == v4::NFS4_OK)
    opens_.on_lock(by.open, by.owner, first.lock, again.result(at)->oplock().resok4().lock_stateid);
  else
    opens_.on_unlock(by.open, by.owner, first.lock.range);
  // Whether it was done cannot be found out any more.
  if (came->status == v4::NFS4ERR_BAD_SEQID) owners_.forget(by.owner);
  co_return Ok{};
}

// After NFS4ERR_OLD_STATEID: whether READ or WRITE went by the stateid of locks that have a newer
// one since, by a LOCK or LOCKU that went at the same time, or whose answer was lost.
Task<Outcome<bool>> SessionClient::has_newer_stateid(OperationContext context, Request& request,
                                                     const ProtocolOptions& options) {
  const Request::ByOpen& by = *request.by_open();
  const v4::stateid4* const sent = request.data_stateid(by.place);
  if (minor_ > 0 || sent == nullptr) co_return false;
  const session::Opens::LockOwner* const found = opens_.lock_owner(by.open, *sent);
  if (found == nullptr) co_return opens_.stateid(by.open) != *sent;
  const OwnersV40::Ref owner = owners_.of_locks(*found);
  if (owner->busy) {
    OwnersV40::Turn turn;
    const Outcome<Ok> ended = co_await begin_turn(turn, owner, context, options);
    if (!ended) co_return Failure{ended.error()};
    co_return true;
  }
  co_return opens_.on_old_stateid(by.open, *found);
}

OwnersV40::Pair SessionClient::owners_of(Request& request) {
  if (request.open_place()) return {owners_.of_open(*request.open_owner()), nullptr};
  const Request::ByOpen& by = *request.by_open();
  switch (request.number(by.place)) {
    case v4::OP_CLOSE:
      return {owners_.of_open(by.open), nullptr};
    case v4::OP_LOCK:
    case v4::OP_LOCKU:
      return {owners_.of_open(by.open), owners_.of_locks(by.owner)};
    default:
      return {};
  }
}

// The numbers of the owners, and their names.
SessionClient::Numbers SessionClient::number(Request& request, const OwnersV40::Pair& owners) {
  Numbers numbers;
  numbers.place = request.open_place() ? *request.open_place() : request.by_open()->place;
  if (owners.open) numbers.open = owners.open->sequence.next();
  if (owners.locks) numbers.locks = owners.locks->sequence.next();
  const auto rope_of = [](const std::string& name) { return Rope::copy_of(bytes_of(name)); };
  if (request.data_stateid(numbers.place) != nullptr) return numbers;
  Op& operation = request.operation(numbers.place);
  switch (operation.argop) {
    case v4::OP_OPEN:
      operation.opopen().seqid = *numbers.open;
      operation.opopen().owner = {clientid(), rope_of(OwnersV40::name_of(*owners.open))};
      break;
    case v4::OP_CLOSE:
      operation.opclose().seqid = *numbers.open;
      break;
    case v4::OP_LOCK: {
      v4::locker4& locker = operation.oplock().locker;
      if (!locker.new_lock_owner) {
        locker.lock_owner().lock_seqid = *numbers.locks;
        numbers.open.reset();
        break;
      }
      v4::open_to_lock_owner4& first = locker.open_owner();
      first.open_seqid = *numbers.open;
      first.lock_seqid = *numbers.locks;
      first.lock_owner.owner = rope_of(OwnersV40::name_of(*owners.locks));
      owners.locks->first_lock = {request.by_open()->open, client_v40_.incarnation(),
                                  operation.oplock(), request.by_open()->lock};
      break;
    }
    case v4::OP_LOCKU:
      operation.oplocku().seqid = *numbers.locks;
      numbers.open.reset();
      break;
    case v4::OP_LOCKT:
      operation.oplockt().owner.owner = rope_of(owners_.name_of(request.by_open()->owner));
      break;
    default:
      break;
  }
  return numbers;
}

// Without an answer the numbers are in doubt, also when there was no memory for it.
class SessionClient::Unanswered {
 public:
  Unanswered(session::Opens& opens, const Request& request, const OwnersV40::Pair& owners,
             const Numbers& numbers)
      : opens_(opens), request_(request), owners_(owners), numbers_(numbers) {}
  ~Unanswered() {
    if (!open_) return;
    if (numbers_.open) owners_.open->sequence.on_loss();
    if (!numbers_.locks) return;
    owners_.locks->sequence.on_loss();
    if (const auto& by = request_.by_open()) opens_.on_lost_stateid(by->open, by->owner);
  }
  void close() { open_ = false; }

 private:
  session::Opens& opens_;
  const Request& request_;
  const OwnersV40::Pair& owners_;
  const Numbers& numbers_;
  bool open_ = true;
};

Task<Outcome<SessionClient::Attempt>> SessionClient::send_numbered(OperationContext context,
                                                                   Request& request,
                                                                   OwnersV40::Pair owners,
                                                                   const ProtocolOptions& options,
                                                                   Of of) {
  const Numbers numbers = number(request, owners);
  const std::uint32_t incarnation = client_v40_.incarnation();
  Unanswered unanswered(opens_, request, owners, numbers);
  const TimePoint sent = channel().loop().now();
  Outcome<Attempt> came = co_await send_v40(context, request, options);
  if (!came) {
    note_lost_lock(request);
    co_return came;
  }
  unanswered.close();
  if (owners.locks) owners.locks->first_lock.reset();
  const Verdict verdict = judge(request, owners, numbers);
  came->fate = client_v40_.on_status(came->status, incarnation, of);
  if (came->fate != Fate::Go) co_return came;
  if (came->status == v4::NFS4_OK) note_renewal_v40(sent);
  if (verdict == Verdict::Again) {
    came->fate = Fate::Again;
  } else if (verdict == Verdict::Bad && request.open_place()) {
    owners_.renew(*request.open_owner());
    came->fate = client_v40_.on_bad_owner();
  } else if (verdict == Verdict::Bad) {
    // The open is made anew, and its locks are lost.
    owners_.renew(request.by_open()->open);
    if (owners.locks) owners_.forget(request.by_open()->owner);
  } else if (came->status == v4::NFS4ERR_OLD_STATEID && owners.locks &&
             opens_.on_old_stateid(request.by_open()->open, request.by_open()->owner)) {
    came->fate = Fate::Again;
  } else if (request.open_place() && (came->status == v4::NFS4_OK || request.is_done())) {
    co_return co_await confirm(context, request, owners.open, *std::move(came), options, of);
  }
  co_return came;
}

// What the answer says of the numbers. Behind an operation that failed nothing was executed.
Verdict SessionClient::judge(const Request& request, const OwnersV40::Pair& owners,
                             const Numbers& numbers) {
  if (request.answered() <= numbers.place) return Verdict::Good;
  const bool last = request.answered() == numbers.place + 1;
  const v4::nfsstat4 status = last ? request.status() : v4::NFS4_OK;
  // RFC 7530 9.1.9: which of two numbers is the wrong one is not said.
  const bool both = numbers.open && numbers.locks;
  if (both && status == v4::NFS4ERR_BAD_SEQID && owners.open->sequence.certain())
    return owners.locks->sequence.on_status(*numbers.locks, status);
  Verdict verdict = Verdict::Good;
  if (numbers.open) verdict = owners.open->sequence.on_status(*numbers.open, status);
  if (numbers.locks && (!both || status != v4::NFS4ERR_BAD_SEQID))
    verdict = owners.locks->sequence.on_status(*numbers.locks, status);
  return verdict;
}

// RFC 7530 16.18: the first open of an owner that the server does not know is confirmed, in the
// same turn. Its stateid is that of the results then.
Task<Outcome<SessionClient::Attempt>> SessionClient::confirm(OperationContext context,
                                                             Request& request, OwnersV40::Ref owner,
                                                             Attempt opened,
                                                             const ProtocolOptions& options,
                                                             Of of) {
  const std::size_t place = *request.open_place();
  v4::OPEN4resok& granted = request.result(place)->opopen().resok4();
  if ((granted.rflags & v4::OPEN4_RESULT_CONFIRM) == 0) {
    owner->confirmed = true;
    co_return opened;
  }
  // Behind every OPEN there is a GETFH.
  Request confirming;
  confirming.put_handle(request.result(place + 1)->opgetfh().resok4().object);
  const std::uint32_t incarnation = client_v40_.incarnation();
  const v4::seqid4 next = owner->sequence.next();
  const std::size_t at =
      confirming.add(v4::OP_OPEN_CONFIRM, &Op::opopen_confirm, {granted.stateid, next});
  const Numbers numbers{at, next, std::nullopt};
  const OwnersV40::Pair owners{owner, nullptr};
  Unanswered unanswered(opens_, request, owners, numbers);
  Outcome<Attempt> came = co_await send_v40(context, confirming, options);
  if (!came) co_return came;
  unanswered.close();
  const Verdict verdict = judge(confirming, owners, numbers);
  came->fate = client_v40_.on_status(came->status, incarnation, of);
  if (came->status == v4::NFS4_OK) {
    owner->confirmed = true;
    granted.stateid = confirming.result(at)->opopen_confirm().resok4().open_stateid;
    co_return opened;
  }
  // A server that has begun again need not know the stateid for one of before, and may forget an
  // open that waits for its confirmation.
  const bool forgotten = came->status == v4::NFS4ERR_BAD_STATEID;
  if (came->fate == Fate::Go && (verdict != Verdict::Good || forgotten)) {
    owners_.renew(*request.open_owner());
    came->fate = client_v40_.on_bad_owner();
  }
  // The file was created, if it was to be: from now on it is opened.
  if (came->fate == Fate::Again || came->fate == Fate::Unsteady)
    request.operation(place).opopen().openhow.opentype = v4::OPEN4_NOCREATE;
  co_return came;
}

// An owner without locks is given up at both ends (RFC 7530 16.37). `owner` by value: what it is of
// may be forgotten.
void SessionClient::settle_lock_owner(session::Opens::LockOwner owner) {
  if (opens_.has_locks(owner)) return;
  const bool known = opens_.forget(owner);
  std::string name = owners_.name_of(owner);
  owners_.forget(owner);
  if (known && !stop_.cancelled()) background_.add(release_lock_owner(std::move(name)));
}

Task<void> SessionClient::release_lock_owner(std::string name) {
  Request request;
  request.add(v4::OP_RELEASE_LOCKOWNER, &Op::oprelease_lockowner,
              {{clientid(), Rope::copy_of(bytes_of(name))}});
  // A courtesy: the server forgets it with the client.
  ProtocolOptions options = background_options();
  options.cancel = CancelToken(stop_);
  static_cast<void>(
      co_await alone({"release a lock owner", {}}, request, call_options_of(options)));
}

// RFC 7530 9.5, 16.29.
Task<void> SessionClient::renew_v40(const ProtocolOptions& options) {
  const OperationContext context{"renew the lease", {}};
  Request request;
  const std::size_t at = request.add(v4::OP_RENEW);
  const Outcome<Ok> recovered = co_await recover(context, options, &request);
  if (!recovered) co_return;
  const std::uint32_t incarnation = client_v40_.incarnation();
  request.operation(at).oprenew() = {clientid()};
  const TimePoint sent = channel().loop().now();
  const Outcome<Attempt> came = co_await alone(context, request, call_options_of(options));
  if (!came || came->fate != Fate::Go) co_return;
  // RFC 7530 10.2.1, 16.28.5: a server that does not reach this client cannot ask for anything
  // back; the lease is renewed nevertheless.
  const bool unreached = came->status == v4::NFS4ERR_CB_PATH_DOWN;
  if (unreached || came->status == v4::NFS4_OK) note_renewal_v40(sent);
  if (unreached) {
    reached_ = false;
    give_back_all();
  }
  if (client_v40_.on_status(came->status, incarnation) != Fate::Go)
    static_cast<void>(co_await recover(context, options, &request));
  if (!reached_ && listening_ != nullptr) co_await restore_callbacks_v40(options);
}

// RFC 7530 16.33.5: where nothing but the callback may have changed the server keeps all else, and
// tries anew to reach this client, whose address it may have given up. RENEW is no sign of that: it
// succeeds as soon as nothing is delegated.
Task<void> SessionClient::restore_callbacks_v40(const ProtocolOptions& options) {
  const OperationContext context{"have the server call back again", {}};
  if (recovering_ || !ready_v40()) co_return;
  const InProgress in_progress(recovering_, recovered_);
  Request request;
  request.add(v4::OP_SETCLIENTID, &Op::opsetclientid, client_v40_.set_clientid());
  const Outcome<Attempt> came = co_await alone(context, request, call_options_of(options));
  if (!came || came->fate != Fate::Go) co_return;
  const v4::SETCLIENTID4res& given = request.result(kAlone)->opsetclientid();
  // Another client ID: the server has forgotten this one, as the next operation finds out.
  if (given.status != v4::NFS4_OK || given.resok4().clientid != clientid()) co_return;
  Request confirm;
  confirm.add(v4::OP_SETCLIENTID_CONFIRM, &Op::opsetclientid_confirm,
              {clientid(), given.resok4().setclientid_confirm});
  const Outcome<Attempt> confirmed = co_await alone(context, confirm, call_options_of(options));
  reached_ = confirmed && confirmed->fate == Fate::Go && confirmed->status == v4::NFS4_OK;
}

}  // namespace stag::nfs::client::nfs4
