// What an administrator sees of the clients of version 4 and what they hold, and takes away.
//
// Thread: any, without disturbing the loops that serve: everything is looked at one client, or one
// page, at a time. The Nfs4Server outlives it, and outlives what expire() has begun.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/task.h"
#include "nfs/state/listing.h"
#include "nfs/v4/compound/shared_state.h"

namespace stag::nfs::nfs4 {

struct ListedClient {
  state::ClientInfo info;
  state::HeldCounts held;
  std::string_view callbacks;  // none, unknown, up, down, fault
};

// An owner that is recorded, and has not said that it is done: the grace period waits for it.
struct AwaitedClient {
  recovery::ClientOwner owner;
  // Of that owner, since this server has the records; nullopt: it has not come yet.
  std::optional<state::ClientInfo> client;
  bool claimed = false;  // it has reclaimed something in this period
};

class Administration {
 public:
  explicit Administration(SharedState& shared) : shared_(shared) {}

  Duration lease() const { return std::chrono::seconds(shared_.options.lease_seconds); }
  // The clients of one of Clients::kShards shards, as they are one after the other.
  std::vector<ListedClient> clients(std::uint32_t shard, TimePoint now) const;
  std::optional<ListedClient> client(state::ClientId id, TimePoint now) const;
  // As Files::list().
  bool states(state::StateCursor& at, const state::StateFilter& filter,
              state::StatePage& page) const {
    return shared_.files.list(at, filter, page);
  }
  // The path of the export that a file was reached by, also of one that was removed; nullopt when
  // nobody knows it any more.
  std::optional<std::string> export_of(const state::FileKey& file) const;
  // Whether the file is reached by that export still.
  bool is_served(const state::FileKey& file) const {
    return shared_.server.exports.current()->serves(file);
  }
  // Of paths in normal form.
  bool is_served(const std::string& path) const;
  bool was_removed(const std::string& path) const;

  // Ends a client with all it holds; it may not claim it after a restart, either. `done` runs once,
  // on whatever thread.
  void expire(state::ClientId id, TimePoint now, UniqueFunction<void(EndedByAdmin)> done) {
    shared_.end_by_admin(id, now, std::move(done));
  }
  // `most` of them at most; empty outside of a grace period.
  std::vector<AwaitedClient> awaited(std::size_t most, TimePoint now) const;
  // All of them.
  std::size_t count_awaited() const;
  // Ends the grace period as soon as the records are written; whoever is awaited then reclaims
  // nothing any more. False: there is none.
  bool end_grace(TimePoint now) { return shared_.options.grace->end_by_administrator(now); }
  bool grace() const { return shared_.options.grace->active(); }
  bool holds(const state::Stateid& stateid) const {
    return shared_.files.holder(stateid) != nullptr;
  }
  // Takes away an open with its locks, a lock or a delegation, whatever the seqid; its client may
  // not claim it after a restart. False: there is none, or the records cannot be written. Blocking.
  bool revoke(const state::Stateid& stateid);
  // As that, without blocking `loop`.
  Task<bool> revoke(state::Stateid stateid, Loop& loop);

 private:
  std::optional<ListedClient> look(state::ClientId id, TimePoint now) const;

  SharedState& shared_;
};

}  // namespace stag::nfs::nfs4
