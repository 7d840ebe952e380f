// What SessionClient does for delegations: asks for them, gives them back, and
// keeps the way open by which the server asks for them.
#include <algorithm>
#include <new>

#include "base/pause.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"

namespace stag::nfs::client::nfs4 {
namespace {

constexpr OperationContext kGivingBack{"give a delegation back", {}};

}  // namespace

ProtocolOptions SessionClient::background_options() {
  ProtocolOptions options = own_;
  if (!stop_.cancelled()) options.timeout = session_.lease() / 3;
  return options;
}

bool SessionClient::wants_delegations() const {
  const bool asked_back = callbacks_ != nullptr || listening_ != nullptr;
  return asked_back && reached_ && !stop_.cancelled();
}

bool SessionClient::is_own(const rpc::Credentials& credentials) const {
  return credentials.security() == own_.credentials.security() &&
         std::ranges::equal(credentials.encoded(), own_.credentials.encoded());
}

bool SessionClient::lapsed() const {
  const TimePoint now = channel().loop().now();
  return minor_ > 0 ? session_.lapsed(now) : now - renewed_v40_ >= session_.lease();
}

// What was held while the lease ran out may have been revoked, and others may have written.
void SessionClient::note_renewal_v40(TimePoint sent) {
  if (lapsed()) give_back_all();
  renewed_v40_ = std::max(renewed_v40_, sent);
}

void SessionClient::take_delegation(const File& file, const Attributes& attributes,
                                    std::uint64_t as_of, std::uint64_t change,
                                    const v4::open_delegation4& given) {
  const bool reading = given.delegation_type == v4::OPEN_DELEGATE_READ;
  if (!reading && given.delegation_type != v4::OPEN_DELEGATE_WRITE) return;
  const v4::stateid4& stateid = reading ? given.read().stateid : given.write().stateid;
  const bool recalled = reading ? given.read().recall : given.write().recall;
  std::optional<Delegations::Written> written;
  if (!reading) written = {.change = change, .size = attributes.size};
  // Version 4.0 cannot say which kind is wanted; by it files are delegated for reading only.
  const bool wanted = !recalled && wants_delegations() && (reading || minor_ > 0);
  if (!wanted || !delegations_.add(file, stateid, opens_.access(file.open), written)) {
    // The same one again, of a file that was opened twice at once, is held already.
    if (!wanted || !delegations_.knows(stateid)) begin_return({file, stateid, !reading});
    return;
  }
  delegations_.remember(file.handle, attributes, as_of);
  if (delegations_.held() <= Delegations::kMost) return;
  if (const auto oldest = delegations_.take_oldest()) begin_return(*oldest);
}

void SessionClient::decline_delegation(const Handle& file, const v4::open_delegation4& given) {
  if (given.delegation_type == v4::OPEN_DELEGATE_READ)
    begin_return({{file, 0}, given.read().stateid});
  else if (given.delegation_type == v4::OPEN_DELEGATE_WRITE)
    begin_return({{file, 0}, given.write().stateid});
}

v4::nfsstat4 SessionClient::recall(const v4::stateid4& stateid) {
  if (const auto delegation = delegations_.take(stateid)) {
    begin_return(*delegation);
    return v4::NFS4_OK;
  }
  return delegations_.returning(stateid) ? v4::NFS4_OK : v4::NFS4ERR_BAD_STATEID;
}

std::optional<Delegations::Now> SessionClient::written(const v4::nfs_fh4& file) {
  const std::optional<Handle> handle = Handle::from(file.bytes());
  return handle ? delegations_.now(*handle) : std::nullopt;
}

void SessionClient::give_back_of(const Handle& file) {
  if (const auto delegation = delegations_.take(file)) begin_return(*delegation);
}

void SessionClient::recall_any(std::uint32_t keep) {
  while (delegations_.held() > keep) {
    const auto oldest = delegations_.take_oldest();
    if (!oldest) return;
    begin_return(*oldest);
  }
}

bool SessionClient::hears_of_copies() const {
  return callbacks_ != nullptr && session_.back_slots() > 0 && reached_;
}

void SessionClient::recall_slots(v4::slotid4 highest) {
  session_.on_recall_slot(highest);
  wake_waiting();
}

// RFC 8881 10.4.4: nothing is written again after others have written. After a lease the server may
// have revoked the delegation, which protects nothing then.
Task<bool> SessionClient::flushed(const Delegations::Return& delegation, TimePoint recalled) {
  if (!delegation.for_writing || !flush_) co_return true;
  const bool safe = co_await flush_(delegation.file.handle);
  co_return safe || stop_.cancelled() || channel().loop().now() - recalled >= session_.lease();
}

// RFC 8881 10.4.4: first, so that whoever has waited for the delegation does not meet the open.
// False: nothing was heard of the server.
Task<bool> SessionClient::closed_if_idle(const File& file) {
  if (!delegations_.is_idle(file.open) || opens_.file(file.open) == nullptr) co_return true;
  const ProtocolOptions options = background_options();
  const Outcome<Ok> closed = co_await close_open(kGivingBack, file, options, Unheard::Kept);
  co_return closed || closed.error().kind != Error::Kind::Call;
}

// A server that does not know the delegation has revoked it, and waits until it is freed
// (RFC 8881 18.38). False: nothing was heard of the server, or there was no memory.
Task<bool> SessionClient::returned(const Delegations::Return& delegation, TimePoint recalled) {
  try {
    const bool ready = co_await flushed(delegation, recalled);
    if (!ready) co_return false;
    const bool closed = co_await closed_if_idle(delegation.file);
    if (!closed) co_return false;
    const ProtocolOptions options = background_options();
    Request request;
    request.put_handle(delegation.file.handle);
    request.add(v4::OP_DELEGRETURN, &Op::opdelegreturn, {delegation.stateid});
    const Outcome<Reply> done = co_await run(kGivingBack, request.once_only(false), options);
    if (minor_ > 0 && !done && done.error().kind == Error::Kind::Nfs) {
      Request free;
      free.add(v4::OP_FREE_STATEID, &Op::opfree_stateid, {delegation.stateid});
      static_cast<void>(co_await run(kGivingBack, free.once_only(false), options));
    }
    co_return done || done.error().kind != Error::Kind::Call;
  } catch (const std::bad_alloc&) {
    co_return false;
  }
}

bool SessionClient::begin_return(const Delegations::Return& delegation) noexcept {
  try {
    background_.add(give_back(delegation));
    return true;
  } catch (const std::bad_alloc&) {
    delegations_.on_not_returned(delegation.file.open);
    return false;
  }
}

// A program that has the file open keeps the open. Until the server has the delegation back, the
// client goes on to return it; at the end of the client a silent server is left to close_all(),
// which asks once for them all.
Task<void> SessionClient::give_back(Delegations::Return delegation) {
  const TimePoint recalled = channel().loop().now();
  try {
    bool done = co_await returned(delegation, recalled);
    while (!done && !stop_.cancelled()) {
      co_await pause(channel().loop(), session_.lease() / 9, CancelToken(stop_));
      done = co_await returned(delegation, recalled);
    }
    // The program that had it open may have closed it meanwhile.
    const bool unused = delegations_.on_returned(delegation.file.open);
    if (unused && done && opens_.file(delegation.file.open) != nullptr)
      static_cast<void>(co_await close_open(kGivingBack, delegation.file, background_options()));
  } catch (const std::bad_alloc&) {
    delegations_.on_not_returned(delegation.file.open);
  }
}

void SessionClient::give_back_all() {
  while (const auto delegation = delegations_.take_oldest()) begin_return(*delegation);
}

void SessionClient::give_back_due() {
  // Each once: it may be due again at once.
  for (std::size_t left = delegations_.due(); left > 0; --left) {
    const auto delegation = delegations_.take_due();
    if (!delegation || !begin_return(*delegation)) return;
  }
}

// RFC 8881 10.2.1, 18.46.3: a server that does not reach this client cannot ask
// for anything back, so that what it delegated is not to be trusted.
void SessionClient::note_flags() {
  constexpr std::uint32_t kUnreached = v4::SEQ4_STATUS_CB_PATH_DOWN |
                                       v4::SEQ4_STATUS_CB_PATH_DOWN_SESSION |
                                       v4::SEQ4_STATUS_BACKCHANNEL_FAULT;
  constexpr std::uint32_t kRevoked =
      v4::SEQ4_STATUS_RECALLABLE_STATE_REVOKED | v4::SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED |
      v4::SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED | v4::SEQ4_STATUS_ADMIN_STATE_REVOKED;
  const std::uint32_t flags = session_.status_flags();
  const bool goes_on = !stop_.cancelled() && session_.step() == session::Step::Ready;
  if ((flags & kRevoked) != 0 && goes_on) begin_once(finding_, &SessionClient::find_revoked);
  if (callbacks_ == nullptr || session_.back_slots() == 0) return;
  reached_ = (flags & kUnreached) == 0;
  if (reached_) return;
  give_back_all();
  if (goes_on)
    begin_once(restoring_, back_ == nullptr ? &SessionClient::restore_back_channel
                                            : &SessionClient::bind_back_connection);
}

// Without memory for it, the next SEQUENCE that says the same begins it.
void SessionClient::begin_once(bool& underway, Task<void> (SessionClient::*work)()) noexcept {
  if (underway) return;
  try {
    background_.add((this->*work)());
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace stag::nfs::client::nfs4
