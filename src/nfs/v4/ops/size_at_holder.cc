#include "nfs/v4/ops/size_at_holder.h"

#include "base/first_answer.h"
#include "nfs/v4/callback/callbacks.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

namespace {

Task<std::optional<HeldAttributes>> ask_holder(Compound& compound, Callbacks& callbacks,
                                               state::Recall held) {
  FirstAnswer<std::optional<HeldAttributes>> told(compound.admission().call().loop());
  callbacks.ask_holder(held, told.from_anywhere());
  co_return co_await told.within(HolderQuestion::kPatience, std::nullopt);
}

// Whether it has been given back, and so the server knows all that there is to know.
Task<bool> is_given_back(Compound& compound, state::FileKey file, TimePoint until) {
  state::Files& files = compound.shared().files;
  const state::Life* const by = compound.life().get();
  const Asked asked = co_await settled_until(until, compound, file, [&files, file, by] {
    Asked once{files.access(file, state::Touch::Look, by)};
    if (once.verdict.kind == state::Verdict::Kind::Recall)
      files.recall(file, state::Touch::Look, by);
    return once;
  });
  co_return asked.verdict.granted();
}

// In version 4.0 a client that asks without a stateid may be the holder, which would wait for
// itself.
bool may_be_holder(const Compound& compound, state::ClientId holder) {
  if (compound.minor() != 0 || compound.life() != nullptr) return false;
  const state::LifePtr life = compound.shared().clients.life(holder);
  return life != nullptr && life->without_sessions;
}

constexpr std::optional<std::uint64_t> kAsTheServer;

}  // namespace

Task<SizeAtHolder> size_at_holder(Compound& compound, ExportObject file) {
  const TimePoint until = compound.now() + kRecallPatience;
  const auto held = compound.shared().files.write_delegation(file.key(), compound.life().get());
  Callbacks* const callbacks = compound.shared().callbacks.load(std::memory_order_acquire);
  if (!held || callbacks == nullptr) co_return kAsTheServer;
  // The server does not ask a holder that has to give it back anew for each client that wants to
  // know.
  std::optional<HeldAttributes> known;
  std::optional<vfs::Attributes> before;
  if (!held->recalled) {
    before = co_await attributes_now(file);
    known = co_await ask_holder(compound, *callbacks, *held);
  }
  if (!known && may_be_holder(compound, held->clientid)) {
    compound.shared().files.recall(file.key(), state::Touch::Look);
    co_return kAsTheServer;
  }
  if (!known) {
    const bool gone = co_await is_given_back(compound, file.key(), until);
    if (!gone) co_return Failure{v4::NFS4ERR_DELAY};
    co_return kAsTheServer;
  }
  // RFC 8881 10.4.3: a size that differs is a modification, whatever `change` says. The holder may
  // write while it is asked: its size is held against the one of before.
  const bool same_size = !before || known->size == before->size;
  if (known->change == held->change && same_size) co_return kAsTheServer;
  // As if it had been written now: `change` rises each time, and the time is the server's.
  static const vfs::Credentials kServer{0, 0, {}};
  vfs::SetAttributes touched;
  touched.modified.how = vfs::SetTime::How::Now;
  const vfs::CallerContext server{*file.loop, kServer, file.connection, file.worker_time};
  const auto set = co_await file.store().set_attributes(server, file.handle, touched, std::nullopt);
  // A size that `change` does not show is not shown either.
  if (!set) co_return kAsTheServer;
  co_return std::optional(known->size);
}

}  // namespace stag::nfs::nfs4
