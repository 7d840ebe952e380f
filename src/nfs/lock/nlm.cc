#include "nfs/lock/nlm.h"

#include <array>
#include <cstdio>
#include <new>
#include <optional>
#include <string>

#include "base/reason.h"
#include "nfs/export/admission.h"
#include "nfs/lock/versions.h"

namespace stag::nfs::lock {

namespace {

using nlm::nlm4_stats;

using Key = Result<FileKey, nlm4_stats>;

using Opened = std::shared_ptr<LocalLockTable::Pin>;

// NLM has one status for "later", which clients ask again after, and one for all refusals that
// last.
nlm4_stats status_of(Refusal refusal) {
  return refusal == Refusal::Undecided ? nlm::NLM4_DENIED_GRACE_PERIOD : nlm::NLM4_STALE_FH;
}

nlm4_stats status_of(vfs::Status status) {
  switch (status) {
    case vfs::Status::Delay:
    case vfs::Status::TooManyObjects:
      return nlm::NLM4_DENIED_GRACE_PERIOD;
    case vfs::Status::Stale:
    case vfs::Status::BadHandle:
      return nlm::NLM4_STALE_FH;
    default:
      return nlm::NLM4_FAILED;
  }
}

// Waits for the name of the client, where the export is open to names: a reclaim that is put off is
// lost (Linux).
Eventual<Result<ExportObject, Refusal>> admitted(const Admission& admission, const Buffer& handle) {
  return admission.resolve_settled(handle.bytes(), Admission::Security::BesideNfs);
}

// Checks that the file exists and that the caller owns it or may read it: for any other user a lock
// would only serve to exclude others. `opened`: has the file open for programs of this host to be
// asked.
Task<Key> key_to_lock(const NlmContext& context, const rpc::CallContext& call,
                      const nlm::netobj& handle, Opened* opened = nullptr) {
  const Admission admission(context.server, call);
  const Buffer flat = handle.flatten();
  const auto object = co_await admitted(admission, flat);
  if (!object) co_return Failure{status_of(object.error())};
  const auto access =
      co_await object->store().access(object->caller(), object->handle, vfs::access::kRead);
  if (!access) co_return Failure{status_of(access.error())};
  const bool owner = access->attributes.uid == object->credentials.uid;
  const bool regular = access->attributes.type == vfs::FileType::Regular;
  if (!regular || (!owner && access->granted == 0)) co_return Failure{nlm::NLM4_FAILED};
  if (opened != nullptr) {
    auto pin = co_await context.server.local_locks->open(object->key(), object->store(),
                                                         object->caller(), call.origin().peer.host);
    if (!pin)
      co_return Failure{pin.error() == vfs::Status::Delay ? status_of(pin.error())
                                                          : nlm::NLM4_DENIED_NOLOCKS};
    if (*pin) *opened = std::make_shared<LocalLockTable::Pin>(*std::move(pin));
  }
  context.stores.note(object->key().via, object->key().store);
  co_return object->key();
}

// Unlocking needs neither permission nor the export nor the file: a client that has lost them must
// still be able to release its locks. The store is left open: in_each_store() has it.
Key key_to_unlock(const NlmContext& context, const nlm::netobj& handle) {
  const auto opened = context.server.handles.open(handle.flatten().bytes());
  if (!opened) return Failure{nlm::NLM4_STALE_FH};
  return FileKey{0, opened->object, opened->export_id};
}

// Calls act(file) for the file in each store that its export has had, but for that of `file`.
template <class Act>
void in_each_store(const NlmContext& context, FileKey file, Act act) {
  const std::uint64_t left_out = file.store;
  for (const std::uint64_t store : context.stores.of(file.via)) {
    file.store = store;
    if (store != left_out) act(file);
  }
}

// A host that locked the file before a copy of its file system took the place of that does not know
// of the copy, and keeps other hosts out.
LockManager::Tested tested_before(const NlmContext& context, LockRequest request, TimePoint now) {
  LockManager::Tested denied;
  in_each_store(context, request.file, [&](const FileKey& file) {
    request.file = file;
    auto tested = context.manager.test(request, now);
    if (tested.stat == nlm::NLM4_DENIED) denied = std::move(tested);
  });
  return denied;
}

OwnerPtr owner_of(const rpc::CallContext& call, std::string name, const nlm::netobj& handle,
                  std::int32_t svid) {
  return std::make_shared<Owner>(
      Owner{{call.origin().peer.host, std::move(name)}, string_of(handle), svid});
}

// The request of a lock, test or cancel. In the versions with 32 bits a length of all ones, too,
// reaches to the end of the file.
template <class Lock>
Result<LockRequest, nlm4_stats> request_of(const rpc::CallContext& call, const Key& key,
                                           const Lock& lock, bool exclusive) {
  if (!key) return Failure{key.error()};
  const bool to_the_end = lock.l_len == std::numeric_limits<decltype(lock.l_len)>::max();
  const auto range = range_of(lock.l_offset, to_the_end ? 0 : lock.l_len);
  if (!range) return Failure{nlm::NLM4_FBIG};
  return LockRequest{*key, owner_of(call, lock.caller_name, lock.oh, lock.svid), *range, exclusive};
}

// Records the client before it gets a lock.
Task<Records::Hold> recorded(NlmContext& context, rpc::CallContext& call) {
  const std::string& address = call.origin().peer.host;
  Records::Hold hold = context.records.hold(address);
  if (hold) co_return hold;
  const auto in_use = [&](const std::string& other) { return context.needs_record(other); };
  // Not in the call: braces and co_await do not go together in every compiler.
  const Result<Ok, StateError> not_done = Failure{StateError{"too much waits to be written"}};
  const auto kept = co_await offloaded_to(
      context.records.worker(), &call.origin(), call.loop(),
      [&] { return context.records.add(address, in_use); }, not_done);
  if (!kept) trace(Reason::LockClientUnrecorded, address, kept.error().message);
  co_return context.records.hold(address);
}

// A line about a request that is refused: `what` of the file of this host.
template <class What>
void note_refused(const NlmContext& context, const rpc::CallContext& call, Reason reason,
                  const FileKey& file, const Owner& owner, What what) noexcept {
  const Address& peer = call.origin().peer;
  try {
    const auto exports = context.server.exports.current();
    const Export* const found = exports->find(file.via);
    std::array<char, sizeof ", xid 0x12345678"> xid;
    std::snprintf(xid.data(), xid.size(), ", xid 0x%08x", static_cast<unsigned>(call.header().xid));
    trace(reason, to_string(peer),
          "host " + owner.client.name +
              (found == nullptr ? std::string() : ", export " + found->path()) + xid.data() +
              what());
  } catch (const std::bad_alloc&) {
    trace(reason, peer.host);
  }
}

// The holder now is a program of this machine that was faster (decision 0043), or a client of a
// gateway that adopted this host; the requesting client is told, but may not say so.
void note_refused_reclaim(const NlmContext& context, const rpc::CallContext& call,
                          const LockRequest& request, const char* why = "") noexcept {
  note_refused(context, call, Reason::ReclaimRefused, request.file, *request.owner, [&] {
    const bool to_the_end = request.range.last == state::Range::kEnd;
    return ": a lock of bytes " + std::to_string(request.range.first) + " to " +
           (to_the_end ? "the end" : std::to_string(request.range.last)) + why;
  });
}

constexpr const char* kHadNone =
    ", of a host that had none when the server ended, or missed a grace period";

// In a grace period those alone get anything who had it before. Asked before a host is recorded:
// one that may not reclaim could do so after the next restart.
std::optional<nlm4_stats> out_of_turn(NlmContext& context, const rpc::CallContext& call,
                                      bool claims) {
  if (context.manager.in_grace(call.loop().now()) != claims) return nlm::NLM4_DENIED_GRACE_PERIOD;
  if (claims && !context.records.reclaims(call.origin().peer.host)) return nlm::NLM4_DENIED;
  return std::nullopt;
}

// As it is: the manager has refused it for want of room.
nlm4_stats noted(const NlmContext& context, const rpc::CallContext& call, const FileKey& file,
                 const Owner& owner, nlm4_stats status) noexcept {
  if (status == nlm::NLM4_DENIED_NOLOCKS)
    note_refused(context, call, Reason::LocksTooMany, file, owner, [] { return ""; });
  return status;
}

// What a host reclaims, while the server works on it: the grace period, which is that of NFSv4,
// too, does not end in the middle, nor at once where the host is asked to come again.
class HostReclaim {
 public:
  HostReclaim(NlmContext& context, const rpc::CallContext& call, bool claims)
      : manager_(context.manager), loop_(call.loop()) {
    if (claims && manager_.in_grace() && context.records.may_reclaim(call.origin().peer.host))
      claim_.emplace(manager_.grace(), loop_.now());
  }
  // With this status, which it returns.
  nlm4_stats ended(nlm4_stats status) const {
    if (claim_ && status == nlm::NLM4_DENIED_GRACE_PERIOD) manager_.grace().held_up(loop_.now());
    return status;
  }

 private:
  LockManager& manager_;
  Loop& loop_;
  std::optional<state::GracePeriod::Claim> claim_;
};

enum class LockMode : std::uint8_t { Usual, ByMessage, Unmonitored };

template <class Args>
nlm4_stats locked(NlmContext& context, rpc::CallContext& call, const Args& args,
                  const LockRequest& request, LockMode mode, Opened opened,
                  const LockUnderWay* under_way) {
  LockParams params;
  params.open = std::move(opened);
  params.version = call.header().version;
  params.by_message = mode == LockMode::ByMessage;
  params.file_handle = string_of(args.alock.fh);
  params.offset = args.alock.l_offset;
  params.length = args.alock.l_len;
  params.called_at = call.origin().local.host;
  const LockArgs lock{request, args.block, args.reclaim, args.state, std::move(params), under_way};
  const TimePoint now = call.loop().now();
  // What is freed in one store grants nothing in another: a client that would wait asks again.
  if (tested_before(context, request, now).holder)
    return args.block ? nlm::NLM4_DENIED_GRACE_PERIOD : nlm::NLM4_DENIED;
  const nlm4_stats status =
      noted(context, call, request.file, *request.owner, context.manager.lock(lock, now));
  if (args.reclaim && status == nlm::NLM4_DENIED) note_refused_reclaim(context, call, request);
  return status;
}

template <class Args>
Task<nlm4_stats> lock_status(NlmContext& context, rpc::CallContext& call, const Args& args,
                             LockMode mode) {
  const Key named = key_to_unlock(context, args.alock.fh);
  const auto begun = request_of(call, named, args.alock, args.exclusive);
  if (!begun) co_return begun.error();
  const LockManager::Begun under_way(
      context.manager, {string_of(args.alock.fh), begun->owner, begun->range, args.state});
  const HostReclaim reclaim(context, call, args.reclaim);
  Opened opened;
  const Key key = co_await key_to_lock(context, call, args.alock.fh, &opened);
  if (!key) co_return reclaim.ended(key.error());
  const LockRequest request{*key, begun->owner, begun->range, begun->exclusive};
  if (const auto status = out_of_turn(context, call, args.reclaim)) {
    if (status == nlm::NLM4_DENIED) note_refused_reclaim(context, call, request, kHadNone);
    co_return *status;
  }
  if (mode != LockMode::Unmonitored) {
    const Records::Hold hold = co_await recorded(context, call);
    if (!hold) co_return nlm::NLM4_DENIED_NOLOCKS;
    co_return locked(context, call, args, request, mode, std::move(opened), under_way.get());
  }
  co_return locked(context, call, args, request, mode, std::move(opened), under_way.get());
}

template <class V>
Task<typename V::TestRes> test(NlmContext& context, rpc::CallContext& call,
                               typename V::TestArgs args) {
  typename V::TestRes res;
  res.cookie = own(args.cookie);
  Opened opened;
  const Key key = co_await key_to_lock(context, call, args.alock.fh, &opened);
  const auto request = request_of(call, key, args.alock, args.exclusive);
  if (!request) {
    set_status(res.test_stat.stat, request.error());
    co_return res;
  }
  const TimePoint now = call.loop().now();
  LockManager::Tested tested = tested_before(context, *request, now);
  if (!tested.holder) tested = context.manager.test(*request, now);
  set_status(res.test_stat.stat, tested.stat);
  if (tested.holder) describe(*tested.holder, res.test_stat.holder());
  co_return res;
}

template <class V, LockMode mode>
Task<typename V::Res> lock(NlmContext& context, rpc::CallContext& call, typename V::LockArgs args) {
  typename V::Res res;
  res.cookie = own(args.cookie);
  // XNFS 10.3 NLM_NM_LOCK: for clients without a status monitor, which send FREE_ALL themselves and
  // never block.
  if (mode == LockMode::Unmonitored) args.block = false;
  const nlm4_stats status = co_await lock_status(context, call, args, mode);
  set_status(res.stat.stat, status);
  co_return res;
}

template <class V>
Task<typename V::Res> cancel(NlmContext& context, rpc::CallContext& call,
                             typename V::CancelArgs args) {
  typename V::Res res;
  res.cookie = own(args.cookie);
  const Key key = key_to_unlock(context, args.alock.fh);
  auto request = request_of(call, key, args.alock, args.exclusive);
  nlm4_stats status = request ? nlm::NLM4_DENIED : request.error();
  if (request) {
    context.manager.withdraw(string_of(args.alock.fh), *request->owner, request->range);
    in_each_store(context, *key, [&](const FileKey& file) {
      request->file = file;
      if (context.manager.cancel(*request) == nlm::NLM4_GRANTED) status = nlm::NLM4_GRANTED;
    });
  }
  set_status(res.stat.stat, status);
  co_return res;
}

template <class V>
Task<typename V::Res> unlock(NlmContext& context, rpc::CallContext& call,
                             typename V::UnlockArgs args) {
  typename V::Res res;
  res.cookie = own(args.cookie);
  const Key key = key_to_unlock(context, args.alock.fh);
  const auto request = request_of(call, key, args.alock, true);
  nlm4_stats status = request ? nlm::NLM4_GRANTED : request.error();
  if (request) {
    context.manager.withdraw(string_of(args.alock.fh), *request->owner, request->range);
    in_each_store(context, *key, [&](const FileKey& file) {
      const auto done = noted(context, call, file, *request->owner,
                              context.manager.unlock(file, *request->owner, request->range));
      if (done != nlm::NLM4_GRANTED) status = done;
    });
  }
  set_status(res.stat.stat, status);
  co_return res;
}

// This server never waits for a lock of another host.
template <class V>
Task<typename V::Res> granted(NlmContext&, rpc::CallContext&, typename V::TestArgs args) {
  typename V::Res res;
  res.cookie = own(args.cookie);
  set_status(res.stat.stat, nlm::NLM4_DENIED);
  co_return res;
}

// The answer to NLM_GRANTED_MSG; its cookie is accepted only from the host that the message was
// sent to.
template <class V>
Task<xdr::Void> grant_answered(NlmContext& context, rpc::CallContext& call, typename V::Res res) {
  const Buffer cookie = res.cookie.flatten();
  if (cookie.size() != 8) co_return xdr::Void{};
  const auto ticket = load_be<Ticket>(cookie.data());
  const auto pending = context.manager.pending(ticket);
  const auto status = static_cast<nlm4_stats>(res.stat.stat);
  if (!pending || pending->grant.request.owner->client.address != call.origin().peer.host)
    co_return xdr::Void{};
  if (status == nlm::NLM4_DENIED_GRACE_PERIOD)
    context.manager.not_yet(ticket);
  else
    context.manager.answered(ticket, status == nlm::NLM4_GRANTED);
  co_return xdr::Void{};
}

Task<nlm4_stats> share_status(NlmContext& context, rpc::CallContext& call,
                              const nlm::nlm_shareargs& args) {
  const OwnerPtr owner = owner_of(call, args.share.caller_name, args.share.oh, 0);
  const LockManager::Begun under_way(context.manager,
                                     {string_of(args.share.fh), owner, std::nullopt});
  const HostReclaim reclaim(context, call, args.reclaim);
  const Key key = co_await key_to_lock(context, call, args.share.fh);
  if (!key) co_return reclaim.ended(key.error());
  const Share wanted{owner, static_cast<std::uint32_t>(args.share.mode),
                     static_cast<std::uint32_t>(args.share.access)};
  if (const auto status = out_of_turn(context, call, args.reclaim)) {
    if (status == nlm::NLM4_DENIED)
      note_refused(context, call, Reason::ReclaimRefused, *key, *owner,
                   [] { return std::string(": a share") + kHadNone; });
    co_return *status;
  }
  co_return noted(
      context, call, *key, *owner,
      context.manager.share(*key, wanted, args.reclaim, call.loop().now(), under_way.get()));
}

template <class V>
Task<typename V::ShareRes> share(NlmContext& context, rpc::CallContext& call,
                                 nlm::nlm_shareargs args) {
  typename V::ShareRes res;
  res.cookie = own(args.cookie);
  const nlm4_stats status = co_await share_status(context, call, args);
  set_status(res.stat, status);
  co_return res;
}

template <class V>
Task<typename V::ShareRes> unshare(NlmContext& context, rpc::CallContext& call,
                                   nlm::nlm_shareargs args) {
  typename V::ShareRes res;
  res.cookie = own(args.cookie);
  const Key key = key_to_unlock(context, args.share.fh);
  const OwnerPtr owner = owner_of(call, args.share.caller_name, args.share.oh, 0);
  context.manager.withdraw(string_of(args.share.fh), *owner, std::nullopt);
  if (key)
    in_each_store(context, *key,
                  [&](const FileKey& file) { context.manager.unshare(file, *owner); });
  set_status(res.stat, key ? nlm::NLM4_GRANTED : key.error());
  co_return res;
}

Task<xdr::Void> free_all(NlmContext& context, rpc::CallContext& call, nlm::nlm_notify args) {
  context.manager.release({call.origin().peer.host, std::move(args.name)});
  co_return xdr::Void{};
}

template <class P, auto procedure>
void add(rpc::Program& program, NlmContext& context) {
  program.add<P>([&context](rpc::CallContext& call, typename P::Args args) {
    return procedure(context, call, std::move(args));
  });
}

// A request as a message: its results are sent as a Call of this host.
template <class Answer, auto procedure, class Args>
Task<xdr::Void> by_message(NlmContext& context, rpc::CallContext& call, Args args) {
  auto results = co_await procedure(context, call, std::move(args));
  context.callbacks.answer<Answer>({call.origin().peer.host, call.origin().local.host},
                                   std::move(results));
  co_return xdr::Void{};
}

Task<xdr::Void> nothing_was_asked(NlmContext&, rpc::CallContext&) {
  co_return xdr::Void{};
}

template <class P>
void add_ignored(rpc::Program& program, NlmContext& context) {
  program.add<P>([&context](rpc::CallContext& call, typename P::Args) {
    return nothing_was_asked(context, call);
  });
}

template <class V>
rpc::Program common(NlmContext& context) {
  rpc::Program program(V::Test::program, V::Test::version);
  // RFC 8267 5.1: NLM is not on RDMA.
  program.absent_from(rpc::TransportKind::Rdma);
  add<typename V::Test, test<V>>(program, context);
  add<typename V::Lock, lock<V, LockMode::Usual>>(program, context);
  add<typename V::Cancel, cancel<V>>(program, context);
  add<typename V::Unlock, unlock<V>>(program, context);
  add<typename V::Granted, granted<V>>(program, context);
  using TestArgs = typename V::TestArgs;
  using LockArgs = typename V::LockArgs;
  using CancelArgs = typename V::CancelArgs;
  using UnlockArgs = typename V::UnlockArgs;
  add<typename V::TestMsg, by_message<typename V::TestAnswer, test<V>, TestArgs>>(program, context);
  add<typename V::LockMsg,
      by_message<typename V::LockAnswer, lock<V, LockMode::ByMessage>, LockArgs>>(program, context);
  add<typename V::CancelMsg, by_message<typename V::CancelAnswer, cancel<V>, CancelArgs>>(program,
                                                                                          context);
  add<typename V::UnlockMsg, by_message<typename V::UnlockAnswer, unlock<V>, UnlockArgs>>(program,
                                                                                          context);
  add<typename V::GrantedMsg, by_message<typename V::GrantedAnswer, granted<V>, TestArgs>>(program,
                                                                                           context);
  add<typename V::GrantedAnswer, grant_answered<V>>(program, context);
  add_ignored<typename V::TestAnswer>(program, context);
  add_ignored<typename V::LockAnswer>(program, context);
  add_ignored<typename V::CancelAnswer>(program, context);
  add_ignored<typename V::UnlockAnswer>(program, context);
  return program;
}

template <class V>
rpc::Program with_shares(NlmContext& context) {
  rpc::Program program = common<V>(context);
  add<typename V::Share, share<V>>(program, context);
  add<typename V::Unshare, unshare<V>>(program, context);
  add<typename V::UnmonitoredLock, lock<V, LockMode::Unmonitored>>(program, context);
  add<typename V::FreeAll, free_all>(program, context);
  return program;
}

}  // namespace

rpc::Program nlm1(NlmContext& context) {
  return common<Nlm1>(context);
}
rpc::Program nlm3(NlmContext& context) {
  return with_shares<Nlm3>(context);
}
rpc::Program nlm4(NlmContext& context) {
  return with_shares<Nlm4>(context);
}

}  // namespace stag::nfs::lock
