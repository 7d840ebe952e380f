#include "nfs/v4/ops/size_at_holder.h"

#include "base/completion.h"
#include "nfs/v4/callback/callbacks.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

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
  const auto held = files.write_delegation(file.key(), compound.life().get());
  Callbacks* const callbacks = compound.shared().callbacks.load(std::memory_order_acquire);
  if (!held || callbacks == nullptr) co_return std::nullopt;
  const auto known = co_await ask_holder(compound, *callbacks, *held);
  if (!known) {
    files.recall(file.key(), state::Touch::Look, compound.life().get());
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

}  // namespace stag::nfs::nfs4
