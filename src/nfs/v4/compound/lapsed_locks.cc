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

// Files that are looked at in one turn of the loop, and given up in one go of a worker.
constexpr std::size_t kFilesAtOnce = 256;
// A second apart.
constexpr int kTriesOfLease = 5;

void give_up_locks(state::Files& files, const state::Life& life, const state::FileKey& key) {
  if (const std::size_t gone = files.expire_locks(key, life)) note_given_up(life, gone);
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
  detach(watch_all(mailbox_, home_, client, shared_.files.locked_by(*life)));
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
Task<void> LapsedLocks::watch_all(std::shared_ptr<Mailbox> mailbox, Loop& home, ClientPtr client,
                                  std::vector<state::FileKey> keys) {
  const Taking taking(mailbox);
  try {
    std::size_t looked_at = 0;
    for (const state::FileKey& key : keys) {
      if (++looked_at % kFilesAtOnce == 0) co_await resume_on(home);
      LapsedLocks* const locks = mailbox->locks;
      if (locks == nullptr || locks->stopping_ || !client->life->lapsed()) co_return;
      if (locks->watch(client, key)) co_await take(mailbox, home, key);
    }
  } catch (const std::bad_alloc&) {
    client->life->wanted.store(EndedFor::Conflict);
  }
}

// Whether a lease is to be taken.
bool LapsedLocks::watch(const ClientPtr& client, const state::FileKey& key) {
  if (!shared_.server.local_locks->is_open(key)) return false;
  File& file = files_[key];
  if (std::ranges::count(file.clients, client) == 0) {
    file.clients.push_back(client);
    if (file.due) client->due.push_back(key);
  }
  if (file.due) start(client);
  return !file.due && !file.taking && file.lease == nullptr;
}

// What fails look() does again.
Task<void> LapsedLocks::try_again(std::shared_ptr<Mailbox> mailbox, Loop& home,
                                  std::vector<state::FileKey> keys) {
  const Taking taking(mailbox);
  mailbox->locks->trying_again_ = true;
  try {
    std::size_t looked_at = 0;
    for (const state::FileKey& key : keys) {
      if (++looked_at % kFilesAtOnce == 0) co_await resume_on(home);
      if (mailbox->locks == nullptr || mailbox->locks->stopping_) co_return;
      co_await take(mailbox, home, key);
    }
  } catch (const std::bad_alloc&) {
    // What is left comes in a second.
  }
  if (mailbox->locks != nullptr) mailbox->locks->trying_again_ = false;
}

Task<void> LapsedLocks::take(const std::shared_ptr<Mailbox>& mailbox, Loop& home,
                             const state::FileKey& key) {
  {
    auto& files = mailbox->locks->files_;
    const auto found = files.find(key);
    if (found == files.end()) co_return;
    File& file = found->second;
    if (file.taking || file.due || file.lease != nullptr) co_return;
    file.taking = true;
  }
  Taken taken{nullptr, true};
  try {
    taken = co_await take_lease(mailbox, home, key);
  } catch (const std::bad_alloc&) {
    // One of the tries.
  }
  if (mailbox->locks != nullptr) mailbox->locks->taken(key, std::move(taken));
}

void LapsedLocks::stop(UniqueFunction<void()> done) {
  stopping_ = true;
  if (takers_ == 0) return done();
  stopped_ = std::move(done);
}

// As the server: the client that locked the file had the right to.
Task<LapsedLocks::Taken> LapsedLocks::take_lease(const std::shared_ptr<Mailbox>& mailbox,
                                                 Loop& home, const state::FileKey& key) {
  static const vfs::Credentials kServer{0, 0, {}};
  LapsedLocks& locks = *mailbox->locks;
  const auto found = locks.shared_.server.exports.keep(key.via);
  if (found == nullptr || found->store != key.store) co_return Taken();
  auto taken = co_await found->file_system().lease({home, kServer, mailbox.get()}, key.handle,
                                                   vfs::LeaseKind::Write, locks.wanted(key));
  if (taken) co_return Taken{*std::move(taken), false};
  co_return Taken{nullptr, taken.error() == vfs::Status::Delay};
}

void LapsedLocks::taken(const state::FileKey& key, Taken taken) noexcept {
  const auto found = files_.find(key);
  if (found == files_.end()) return;
  File& file = found->second;
  file.taking = false;
  file.lease = std::move(taken.lease);
  if (stopping_) return;
  if (taken.for_the_moment && ++file.tries < kTriesOfLease) return;
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

// What cannot be done now look() does. The lease stays until all is done: the program goes on then.
void LapsedLocks::give_up(const state::FileKey& key) noexcept try {
  const auto found = files_.find(key);
  if (found == files_.end()) return;
  File& file = found->second;
  if (file.taking || file.due) return;
  std::erase_if(file.clients, [](const ClientPtr& client) { return !client->life->lapsed(); });
  if (file.clients.empty()) {
    files_.erase(found);
    return;
  }
  for (const ClientPtr& client : file.clients) client->due.push_back(key);
  file.due = true;
  for (const ClientPtr& client : file.clients) start(client);
} catch (const std::bad_alloc&) {
}

// Work for a client: however it ends, even where it is refused, the loop hears of it, or look()
// sees it.
class LapsedLocks::Errand {
 public:
  Errand(std::shared_ptr<Mailbox> mailbox, ClientPtr client)
      : ending_(client->life), mailbox_(std::move(mailbox)), client_(std::move(client)) {
    client_->work.store(Work::Runs);
  }
  Errand(Errand&&) noexcept = default;
  ~Errand() {
    if (client_ == nullptr) return;
    { const Ending over(std::move(ending_)); }
    client_->work.store(done_ ? Work::Done : Work::Failed);
    try {
      tell();
    } catch (const std::bad_alloc&) {
      // look() sees it.
    }
  }
  Client& client() const { return *client_; }
  void done() { done_ = true; }

 private:
  void tell() const {
    const std::scoped_lock lock(mailbox_->mutex);
    if (mailbox_->locks == nullptr) return;
    mailbox_->locks->home_.post([mailbox = mailbox_, client = client_] {
      if (mailbox->locks != nullptr) mailbox->locks->finish(client);
    });
  }

  Ending ending_;
  std::shared_ptr<Mailbox> mailbox_;
  ClientPtr client_;
  bool done_ = false;
};

// One batch at a time, of all files that are due.
void LapsedLocks::start(const ClientPtr& client) {
  if (client->work.load() != Work::None || !client->life->lapsed()) return;
  if (client->batch.empty()) {
    auto& due = client->due;
    const auto first = due.end() - static_cast<std::ptrdiff_t>(std::min(due.size(), kFilesAtOnce));
    client->batch.assign(first, due.end());
    due.erase(first, due.end());
  }
  if (client->batch.empty() || client->life->ending.exchange(true)) return;
  recovery::Recovery* const recovery = shared_.options.recovery;
  auto work = [&shared = shared_, errand = Errand(mailbox_, client)]() mutable {
    Client& one = errand.client();
    const auto has_locks = [&](const state::FileKey& key) {
      return shared.files.holds_ranges(key, *one.life);
    };
    const bool recorded = one.life->recorded.load();
    // What the client has lost it must not claim after a restart.
    if (std::ranges::none_of(one.batch, has_locks) || shared.revoke(*one.life, [&] {
          if (recorded) one.unrecorded = true;
          for (const state::FileKey& key : one.batch) give_up_locks(shared.files, *one.life, key);
        }))
      errand.done();
  };
  if (recovery != nullptr) {
    static_cast<void>(recovery->offload(std::move(work)));
    return;
  }
  home_.post([mailbox = mailbox_, work = std::move(work)]() mutable {
    if (mailbox->locks != nullptr) work();
  });
}

void LapsedLocks::finish(const ClientPtr& client) noexcept try {
  const Work was = client->work.load();
  if (was == Work::None || was == Work::Runs) return;
  client->work.store(Work::None);
  if (was == Work::Failed) return;
  for (const state::FileKey& key : client->batch) {
    const auto found = files_.find(key);
    if (found == files_.end()) continue;
    std::erase(found->second.clients, client);
    if (found->second.clients.empty() && !found->second.taking) files_.erase(found);
  }
  client->batch.clear();
  start(client);
} catch (const std::bad_alloc&) {
  // What is left look() begins.
}

void LapsedLocks::look() try {
  look_at_files();
  for (const ClientPtr& client : clients_) {
    finish(client);
    start(client);
  }
  std::erase_if(clients_, [this](const ClientPtr& client) { return came_back(client); });
  note();
} catch (const std::bad_alloc&) {
  // The next time.
}

// Whether an administrator has taken what the client had locked of the file: its lease, for which
// the file is open, would keep its disk in use.
bool LapsedLocks::lost(const state::Life& life, const state::FileKey& key) const {
  return life.admin_revoked.load() != 0 && !shared_.files.holds_ranges(key, life);
}

void LapsedLocks::look_at_files() {
  std::vector<state::FileKey> wanted, without;
  for (auto at = files_.begin(); at != files_.end();) {
    File& file = at->second;
    std::erase_if(file.clients, [&](const ClientPtr& client) {
      return !client->life->lapsed() || (!file.due && lost(*client->life, at->first));
    });
    if (file.clients.empty() && !file.taking) {
      at = files_.erase(at);
      continue;
    }
    if (!file.taking && !file.due) {
      if (file.lease == nullptr)
        without.push_back(at->first);
      else if (file.lease->wanted())
        wanted.push_back(at->first);
    }
    ++at;
  }
  for (const state::FileKey& key : wanted) give_up(key);
  if (without.empty() || trying_again_ || stopping_) return;
  detach(try_again(mailbox_, home_, std::move(without)));
}

bool LapsedLocks::came_back(const ClientPtr& client) noexcept try {
  return !client->life->lapsed() && record_again(client);
} catch (const std::bad_alloc&) {
  return false;
}

// One that came back, and has freed what it lost (version 4.0 cannot say so): what it still holds
// it may claim after a restart.
bool LapsedLocks::record_again(const ClientPtr& client) {
  state::Life& life = *client->life;
  recovery::Recovery* const recovery = shared_.options.recovery;
  if (recovery == nullptr || life.ended() || !client->unrecorded.load() || life.recorded.load())
    return true;
  if (life.forfeits()) return life.without_sessions;
  auto owner = shared_.owner_of(life.clientid);
  if (!owner) return true;
  if (life.ending.exchange(true)) return false;
  return recovery->offload(
      [&shared = shared_, owner = *std::move(owner), ending = Ending(client->life)]() mutable {
        shared.record_again(ending.life, std::move(owner));
      });
}

void LapsedLocks::note() {
  any_.store(!clients_.empty() || !files_.empty());
}

}  // namespace stag::nfs::nfs4
