// ContextTable: the security contexts of a server, by handle. It is bounded, and a client that
// makes many contexts pushes out its own: at the limit that one goes which was unused for longest,
// of the address that has most. Contexts whose client has been asked for another token have a bound
// of their own. One whose first token is still being accepted counts nowhere, as it may belong to
// any caller that waits: it is bounded as its call is.
//
// Thread: any. Contexts are found in shards behind short locks; one more lock guards the shares of
// the addresses, which change when a context is made, established or removed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/brief_mutex.h"
#include "base/bytes.h"
#include "rpc/gss/server_context.h"

namespace stag::rpc {

// How many contexts of one kind each address has.
class AddressShares {
 public:
  explicit AddressShares(std::size_t all) : all_(all) {}

  // Adds `context`, and takes out the one that goes for it; null: none.
  ServerContext* add(ServerContext& context);
  // False when it is not there.
  bool remove(ServerContext& context);
  std::size_t size() const { return size_; }

 private:
  using Contexts = std::vector<ServerContext*>;
  struct Ranked {
    Contexts contexts;
    std::uint64_t changed = 0;  // counts changes of all: of equal shares the one left alone longest
  };
  using Share = std::map<std::string, Ranked>::value_type;
  struct Fewer {
    bool operator()(const Share* a, const Share* b) const {
      const std::size_t size = a->second.contexts.size(), other = b->second.contexts.size();
      return size != other ? size < other : a->second.changed > b->second.changed;
    }
  };
  ServerContext* longest_unused(const Share& share, const ServerContext& except) const;

  const std::size_t all_;
  std::size_t size_ = 0;
  std::uint64_t changes_ = 0;
  std::map<std::string, Ranked> shares_;
  std::set<const Share*, Fewer> ranked_;
};

class ContextTable {
 public:
  struct Limits {
    std::size_t all = 8192;
    std::size_t half_open = 512;
  };
  // How long a context may take to be established.
  static constexpr Duration kHalfOpenTime = std::chrono::seconds(60);

  explicit ContextTable(const Limits& limits);

  // Makes a context, which is not in the table yet.
  std::shared_ptr<ServerContext> begin(std::string address, std::unique_ptr<gss::Context> context,
                                       TimePoint now);
  // Its client has been asked for another token: it can be found from now on.
  void add_half_open(const std::shared_ptr<ServerContext>& context);
  // The context is found, and counts, among the established ones. False when it was half-open and
  // has been removed.
  bool establish(const std::shared_ptr<ServerContext>& context, TimePoint now);
  // Null when there is none, or it was removed.
  std::shared_ptr<ServerContext> find(Bytes handle) const;
  void remove(ServerContext& context);

  std::size_t established() const;
  std::size_t half_open() const;

 private:
  static constexpr std::size_t kShards = 64;
  using Map = std::unordered_map<std::uint64_t, std::shared_ptr<ServerContext>>;
  struct Shard {
    mutable BriefMutex mutex;
    Map contexts;
  };
  Shard& shard_of(std::uint64_t id) { return shards_[id % kShards]; }
  void add(const std::shared_ptr<ServerContext>& context, AddressShares& to);
  // Yields what was removed, to be dropped without a lock.
  std::shared_ptr<ServerContext> take_out(std::uint64_t id);
  // `by`: for which.
  void evict(std::uint64_t id, const ServerContext& by) noexcept;
  void sweep(Shard& shard, TimePoint now);

  std::array<Shard, kShards> shards_;
  std::atomic<std::uint64_t> last_id_{0};
  mutable BriefMutex mutex_;  // of the shares
  AddressShares half_open_;
  AddressShares established_;
};

}  // namespace stag::rpc
