#include "nfs/state/owners.h"

#include <algorithm>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/brief_mutex.h"
#include "nfs/state/seqid.h"

namespace stag::nfs::state {

using ClosedKey = std::array<std::byte, 12>;  // the `other` of a stateid

struct OwnerRecord {
  ClientId clientid = 0;
  std::string name;     // kind and owner
  bool listed = false;  // false: forgotten, though an operation still refers to it
  bool busy = false;
  bool fresh = true;  // it has had no operation yet
  bool confirmed = false;
  std::uint32_t last = 0;  // the seqid of its last operation
  OwnerOperation operation = OwnerOperation::Open;
  std::uint64_t principal = 0;
  ReplyPtr reply;
  std::optional<Stateid> unconfirmed;  // an open that waits for its OPEN_CONFIRM
  std::optional<ClosedKey> closed;
  std::vector<Stateid> locks;  // of a lock owner
  std::list<OwnerRef>::iterator place;
};

namespace {

std::string name_of(OwnerKind kind, Bytes owner) {
  return std::string(1, kind == OwnerKind::Open ? 'o' : 'l') + std::string(text_of(owner));
}

OwnerTurn refuse_turn(Status status) {
  OwnerTurn turn;
  turn.kind = OwnerTurn::Kind::Refuse;
  turn.status = status;
  return turn;
}

OwnerTurn repeat_turn(const OwnerRecord& owner) {
  OwnerTurn turn;
  turn.kind = OwnerTurn::Kind::Replay;
  turn.reply = owner.reply;
  return turn;
}

OwnerTurn run_turn(const OwnerRef& owner) {
  OwnerTurn turn;
  turn.owner = owner;
  turn.confirmed = owner->confirmed;
  turn.fresh = owner->fresh;
  owner->busy = true;
  return turn;
}

// 9.1.9: what it did last, once more.
bool repeats(const OwnerRecord& owner, const OwnerArgs& args) {
  return args.seqid == owner.last && args.operation == owner.operation &&
         args.principal == owner.principal && owner.reply != nullptr;
}

// 16.18.5: an OPEN in place of the one that waits to be confirmed says that that one was a replay;
// anything else would be one itself.
OwnerTurn judge_unconfirmed(const OwnerRef& owner, const OwnerArgs& args) {
  if (args.operation == OwnerOperation::Open) {
    if (repeats(*owner, args)) return repeat_turn(*owner);
    OwnerTurn turn = run_turn(owner);
    turn.cancelled = std::exchange(owner->unconfirmed, std::nullopt);
    return turn;
  }
  if (args.operation != OwnerOperation::OpenConfirm) return refuse_turn(Status::BadStateid);
  if (args.seqid == next_seqid(owner->last)) return run_turn(owner);
  OwnerTurn turn = refuse_turn(Status::BadSeqid);
  turn.cancelled = std::exchange(owner->unconfirmed, std::nullopt);
  return turn;
}

OwnerTurn judge(const OwnerRef& owner, const OwnerArgs& args) {
  if (owner->busy) return refuse_turn(Status::Delay);
  if (owner->fresh) return run_turn(owner);
  if (!owner->confirmed) return judge_unconfirmed(owner, args);
  if (args.seqid == next_seqid(owner->last)) return run_turn(owner);
  return repeats(*owner, args) ? repeat_turn(*owner) : refuse_turn(Status::BadSeqid);
}

struct ClosedHash {
  std::size_t operator()(const ClosedKey& key) const {
    return load_be<std::uint64_t>(key.data() + 4);
  }
};

}  // namespace

struct Owners::Impl {
  struct OfClient {
    std::unordered_map<std::string, OwnerRef> by_name;
    std::list<OwnerRef> by_use;  // the one used last is the last
  };

  static constexpr std::size_t kOwners = 8192;  // shared by the clients that have any
  static constexpr std::size_t kMostOfClient = 1024;
  static constexpr std::size_t kLeastOfClient = 4;   // however many clients there are
  static constexpr std::size_t kLocksOfOwner = 256;  // lock stateids that RELEASE_LOCKOWNER frees

  OwnerRef find(ClientId clientid, const std::string& name) {
    const auto client = clients.find(clientid);
    if (client == clients.end()) return nullptr;
    const auto found = client->second.by_name.find(name);
    return found == client->second.by_name.end() ? nullptr : found->second;
  }
  void touch(OwnerRecord& owner) {
    std::list<OwnerRef>& order = clients.at(owner.clientid).by_use;
    order.splice(order.end(), order, owner.place);
  }
  std::size_t room_of_client() const {
    return std::clamp(kOwners / (clients.size() + 1), kLeastOfClient, kMostOfClient);
  }
  // `fresh` gets a place; what has to make room for it goes to `gone`.
  void add(const OwnerRef& fresh, std::list<OwnerRef>& gone) {
    OfClient& client = clients[fresh->clientid];
    client.by_use.push_back(fresh);
    fresh->place = std::prev(client.by_use.end());
    client.by_name.emplace(fresh->name, fresh);
    fresh->listed = true;
    ++size;
    // Those before it: what runs is being used, however long ago it began.
    for (std::size_t before = client.by_use.size() - 1;
         before > 0 && client.by_use.size() > room_of_client(); --before) {
      OwnerRecord& first = *client.by_use.front();
      if (first.busy)
        touch(first);
      else
        remove(first, gone);
    }
  }
  void remove(OwnerRecord& owner, std::list<OwnerRef>& gone) {
    OfClient& client = clients.at(owner.clientid);
    if (owner.closed) closed.erase(*owner.closed);
    owner.listed = false;
    client.by_name.erase(owner.name);
    gone.splice(gone.end(), client.by_use, owner.place);
    --size;
  }

  mutable BriefMutex mutex;
  std::unordered_map<ClientId, OfClient> clients;
  std::unordered_map<ClosedKey, OwnerRecord*, ClosedHash> closed;
  std::size_t size = 0;
};

Owners::Owners() : impl_(std::make_unique<Impl>()) {}
Owners::~Owners() = default;

OwnerTurn Owners::begin(const OwnerArgs& args) {
  std::list<OwnerRef> gone;  // freed when the lock is
  OwnerRef fresh = std::make_shared<OwnerRecord>();
  fresh->clientid = args.clientid;
  fresh->name = name_of(args.kind, args.owner);
  // 9.1.11: only the first use of an open owner is doubtful.
  fresh->confirmed = args.kind == OwnerKind::Lock;
  const BriefLock lock(impl_->mutex);
  OwnerRef owner = impl_->find(args.clientid, fresh->name);
  if (owner == nullptr) {
    if (!args.creates) return {};
    impl_->add(fresh, gone);
    owner = fresh;
  }
  impl_->touch(*owner);
  return judge(owner, args);
}

OwnerTurn Owners::closed_before(const Stateid& stateid, std::uint32_t seqid) {
  const BriefLock lock(impl_->mutex);
  const auto found = impl_->closed.find(stateid.other);
  if (found == impl_->closed.end()) return refuse_turn(Status::BadStateid);
  const OwnerRecord& owner = *found->second;
  const bool again = owner.operation == OwnerOperation::Close && owner.last == seqid;
  return again && owner.reply != nullptr ? repeat_turn(owner) : refuse_turn(Status::BadStateid);
}

void Owners::finished(const OwnerRef& owner, const OwnerArgs& args, ReplyPtr reply) {
  const BriefLock lock(impl_->mutex);
  owner->busy = false;
  owner->fresh = false;
  owner->last = args.seqid;
  owner->operation = args.operation;
  owner->principal = args.principal;
  owner->reply.swap(reply);
}

void Owners::abandoned(const OwnerRef& owner) {
  std::list<OwnerRef> gone;
  const BriefLock lock(impl_->mutex);
  owner->busy = false;
  if (owner->fresh && owner->listed) impl_->remove(*owner, gone);
}

void Owners::opened(const OwnerRef& owner, const Stateid& stateid) {
  const BriefLock lock(impl_->mutex);
  if (!owner->confirmed) owner->unconfirmed = stateid;
}

void Owners::closed(const OwnerRef& owner, const Stateid& stateid) {
  const BriefLock lock(impl_->mutex);
  if (!owner->listed) return;
  if (owner->closed) impl_->closed.erase(*owner->closed);
  owner->closed = stateid.other;
  impl_->closed[stateid.other] = owner.get();
}

void Owners::locked(const OwnerRef& owner, const Stateid& stateid) {
  const BriefLock lock(impl_->mutex);
  std::vector<Stateid>& locks = owner->locks;
  if (locks.size() >= Impl::kLocksOfOwner) locks.erase(locks.begin());
  locks.push_back(stateid);
}

std::vector<Stateid> Owners::locks(ClientId clientid, Bytes owner) const {
  const std::string name = name_of(OwnerKind::Lock, owner);
  const BriefLock lock(impl_->mutex);
  const OwnerRef found = impl_->find(clientid, name);
  return found == nullptr ? std::vector<Stateid>() : found->locks;
}

void Owners::confirm(const OwnerRef& owner) {
  const BriefLock lock(impl_->mutex);
  owner->confirmed = true;
  owner->unconfirmed.reset();
}

bool Owners::has_opened(ClientId clientid, std::uint64_t principal) const {
  const BriefLock lock(impl_->mutex);
  const auto client = impl_->clients.find(clientid);
  if (client == impl_->clients.end()) return false;
  return std::ranges::any_of(client->second.by_use, [principal](const OwnerRef& owner) {
    const bool open_owner = owner->name.front() == 'o';
    return open_owner && owner->confirmed && !owner->fresh && owner->principal == principal;
  });
}

void Owners::forget(OwnerKind kind, ClientId clientid, Bytes owner) {
  std::list<OwnerRef> gone;
  const std::string name = name_of(kind, owner);
  const BriefLock lock(impl_->mutex);
  const OwnerRef found = impl_->find(clientid, name);
  if (found != nullptr && !found->busy) impl_->remove(*found, gone);
}

void Owners::release(ClientId clientid) {
  std::list<OwnerRef> gone;
  const BriefLock lock(impl_->mutex);
  const auto client = impl_->clients.find(clientid);
  if (client == impl_->clients.end()) return;
  while (!client->second.by_use.empty()) impl_->remove(*client->second.by_use.front(), gone);
  impl_->clients.erase(client);
}

std::size_t Owners::size() const {
  const BriefLock lock(impl_->mutex);
  return impl_->size;
}

}  // namespace stag::nfs::state
