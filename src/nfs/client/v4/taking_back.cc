// Takes back what nobody waits for any more: an OPEN or a LOCK that was cancelled, or whose time
// was over, and that the server executes all the same.
//
// A lone SEQUENCE says whether it was executed (RFC 8267 section 6.6). Its results are seldom to be
// had: servers that tell a retry from another request keep them to themselves (RFC 8881 section
// 2.10.6.1.3.1), and the same request again could be executed for the first time. So what was
// executed is asked for once more by the same owner, which yields the stateid that there is, and
// given back by that. An owner of opens is used for one open, and nobody else has that; of locks
// only what is not in the books is given back.
#include <new>
#include <utility>

#include "base/pause.h"
#include "nfs/client/v4/claims.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"

namespace stag::nfs::client::nfs4 {
namespace {

constexpr OperationContext kTakingBack{"take back what was given up", {}};

bool is_unheard(const Error& error) {
  return error.kind == Error::Kind::Call;
}

// Whether a later call may be answered, of a server or a KDC that cannot be reached now.
bool may_be_heard_later(const Error& error) {
  return is_unheard(error) && error.call.reason != Reason::Shutdown &&
         error.call.reason != Reason::OutOfMemory;
}

v4::nfs_lock_type4 type_of(state::RangeMode mode) {
  return mode == state::RangeMode::Exclusive ? v4::WRITE_LT : v4::READ_LT;
}

// LOCK, or LOCKU where the mode is None.
Request lock_request_of(const v4::nfs_fh4& file, const Request::ByOpen& by) {
  Request request;
  request.put_handle(file);
  const std::uint64_t first = by.lock.range.first, length = length_of(by.lock.range);
  std::size_t at = 0;
  if (by.lock.mode == state::RangeMode::None) {
    at = request.add(v4::OP_LOCKU, &Op::oplocku, {v4::READ_LT, 0, v4::stateid4{}, first, length});
  } else {
    v4::LOCK4args args;
    args.locktype = type_of(by.lock.mode);
    args.offset = first;
    args.length = length;
    at = request.add(v4::OP_LOCK, &Op::oplock, std::move(args));
  }
  request.set_by({at, by.open, by.owner, by.lock});
  request.once_only();
  return request;
}

}  // namespace

// What a call asks for that got no answer; nullopt: nothing that could be given back.
std::optional<SessionClient::GivenUp> SessionClient::given_up(Request& request,
                                                              const Error& error) const {
  GivenUp given;
  given.incarnation = request.granted_by().value_or(session_.incarnation());
  const bool later =
      error.is(Status::Delay) || (may_be_heard_later(error) && !is_of_holder(error.call));
  given.granted = request.granted_by() && later;
  request.for_each_handle([&given](const Handle& handle) { given.at = handle; });
  const bool locks = request.by_open() && request.number(request.by_open()->place) == v4::OP_LOCK;
  if (locks) {
    given.lock = request.by_open();
    given.opener = opens_.opener(given.lock->open);
    return given;
  }
  if (request.opener() == nullptr) return std::nullopt;
  given.open = request.operation(*request.open_place()).opopen();
  given.id = *request.open_owner();
  given.opener = *request.opener();
  return given;
}

// False: the turn is as it was. Without memory it has ended, in doubt.
bool SessionClient::begin_taking_back(HeldTurn& held, Request& request,
                                      const Error& error) noexcept {
  bool begun = false;
  if (stop_.cancelled()) return false;
  try {
    std::optional<GivenUp> given = given_up(request, error);
    if (!given) return false;
    begun = true;
    background_.add(take_back(std::move(held), *std::move(given)));
    request.pass_on();
  } catch (const std::bad_alloc&) {
  }
  return begun;
}

Task<void> SessionClient::take_back(HeldTurn held, GivenUp given) {
  try {
    if (given.open) co_return co_await take_back_open(std::move(held), given);
    const LockTurns::Mark doubt = lock_turns_.doubt(given.lock->owner);
    co_await take_back_lock(std::move(held), given);
  } catch (const std::bad_alloc&) {
  }
}

ProtocolOptions SessionClient::taking_back_options(const session::Opener* opener) {
  ProtocolOptions options = background_options();
  if (opener != nullptr) options.credentials = opener->credentials;
  if (!stop_.cancelled()) options.cancel = CancelToken(stop_);
  return options;
}

// By this incarnation of the server. One that is silent, or cannot be reached, is asked again and
// again, while the client has a ticket, and by its own credentials: slots are the session's, and a
// request of another user is answered as one that differs (RFC 8881 section 2.10.6.1.3.1).
Task<bool> SessionClient::is_granted(HeldTurn held, const GivenUp& given) {
  held.turn().doubtful = true;
  for (bool waits = given.granted;; waits = true) {
    if (waits) co_await pause(channel().loop(), session_.lease() / 9, CancelToken(stop_));
    const ProtocolOptions options = taking_back_options(nullptr);
    const Outcome<Settled> came = co_await settled(kTakingBack, held, options);
    const bool silent =
        !came && may_be_heard_later(came.error()) && !is_of_holder(came.error().call);
    const bool late = came && came->fate == Fate::Later;
    if (stop_.cancelled() || (!silent && !late)) {
      const bool certain = came && came->fate == Fate::Go;
      // A session that is gone says nothing of this call; what the call before has stays.
      const bool lost = came && came->fate == Fate::Again;
      const bool granted = given.granted ? certain || lost : certain && came->executed;
      end_settled(std::move(held), certain);
      co_return given.incarnation == session_.incarnation() && granted;
    }
  }
}

// Until it is answered, or passed on. The client cannot know whether a holder that has no ticket
// any more ever will, and the holder's other locks wait for this: then it is left to the end of the
// client.
Task<Outcome<Reply>> SessionClient::ask_again(Request& request, const GivenUp& given) {
  request.ask_again(given.incarnation);
  for (;;) {
    const ProtocolOptions options = taking_back_options(given.opener.get());
    Outcome<Reply> reply = co_await run(kTakingBack, request, options);
    const bool later = !reply && may_be_heard_later(reply.error()) &&
                       !is_of_holder(reply.error().call) && !request.passed_on();
    if (!later || stop_.cancelled() || given.incarnation != session_.incarnation()) co_return reply;
    co_await pause(channel().loop(), session_.lease() / 9, CancelToken(stop_));
    if (given.incarnation != session_.incarnation()) co_return reply;
  }
}

// A file that the OPEN has made may have another name by now, and is not found then.
Task<void> SessionClient::take_back_open(HeldTurn held, const GivenUp& given) {
  const bool granted = co_await is_granted(std::move(held), given);
  if (!granted) co_return;
  v4::OPEN4args args = *given.open;
  const std::uint32_t share = args.share_access & v4::OPEN4_SHARE_ACCESS_BOTH;
  args.share_access = share | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
  args.openhow = {};
  Request request;
  request.put_handle(given.at);
  const std::size_t at = request.add_open(std::move(args), given.id);
  const std::size_t named = request.add(v4::OP_GETFH);
  request.hold_open(given.opener);
  Outcome<Reply> reply = co_await ask_again(request.once_only(false), given);
  if (!reply) co_return;
  auto* const opened = reply->get(at, &OpResult::opopen);
  auto* const got = reply->get(named, &OpResult::opgetfh);
  const auto handle = got == nullptr ? std::nullopt : Handle::from(got->resok4().object.bytes());
  if (opened == nullptr || !handle) co_return;
  hold(given.id, *handle, share, opened->resok4().stateid, given.opener);
  decline_delegation(*handle, opened->resok4().delegation);
  for (;;) {
    const ProtocolOptions now = taking_back_options(given.opener.get());
    const Outcome<Ok> closed =
        co_await close_open(kTakingBack, {*handle, given.id}, now, Unheard::Kept);
    // A client that ends closes what it has in its books.
    if (closed || !is_unheard(closed.error()) || stop_.cancelled()) co_return;
    co_await pause(channel().loop(), session_.lease() / 9, CancelToken(stop_));
  }
}

Task<void> SessionClient::take_back_lock(HeldTurn held, const GivenUp& given) {
  const bool granted = co_await is_granted(std::move(held), given);
  if (!granted) co_return;
  const Request::ByOpen& by = *given.lock;
  while (lock_turns_.busy(by.owner) && !stop_.cancelled())
    co_await lock_turns_.changed().wait(CancelToken(stop_));
  const LockTurns::Mark alone = lock_turns_.restore(by.owner);
  if (opens_.file(by.open) == nullptr || stop_.cancelled()) co_return;
  const std::vector<session::Opens::Modes::Piece> before =
      opens_.all_within(by.open, by.owner, by.lock.range);
  if (!opens_.lock_stateid(by.open, by.owner)) {
    Request request = lock_request_of(*opens_.file(by.open), by);
    const Outcome<Reply> locked = co_await ask_again(request, given);
    if (!locked) co_return;
  }
  for (const session::Opens::Modes::Piece& piece : before)
    if (piece.mode != by.lock.mode) co_await restore_lock(given, {piece.range, piece.mode});
}

// What the owner had there before, or has got since. Where others have locked it meanwhile the lock
// is lost, and the owner is told.
Task<void> SessionClient::restore_lock(const GivenUp& given, session::Opens::Lock lock) {
  const session::Opens::Id open = given.lock->open;
  const session::Opens::LockOwner& owner = given.lock->owner;
  while (const v4::nfs_fh4* const file = opens_.file(open)) {
    const ProtocolOptions options = taking_back_options(given.opener.get());
    Request request = lock_request_of(*file, {0, open, owner, lock});
    const Outcome<Reply> done = co_await run(kTakingBack, request, options);
    if (done || !is_unheard(done.error())) {
      if (!done && lock.mode == state::RangeMode::None) on_unlock(open, owner, lock.range);
      if (!done && done.error().is(Status::Locked))
        opens_.on_refused({session::Opens::Claim::Kind::ReclaimLock, open, owner, lock, {}});
      co_return;
    }
    if (stop_.cancelled()) co_return;
    co_await pause(channel().loop(), session_.lease() / 9, CancelToken(stop_));
  }
}

Task<Outcome<Ok>> SessionClient::locks_settled(OperationContext context,
                                               session::Opens::LockOwner owner,
                                               const ProtocolOptions& options) {
  begin_to_wait(context);
  while (lock_turns_.doubts(owner)) {
    const Outcome<Ok> woken = co_await wait_in(lock_turns_.changed(), context, options);
    if (!woken) co_return woken;
  }
  co_return Ok{};
}

}  // namespace stag::nfs::client::nfs4
