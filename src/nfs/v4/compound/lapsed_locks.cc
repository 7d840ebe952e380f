#include "nfs/v4/compound/lapsed_locks.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/reason.h"
#include "nfs/v4/compound/ending.h"
#include "nfs/v4/compound/shared_state.h"

namespace stag::nfs::nfs4 {

namespace {

void note_given_up(const state::Life& life, std::size_t locks) noexcept {
  try {
    trace(Reason::Nfs4CourtesyEnded, life.account->address,
          "client " + std::to_string(life.clientid) + ": " + std::to_string(locks) +
              " locks of a file that programs of this machine use, and nothing else");
  } catch (const std::bad_alloc&) {
    trace(Reason::Nfs4CourtesyEnded, life.account->address);
  }
}

void give_up_locks(state::Files& files, const state::Life& life, const state::FileKey& key) {
  std::size_t gone = 0;
  for (const state::LockedFile& one : files.locks_of(life))
    if (one.file == key && files.expire_lock(one.stateid, life)) ++gone;
  if (gone != 0) note_given_up(life, gone);
}

}  // namespace

LapsedLocks::LapsedLocks(SharedState& shared, Loop& home)
    : shared_(shared), home_(home), mailbox_(std::make_shared<Mailbox>()) {
  mailbox_->locks = this;
  shared_.lapsed_locks.store(this, std::memory_order_release);
}

LapsedLocks::~LapsedLocks() {
  shared_.lapsed_locks.store(nullptr, std::memory_order_release);
  const std::scoped_lock lock(mailbox_->mutex);
  mailbox_->locks = nullptr;
}

bool LapsedLocks::add(const state::LifePtr& life) noexcept try {
  home_.post([mailbox = mailbox_, life] {
    if (mailbox->locks != nullptr) mailbox->locks->begin(life);
  });
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void LapsedLocks::begin(const state::LifePtr& life) try {
  if (stopping_ || !life->lapsed()) return;
  const auto client = std::make_shared<Client>(life);
  clients_.push_back(client);
  note();
  std::vector<state::FileKey> without;
  for (const state::LockedFile& one : shared_.files.locks_of(*life)) {
    if (!shared_.server.local_locks->is_open(one.file)) continue;
    File& file = files_[one.file];
    if (std::ranges::count(file.clients, client) == 0) file.clients.push_back(client);
    if (file.taking || file.lease != nullptr) continue;
    without.push_back(one.file);
    file.taking = true;
  }
  detach(take_leases(mailbox_, home_, std::move(without)));
} catch (const std::bad_alloc&) {
  // Programs would run into what is not watched.
  life->wanted.store(EndedFor::Conflict);
}

struct LapsedLocks::Taking {
  explicit Taking(std::shared_ptr<Mailbox> of) : mailbox(std::move(of)) {
    ++mailbox->locks->takers_;
  }
  Taking(const Taking&) = delete;
  ~Taking() {
    LapsedLocks* const locks = mailbox->locks;
    if (locks != nullptr && --locks->takers_ == 0 && locks->stopped_)
      std::exchange(locks->stopped_, nullptr)();
  }
  const std::shared_ptr<Mailbox> mailbox;
};

// One after the other: the queue of the store's workers is for clients.
Task<void> LapsedLocks::take_leases(std::shared_ptr<Mailbox> mailbox, Loop& home,
                                    std::vector<state::FileKey> keys) {
  const Taking taking(mailbox);
  for (const state::FileKey& key : keys) {
    LeasePtr lease;
    if (!mailbox->locks->stopping_) lease = co_await take_lease(mailbox, home, key);
    if (mailbox->locks == nullptr) co_return;
    mailbox->locks->taken(key, std::move(lease));
  }
}

void LapsedLocks::stop(UniqueFunction<void()> done) {
  stopping_ = true;
  if (takers_ == 0) return done();
  stopped_ = std::move(done);
}

// As the server: whoever locked the file had the right to. Null: there is none.
Task<LapsedLocks::LeasePtr> LapsedLocks::take_lease(const std::shared_ptr<Mailbox>& mailbox,
                                                    Loop& home, const state::FileKey& key) {
  static const vfs::Credentials kServer{0, 0, {}};
  try {
    LapsedLocks& locks = *mailbox->locks;
    const auto exports = locks.shared_.server.exports.current();
    const Export* const found = exports->find(key.via);
    if (found == nullptr || found->store != key.store) co_return LeasePtr();
    auto taken = co_await found->file_system().lease({home, kServer, mailbox.get()}, key.handle,
                                                     vfs::LeaseKind::Write, locks.wanted(key));
    if (taken) co_return *std::move(taken);
  } catch (const std::bad_alloc&) {
    // As where there is none.
  }
  co_return LeasePtr();
}

void LapsedLocks::taken(const state::FileKey& key, LeasePtr lease) {
  const auto found = files_.find(key);
  if (found == files_.end()) return;
  File& file = found->second;
  file.taking = false;
  file.lease = std::move(lease);
  if (stopping_) return;
  if (file.lease == nullptr || file.lease->wanted()) give_up(key);
}

vfs::LeaseWanted LapsedLocks::wanted(const state::FileKey& key) const {
  return [mailbox = mailbox_, key](Duration) {
    const std::scoped_lock lock(mailbox->mutex);
    if (mailbox->locks == nullptr) return;
    mailbox->locks->home_.post([mailbox, key] {
      if (mailbox->locks != nullptr) mailbox->locks->give_up(key);
    });
  };
}

// What cannot be done now look() does; the lease goes when all is done.
void LapsedLocks::give_up(const state::FileKey& key) {
  const auto found = files_.find(key);
  if (found == files_.end() || found->second.taking) return;
  const LeasePtr lease = std::exchange(found->second.lease, nullptr);
  for (const ClientPtr& client : found->second.clients) give_up(key, client, lease);
  std::erase_if(found->second.clients,
                [&](const ClientPtr& client) { return !has_locks(*client, key); });
  if (found->second.clients.empty()) files_.erase(found);
}

void LapsedLocks::give_up(const state::FileKey& key, const ClientPtr& client,
                          const LeasePtr& lease) {
  state::Life& life = *client->life;
  recovery::Recovery* const recovery = shared_.options.recovery;
  if (!life.lapsed()) return;
  if (recovery == nullptr) return give_up_locks(shared_.files, life, key);
  if (life.ending.exchange(true)) return;
  // What the client has lost it must not claim after a restart.
  static_cast<void>(recovery->offload([this, key, client, lease, ending = Ending(client->life)] {
    const bool recorded = client->life->recorded.load();
    shared_.revoke(*client->life, [&] {
      client->unrecorded = client->unrecorded.load() || recorded;
      give_up_locks(shared_.files, *client->life, key);
    });
  }));
}

bool LapsedLocks::has_locks(const Client& client, const state::FileKey& key) const {
  if (!client.life->lapsed()) return false;
  const auto locks = shared_.files.locks_of(*client.life);
  return std::ranges::any_of(locks, [&](const state::LockedFile& one) { return one.file == key; });
}

void LapsedLocks::look() try {
  std::vector<state::FileKey> due;
  for (auto at = files_.begin(); at != files_.end();) {
    File& file = at->second;
    std::erase_if(file.clients, [](const ClientPtr& client) { return !client->life->lapsed(); });
    if (!file.taking && file.lease == nullptr) due.push_back(at->first);
    at = file.clients.empty() && !file.taking ? files_.erase(at) : std::next(at);
  }
  for (const state::FileKey& key : due) give_up(key);
  std::erase_if(clients_, [this](const ClientPtr& client) {
    return !client->life->lapsed() && record_again(client);
  });
  note();
} catch (const std::bad_alloc&) {
  // The next time.
}

// One that came back, and has freed what it lost (version 4.0 cannot say so): what it still holds
// it may claim after a restart.
bool LapsedLocks::record_again(const ClientPtr& client) {
  using recovery::Change;
  state::Life& life = *client->life;
  recovery::Recovery* const recovery = shared_.options.recovery;
  if (recovery == nullptr || life.ended() || !client->unrecorded.load() || life.recorded.load())
    return true;
  if (life.forfeits()) return life.without_sessions;
  auto owner = shared_.owner_of(life.clientid);
  if (!owner) return true;
  if (life.ending.exchange(true)) return false;
  return recovery->offload(
      [recovery, client, owner = *std::move(owner), ending = Ending(client->life)]() mutable {
        state::Life& back = *client->life;
        back.recorded =
            recovery->write({Change::Kind::Add, back.clientid, std::move(owner), client->life}) &&
            !back.forfeits();
        // Whoever ended it meanwhile saw no record to remove.
        if (back.ended()) recovery->remove_later(back.clientid);
      });
}

void LapsedLocks::note() {
  any_.store(!clients_.empty() || !files_.empty());
}

}  // namespace stag::nfs::nfs4
