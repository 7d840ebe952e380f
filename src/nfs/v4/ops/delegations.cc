// Delegations: what OPEN gives, DELEGRETURN (RFC 8881 10.4, 18.6, 18.16).
#include "nfs/v4/ops/delegations.h"

#include "base/completion.h"
#include "nfs/v4/callback/callbacks.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

namespace {

// How long an OPEN waits for the client's answer to the first callback.
constexpr Duration kProbePatience = std::chrono::milliseconds(100);
// How old what is known of a connection to a client of version 4.0 may be.
constexpr Duration kAskAgain = std::chrono::minutes(1);

std::uint32_t wants_of(const v4::OPEN4args& args) {
  return args.share_access & v4::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK;
}

// 18.16.3: who asked for something is told why he does not get it.
v4::open_delegation4 none(const v4::OPEN4args& args, v4::why_no_delegation4 why) {
  v4::open_delegation4 delegation;
  delegation.delegation_type = v4::OPEN_DELEGATE_NONE;
  if (wants_of(args) == 0) return delegation;
  delegation.delegation_type = v4::OPEN_DELEGATE_NONE_EXT;
  delegation.od_whynone().ond_why = why;
  // It is neither pushed nor signalled later.
  if (why == v4::WND4_CONTENTION) delegation.od_whynone().ond_server_will_push_deleg() = false;
  if (why == v4::WND4_RESOURCE) delegation.od_whynone().ond_server_will_signal_avail() = false;
  return delegation;
}

// What is said without a look at the file; nullopt: it may get one.
std::optional<v4::why_no_delegation4> why_not(const v4::OPEN4args& args) {
  if (args.claim.claim != v4::CLAIM_NULL && args.claim.claim != v4::CLAIM_FH)
    return v4::WND4_NOT_WANTED;
  if (wants_of(args) == v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG) return v4::WND4_NOT_WANTED;
  if (wants_of(args) == v4::OPEN4_SHARE_ACCESS_WANT_CANCEL) return v4::WND4_CANCELLED;
  return std::nullopt;
}

state::DelegationType type_for(const v4::OPEN4args& args) {
  const bool writes = (args.share_access & state::kShareWrite) != 0;
  return writes && wants_of(args) != v4::OPEN4_SHARE_ACCESS_WANT_READ_DELEG
             ? state::DelegationType::Write
             : state::DelegationType::Read;
}

// Which of the two comes second finds nobody waiting.
Task<void> probe(Compound& compound, Callbacks& callbacks, std::shared_ptr<BackChannel> back) {
  Loop& loop = compound.admission().call().loop();
  const auto ended = std::make_shared<Completion<bool>>();
  const auto complete = [ended] {
    if (!ended->completed()) ended->complete(true);
  };
  callbacks.probe(std::move(back), [&loop, complete] { loop.post(complete); });
  const Timer limit = loop.after(kProbePatience, complete);
  co_await *ended;
}

// Null where the client cannot be called.
std::shared_ptr<BackChannel> path_to_client(const Compound& compound) {
  const state::Clients& clients = compound.shared().clients;
  if (compound.slot() == nullptr) {
    const auto paths = clients.callback_paths(compound.life()->clientid);
    return paths.empty() ? nullptr : std::static_pointer_cast<BackChannel>(paths.front().second);
  }
  const state::SessionId& sessionid = compound.slot()->slot.sessionid;
  auto back = std::static_pointer_cast<BackChannel>(clients.callback_path(sessionid));
  return clients.back_channels(sessionid).empty() ? nullptr : back;
}

// RFC 8167 3.1, 3.2: nothing is delegated that cannot be recalled.
Task<bool> can_call_back(Compound& compound) {
  using Verdict = BackChannel::Verdict;
  Callbacks* const callbacks = compound.shared().callbacks.load(std::memory_order_acquire);
  const std::shared_ptr<BackChannel> back = path_to_client(compound);
  if (callbacks == nullptr || back == nullptr) co_return false;
  // Nobody tells when a client of version 4.0 can be reached again.
  if (back->address() != nullptr && back->verdict() == Verdict::Fails)
    back->ask_again_after(kAskAgain, compound.now());
  const Verdict known = back->verdict();
  if (known == Verdict::Unknown || known == Verdict::Asking)
    co_await probe(compound, *callbacks, back);
  co_return back->verdict() == Verdict::Works;
}

v4::open_delegation4 granted(state::DelegationType type, const state::Stateid& stateid,
                             bool recalled) {
  v4::open_delegation4 delegation;
  // The entry grants nothing: the client asks for each user's access, as it would without.
  if (type == state::DelegationType::Read) {
    delegation.delegation_type = v4::OPEN_DELEGATE_READ;
    delegation.read().stateid = to_stateid4(stateid);
    delegation.read().recall = recalled;
    return delegation;
  }
  delegation.delegation_type = v4::OPEN_DELEGATE_WRITE;
  v4::open_write_delegation4& write = delegation.write();
  write.stateid = to_stateid4(stateid);
  write.recall = recalled;
  write.space_limit.limitby = v4::NFS_LIMIT_SIZE;
  write.space_limit.filesize() = ~std::uint64_t{0};
  return delegation;
}

}  // namespace

bool valid_wants(const v4::OPEN4args& args) {
  constexpr std::uint32_t kKnown = v4::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK |
                                   v4::OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL |
                                   v4::OPEN4_SHARE_ACCESS_WANT_PUSH_DELEG_WHEN_UNCONTENDED;
  const bool claimed = args.claim.claim != v4::CLAIM_PREVIOUS ||
                       args.claim.delegate_type() <= v4::OPEN_DELEGATE_WRITE;
  return claimed && (args.share_access & ~(state::kShareBoth | kKnown)) == 0 &&
         wants_of(args) <= v4::OPEN4_SHARE_ACCESS_WANT_CANCEL;
}

v4::nfsstat4 check_delegation_claim(Compound& compound, const ExportObject& file,
                                    const v4::open_claim4& claim) {
  v4::stateid4 claimed;
  if (claim.claim == v4::CLAIM_DELEGATE_CUR)
    claimed = claim.delegate_cur_info().delegate_stateid;
  else if (claim.claim == v4::CLAIM_DELEG_CUR_FH)
    claimed = claim.oc_delegate_stateid();
  else
    return v4::NFS4_OK;
  return to_nfsstat4(compound.shared().files.check_delegation(key_of(file), to_stateid(claimed),
                                                              *compound.life()));
}

namespace {

// Which of the two comes second finds nobody waiting.
Task<std::optional<HeldAttributes>> ask_holder(Compound& compound, Callbacks& callbacks,
                                               state::Recall held) {
  Loop& loop = compound.admission().call().loop();
  const auto ended = std::make_shared<Completion<std::optional<HeldAttributes>>>();
  const auto complete = [ended](std::optional<HeldAttributes> known) {
    if (!ended->completed()) ended->complete(known);
  };
  callbacks.ask_holder(held, [&loop, complete](std::optional<HeldAttributes> known) {
    loop.post([complete, known] { complete(known); });
  });
  const Timer limit = loop.after(HolderQuestion::kPatience, [complete] { complete(std::nullopt); });
  co_return co_await *ended;
}

}  // namespace

Task<std::optional<std::uint64_t>> size_at_holder(Compound& compound, ExportObject file) {
  state::Files& files = compound.shared().files;
  const auto held = files.write_delegation(key_of(file), compound.life().get());
  Callbacks* const callbacks = compound.shared().callbacks.load(std::memory_order_acquire);
  if (!held || callbacks == nullptr) co_return std::nullopt;
  const auto known = co_await ask_holder(compound, *callbacks, *held);
  if (!known) {
    files.access(key_of(file), state::Touch::Look, compound.life().get());
    co_return std::nullopt;
  }
  if (known->change == held->change) co_return std::nullopt;
  // As if it had been written now: `change` rises each time, and the time is the server's.
  static const vfs::Credentials kServer{0, 0, {}};
  vfs::SetAttributes touched;
  touched.modified.how = vfs::SetTime::How::Now;
  const vfs::CallerContext server{*file.loop, kServer, file.connection};
  const auto set = co_await file.store().set_attributes(server, file.handle, touched, std::nullopt);
  // A size that `change` does not show is not shown either.
  if (!set) co_return std::nullopt;
  co_return known->size;
}

namespace {

using Delegated = Result<v4::open_delegation4, v4::nfsstat4>;

// Local programs that want the file wait for it from now on. False: one has it already, or nobody
// could tell. Nothing else is told of the delegation yet.
Task<bool> keep_from_programs(Compound& compound, const ExportObject& file,
                              state::DelegationType type, const state::Stateid& delegation) {
  Callbacks* const callbacks = compound.shared().callbacks.load(std::memory_order_acquire);
  const state::FileKey key = key_of(file);
  auto lease = co_await file.store().lease(
      file.caller(), file.handle,
      type == state::DelegationType::Read ? vfs::LeaseKind::Read : vfs::LeaseKind::Write,
      callbacks->wanted_locally(key));
  if (!lease) co_return lease.error() == vfs::Status::NotSupported;
  compound.shared().files.keep_lease(delegation, *std::move(lease));
  co_return true;
}

Task<state::StateidResult> delegate(Compound& compound, const ExportObject& file,
                                    state::DelegationType type, bool reclaim) {
  std::uint64_t change = 0;
  if (type == state::DelegationType::Write) {
    // Before its holder can change anything: what is larger then is the holder's.
    const auto attributes = co_await attributes_now(file);
    if (!attributes) co_return state::StateidResult{state::Status::Delay, {}};
    change = attributes->change;
  }
  const state::SlotRef granted_by =
      compound.slot() == nullptr ? state::SlotRef{} : compound.slot()->slot;
  co_return compound.shared().files.delegate({key_of(file), type, granted_by, change, reclaim},
                                             compound.life());
}

// A delegation that no client knows of yet; given back unless it is told.
class Untold {
 public:
  Untold(Compound& compound, const ExportObject& file, const state::Stateid& stateid)
      : compound_(compound), file_(key_of(file)), stateid_(stateid) {}
  Untold(const Untold&) = delete;
  ~Untold() {
    if (told_) return;
    compound_.shared().files.return_delegation(file_, stateid_, *compound_.life());
  }
  void told() { told_ = true; }

 private:
  Compound& compound_;
  const state::FileKey file_;
  const state::Stateid stateid_;
  bool told_ = false;
};

// 10.2.1: who held one before a restart gets it again, and is asked at once to give it back where
// it could not be recalled, or local programs use the file.
Task<Delegated> delegated_again(Compound& compound, const ExportObject& file,
                                const v4::OPEN4args& args) {
  const bool reached = co_await can_call_back(compound);
  const state::DelegationType type = args.claim.delegate_type() == v4::OPEN_DELEGATE_WRITE
                                         ? state::DelegationType::Write
                                         : state::DelegationType::Read;
  const state::StateidResult made = co_await delegate(compound, file, type, true);
  if (made.status != state::Status::Ok) co_return Failure{to_nfsstat4(made.status)};
  Untold untold(compound, file, made.stateid);
  const bool kept = co_await keep_from_programs(compound, file, type, made.stateid);
  untold.told();
  co_return granted(type, made.stateid, !reached || !kept);
}

// 18.16.3: a delegation that the client has is not turned into one of the other kind.
v4::why_no_delegation4 why_denied(const Compound& compound, const ExportObject& file,
                                  const v4::OPEN4args& args) {
  using state::DelegationType;
  const auto has = compound.shared().files.delegation_of(key_of(file), *compound.life());
  const std::uint32_t wants = wants_of(args);
  if (has == DelegationType::Read && wants == v4::OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG)
    return v4::WND4_NOT_SUPP_UPGRADE;
  if (has == DelegationType::Write && wants == v4::OPEN4_SHARE_ACCESS_WANT_READ_DELEG)
    return v4::WND4_NOT_SUPP_DOWNGRADE;
  return v4::WND4_CONTENTION;
}

bool claims_again(const Compound& compound, const v4::open_claim4& claim) {
  return claim.claim == v4::CLAIM_PREVIOUS && claim.delegate_type() != v4::OPEN_DELEGATE_NONE &&
         compound.shared().callbacks.load(std::memory_order_acquire) != nullptr;
}

}  // namespace

Task<Delegated> delegation_for(Compound& compound, const ExportObject& file,
                               const v4::OPEN4args& args) {
  if (claims_again(compound, args.claim)) co_return co_await delegated_again(compound, file, args);
  if (const auto why = why_not(args)) co_return none(args, *why);
  const bool reached = co_await can_call_back(compound);
  if (!reached) co_return none(args, v4::WND4_RESOURCE);
  const state::DelegationType type = type_for(args);
  const state::StateidResult made = co_await delegate(compound, file, type, false);
  if (made.status == state::Status::Denied) co_return none(args, why_denied(compound, file, args));
  if (made.status != state::Status::Ok) co_return none(args, v4::WND4_RESOURCE);
  Untold untold(compound, file, made.stateid);
  const bool kept = co_await keep_from_programs(compound, file, type, made.stateid);
  if (!kept) co_return none(args, v4::WND4_CONTENTION);
  untold.told();
  co_return granted(type, made.stateid, false);
}

v4::nfsstat4 check_callback_path(Compound& compound) {
  using Verdict = BackChannel::Verdict;
  Callbacks* const callbacks = compound.shared().callbacks.load(std::memory_order_acquire);
  const std::shared_ptr<BackChannel> back = path_to_client(compound);
  if (callbacks == nullptr || back == nullptr) return v4::NFS4ERR_CB_PATH_DOWN;
  const bool down = back->verdict() == Verdict::Fails;
  back->ask_again_after(kAskAgain, compound.now());
  if (back->verdict() == Verdict::Unknown) callbacks->probe(back, [] {});
  return down ? v4::NFS4ERR_CB_PATH_DOWN : v4::NFS4_OK;
}

v4::DELEGRETURN4res delegreturn(Compound& compound, v4::DELEGRETURN4args& args) {
  const v4::nfsstat4 nobody = compound.identify(args.deleg_stateid);
  if (nobody != v4::NFS4_OK) return {nobody};
  const auto meant = compound.meant(args.deleg_stateid);
  if (!meant) return {meant.error()};
  return {to_nfsstat4(compound.shared().files.return_delegation(
      key_of(compound.object()), to_stateid(*meant), *compound.life()))};
}

}  // namespace stag::nfs::nfs4
