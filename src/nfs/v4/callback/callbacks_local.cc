// What local programs want of clients: the delegations of the files that they wait for.
#include "nfs/v4/callback/callbacks.h"
#include "nfs/v4/compound/shared_state.h"

namespace stag::nfs::nfs4 {

vfs::LeaseWanted Callbacks::wanted_locally(const state::FileKey& file) {
  return [mailbox = mailbox_, file](Duration waits) {
    const std::scoped_lock lock(mailbox->mutex);
    Callbacks* const callbacks = mailbox->callbacks;
    if (callbacks == nullptr) return;
    callbacks->home_.post(
        [callbacks, file, waits] { callbacks->want(file, callbacks->home_.now() + waits); });
  };
}

void Callbacks::want(const state::FileKey& file, TimePoint until) {
  const Wanted wanted{file, until};
  if (ask_back(wanted)) return;
  wanted_.push_back(wanted);
  arm();
}

// Asks again each second, for a holder that lapsed ends before the others are recalled. True when
// nobody has a delegation any more.
bool Callbacks::ask_back(const Wanted& wanted) {
  const state::Verdict verdict = shared_.files.access(wanted.file, state::Touch::Write);
  if (verdict.granted()) return true;
  if (verdict.kind == state::Verdict::Kind::Recall)
    shared_.files.recall(wanted.file, state::Touch::Write);
  if (verdict.kind == state::Verdict::Kind::Lapsed)
    shared_.end_lapsed(verdict.who, EndedFor::Conflict);
  for (auto& [key, pending] : pending_) {
    if (key.kind != CallbackKey::Kind::Recall) continue;
    auto& recall = static_cast<DelegationRecall&>(*pending.what);
    if (recall.file() == wanted.file) recall.hurry(wanted.until);
  }
  return false;
}

}  // namespace stag::nfs::nfs4
