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

// What is said without a look at the file; nullopt: it may get one. Version 4.0 has no sessions,
// through which it could be recalled.
std::optional<v4::why_no_delegation4> why_not(const Compound& compound, const v4::OPEN4args& args) {
  if (compound.slot() == nullptr) return v4::WND4_RESOURCE;
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

// RFC 8167 3.2: nothing is delegated that cannot be recalled.
Task<bool> can_call_back(Compound& compound) {
  Callbacks* const callbacks = compound.shared().callbacks.load(std::memory_order_acquire);
  if (callbacks == nullptr) co_return false;
  const state::SessionId& sessionid = compound.slot()->slot.sessionid;
  state::Clients& clients = compound.shared().clients;
  const auto back = std::static_pointer_cast<BackChannel>(clients.callback_path(sessionid));
  if (back == nullptr || clients.back_channels(sessionid).empty()) co_return false;
  const BackChannel::Verdict known = back->verdict();
  if (known == BackChannel::Verdict::Unknown || known == BackChannel::Verdict::Asking)
    co_await probe(compound, *callbacks, back);
  co_return back->verdict() == BackChannel::Verdict::Works;
}

v4::open_delegation4 granted(state::DelegationType type, const state::Stateid& stateid) {
  v4::open_delegation4 delegation;
  // The entry grants nothing: the client asks for each user's access, as it would without.
  if (type == state::DelegationType::Read) {
    delegation.delegation_type = v4::OPEN_DELEGATE_READ;
    delegation.read().stateid = to_stateid4(stateid);
    return delegation;
  }
  delegation.delegation_type = v4::OPEN_DELEGATE_WRITE;
  v4::open_write_delegation4& write = delegation.write();
  write.stateid = to_stateid4(stateid);
  write.space_limit.limitby = v4::NFS_LIMIT_SIZE;
  write.space_limit.filesize() = ~std::uint64_t{0};
  return delegation;
}

}  // namespace

bool valid_wants(const v4::OPEN4args& args) {
  return wants_of(args) <= v4::OPEN4_SHARE_ACCESS_WANT_CANCEL;
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

Task<v4::open_delegation4> delegation_for(Compound& compound, const ExportObject& file,
                                          const v4::OPEN4args& args) {
  if (const auto why = why_not(compound, args)) co_return none(args, *why);
  const bool reached = co_await can_call_back(compound);
  if (!reached) co_return none(args, v4::WND4_RESOURCE);
  const state::DelegationType type = type_for(args);
  std::uint64_t change = 0;
  if (type == state::DelegationType::Write) {
    // Before its holder can change anything: what is larger then is the holder's.
    const auto attributes = co_await attributes_now(file);
    if (!attributes) co_return none(args, v4::WND4_RESOURCE);
    change = attributes->change;
  }
  const state::StateidResult made = compound.shared().files.delegate(
      {key_of(file), type, compound.slot()->slot, change}, compound.life());
  if (made.status == state::Status::Ok) co_return granted(type, made.stateid);
  co_return none(args,
                 made.status == state::Status::Denied ? v4::WND4_CONTENTION : v4::WND4_RESOURCE);
}

v4::DELEGRETURN4res delegreturn(Compound& compound, v4::DELEGRETURN4args& args) {
  // No client of version 4.0 was given any.
  if (compound.slot() == nullptr) return {v4::NFS4ERR_BAD_STATEID};
  const auto meant = compound.meant(args.deleg_stateid);
  if (!meant) return {meant.error()};
  return {to_nfsstat4(compound.shared().files.return_delegation(
      key_of(compound.object()), to_stateid(*meant), *compound.life()))};
}

}  // namespace stag::nfs::nfs4
