#include "nfs/v4/administration.h"

#include <algorithm>
#include <coroutine>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "nfs/v4/callback/back_channel.h"

namespace stag::nfs::nfs4 {

namespace {

// What was found out about the ways back to a client whose connection is there.
std::string_view verdict_of(const state::Clients& clients, state::ClientId id) {
  std::string_view found = "unknown";
  for (const auto& [sessionid, path] : clients.callback_paths(id)) {
    switch (std::static_pointer_cast<BackChannel>(path)->verdict()) {
      case BackChannel::Verdict::Works:
        return "up";
      case BackChannel::Verdict::Fails:
        found = "down";
        break;
      default:
        break;
    }
  }
  return found;
}

std::string_view callbacks_of(const state::Clients& clients, const state::ClientInfo& info) {
  switch (info.callbacks) {
    case state::CallbackState::None:
      return "none";
    case state::CallbackState::Bound:
      return verdict_of(clients, info.clientid);
    case state::CallbackState::Lost:
      return "down";
    case state::CallbackState::Fault:
      break;
  }
  return "fault";
}

}  // namespace

std::optional<ListedClient> Administration::look(state::ClientId id, TimePoint now) const {
  auto info = shared_.clients.info(id, now);
  if (!info) return std::nullopt;
  // One that the server has not noticed yet: leases run out when a client calls.
  if (info->phase == state::Life::Phase::Active && info->confirmed && info->idle > lease())
    info->phase = state::Life::Phase::Lapsed;
  const std::string_view callbacks = callbacks_of(shared_.clients, *info);
  return ListedClient{*std::move(info), {}, callbacks};
}

std::vector<ListedClient> Administration::clients(std::uint32_t shard, TimePoint now) const {
  std::vector<ListedClient> found;
  std::vector<state::ClientId> ids;
  for (const state::ClientId id : shared_.clients.ids(shard))
    if (auto client = look(id, now)) {
      ids.push_back(id);
      found.push_back(*std::move(client));
    }
  std::vector<state::HeldCounts> counts(ids.size());
  shared_.files.count_held(ids, counts);
  for (std::size_t i = 0; i < found.size(); ++i) found[i].held = counts[i];
  return found;
}

std::optional<ListedClient> Administration::client(state::ClientId id, TimePoint now) const {
  auto found = look(id, now);
  if (found) shared_.files.count_held({&id, 1}, {&found->held, 1});
  return found;
}

std::size_t Administration::count_awaited() const {
  const recovery::Recovery* const recovery = shared_.options.recovery;
  return recovery == nullptr || !grace() ? 0 : recovery->awaited(0).all;
}

std::vector<AwaitedClient> Administration::awaited(std::size_t most, TimePoint now) const {
  std::vector<AwaitedClient> found;
  if (count_awaited() == 0) return found;
  std::map<recovery::ClientOwner, std::size_t> places;
  for (recovery::ClientOwner& owner : shared_.options.recovery->awaited(most).owners) {
    places.emplace(owner, found.size());
    found.push_back({std::move(owner), std::nullopt, false});
  }
  for (std::uint32_t shard = 0; shard < state::Clients::kShards; ++shard)
    for (const state::ClientId id : shared_.clients.ids(shard)) {
      auto info = shared_.clients.info(id, now);
      const state::LifePtr life = shared_.clients.life(id);
      if (!info || life == nullptr || !info->confirmed) continue;
      const auto place = places.find({info->co_ownerid, info->principal});
      if (place == places.end()) continue;
      AwaitedClient& of = found[place->second];
      of.client = std::move(info);
      of.claimed = shared_.options.grace->has_claimed(life->claimed_in);
    }
  return found;
}

bool Administration::revoke(const state::Stateid& stateid) {
  const state::LifePtr life = shared_.files.holder(stateid);
  if (life == nullptr) return false;
  bool revoked = false;
  shared_.revoke(*life, [&] { revoked = shared_.files.revoke(stateid) == state::Status::Ok; });
  return revoked;
}

namespace {

// Its end resumes the caller that waits for the job, be that done, refused or given up.
struct Waiting {
  Waiting(Loop& on, std::coroutine_handle<> who) : loop(on), waiter(who) {}
  Waiting(const Waiting&) = delete;
  ~Waiting() {
    loop.post([waiter = waiter] { waiter.resume(); });
  }
  Loop& loop;
  const std::coroutine_handle<> waiter;
};

}  // namespace

Task<bool> Administration::revoke(state::Stateid stateid, Loop& loop) {
  struct Awaiter {
    Administration self;
    recovery::Recovery& recovery;
    const state::Stateid& stateid;
    Loop& loop;
    bool revoked = false;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) {
      const auto waiting = std::make_shared<Waiting>(loop, waiter);
      try {
        static_cast<void>(recovery.offload([this, waiting] { revoked = self.revoke(stateid); }));
      } catch (const std::bad_alloc&) {
        // As when it is refused.
      }
    }
    bool await_resume() const { return revoked; }
  };
  recovery::Recovery* const recovery = shared_.options.recovery;
  if (recovery == nullptr) co_return revoke(stateid);
  Awaiter awaiter{*this, *recovery, stateid, loop};
  co_return co_await awaiter;
}

std::optional<std::string> Administration::export_of(const state::FileKey& file) const {
  const auto exports = shared_.server.exports.current();
  const std::string* const path = exports->path_of(file.via);
  if (path == nullptr) return std::nullopt;
  return *path;
}

bool Administration::is_served(const std::string& path) const {
  const auto exports = shared_.server.exports.current();
  return std::ranges::count(exports->all(), path, &Export::path) != 0;
}

bool Administration::was_removed(const std::string& path) const {
  const auto exports = shared_.server.exports.current();
  return std::ranges::count(exports->removed(), path, &Export::path) != 0;
}

}  // namespace stag::nfs::nfs4
