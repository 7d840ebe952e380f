#include "rpc/replay_cache.h"

#include <algorithm>
#include <atomic>
#include <coroutine>

#include "base/failure.h"
#include "base/siphash.h"

namespace stag::rpc {
namespace {

constexpr std::size_t kShards = 16;
constexpr std::size_t kBuckets = 1024;
constexpr std::size_t kShares = 256;     // of a shard
constexpr std::size_t kLongestPart = 8;  // of a shard's bytes, in one entry

// All arguments, whether they came inline or apart.
void hash_arguments(SipHash& hash, const PlainArguments& arguments) {
  const Bytes stream = arguments.stream;
  std::size_t from = arguments.offset;
  std::uint32_t moved = 0;  // bytes of the complete stream that are not in this one
  const std::size_t items = arguments.items == nullptr ? 0 : arguments.items->size();
  for (std::size_t i = 0; i < items; ++i) {
    // Its length, count or flag stays in the stream, right before where the item would be.
    const std::uint32_t position = arguments.items->position(i);
    if (position < moved || position - moved > stream.size() || position - moved < from + 4)
      continue;
    const std::size_t at = position - moved;
    const Rope& data = arguments.items->bytes(i);
    hash.add(stream.subspan(from, at - from));
    for (const Buffer& piece : data.pieces()) hash.add(piece.bytes());
    // RFC 8166 3.4.5.2: the chunk of an opaque may come without its pad; all others are complete.
    static constexpr std::array<std::byte, 4> kPad{};
    hash.add(Bytes(kPad).first(xdr_pad(data.size())));
    moved += static_cast<std::uint32_t>(data.size() + xdr_pad(data.size()));
    from = at;
  }
  hash.add(stream.subspan(from));
}

// A proven name identifies the caller; the ids that it is mapped to may change.
void hash_principal(SipHash& hash, const Caller& caller) {
  const auto add = [&hash](auto word) { hash.add(std::as_bytes(std::span(&word, 1))); };
  add(caller.flavor);
  if (caller.name != nullptr) {
    add(caller.name->size());
    return hash.add(bytes_of(*caller.name));
  }
  add(caller.uid);
  add(caller.gid);
  add(caller.gids.size());
  for (const std::uint32_t gid : caller.gids) add(gid);
}

}  // namespace

ReplayKey replay_key(const Origin& origin, const oncrpc::CallHeader& header, const Caller& caller,
                     const PlainArguments& arguments) {
  SipHash peer(process_sip_key());
  peer.add(bytes_of(origin.peer.host));
  SipHash content(process_sip_key());
  hash_principal(content, caller);
  hash_arguments(content, arguments);

  ReplayKey key;
  std::byte* at = key.digest.data();
  for (std::uint32_t word : {header.xid, header.program, header.version, header.procedure}) {
    store_be(at, word);
    at += 4;
  }
  store_be(at, peer.finish());
  store_be(at + 8, content.finish());
  return key;
}

namespace {

// Small results lie in the smallest Block an Encoder takes.
std::size_t cost_of(const CallResults& results) {
  return std::max<std::size_t>(results.results.block_bytes(), 512);
}

// What a duplicate gets in place of results that are not there.
CallResults without_results() {
  return {oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::SYSTEM_ERR), {}};
}

// With bytes of its own: what is kept keeps no memory but that which it costs. False, and nothing
// copied, when there is no memory for it.
bool copy_to(std::optional<CallResults>& to, const CallResults& results) noexcept {
  try {
    to = results;
    to->results.unshare();
  } catch (...) {
    trace_exception(Reason::OutOfMemory, "replay cache");
    to.reset();
  }
  return to.has_value();
}

}  // namespace

// In one chain of its bucket and, once done, in two lists from the oldest to the newest: of all,
// and of those of its share.
struct ReplayCache::Entry {
  struct Links {
    Entry* older = nullptr;
    Entry* newer = nullptr;
  };
  ReplayKey key;
  bool done = false;
  CallResults results;
  std::size_t cost = 0;
  TimePoint finished;
  Waiter* waiter = nullptr;
  Entry* chain = nullptr;
  Links of_all;
  Links of_share;
};

// The entries that client addresses of one hash keep in a shard: mostly one address.
struct ReplayCache::Share {
  Entry* oldest = nullptr;
  Entry* newest = nullptr;
  std::size_t bytes = 0;
};

// Any thread may decide, and posts to the loop of the Call that waits. A loop that is full may have
// no memory for that: then the Call finds the decision when it next looks.
struct ReplayCache::Waiter {
  static constexpr Duration kLooks = std::chrono::seconds(10);

  explicit Waiter(Loop& on) : loop(&on) {}

  Loop* const loop;
  std::coroutine_handle<> handle;
  Admitted admitted;
  bool looks = false;
  Timer next_look;
  std::atomic<bool> not_posted{false};

  void look_later() {
    next_look = loop->after(kLooks, [this] {
      if (not_posted.load(std::memory_order_acquire)) return handle.resume();
      look_later();
    });
    looks = true;
  }

  // A client of version 4 of NFS waits for ever for a Call that is dropped while its connection is
  // there (RFC 7530 3.1.1): without memory for the results it is told so.
  void resume_with(Admission admission, const CallResults* results) noexcept {
    admitted.admission = admission;
    if (results != nullptr && !copy_to(admitted.results, *results))
      admitted.results = without_results();
    try {
      loop->post([handle = handle] { handle.resume(); });
    } catch (...) {
      trace_exception(Reason::OutOfMemory, "replay cache");
      not_posted.store(true, std::memory_order_release);
    }
  }
};

struct ReplayCache::Shard {
  mutable std::mutex mutex;
  std::array<Entry*, kBuckets> buckets{};
  std::array<Share, kShares> shares{};
  Share all;
  std::size_t entries = 0;

  static std::size_t bucket_of(const ReplayKey& key) {
    return load_be<std::uint64_t>(key.digest.data() + 24) / kShards % kBuckets;
  }
  Share& share_of(const ReplayKey& key) {
    return shares[load_be<std::uint64_t>(key.digest.data() + 16) % kShares];
  }

  Entry* find(const ReplayKey& key) {
    Entry* entry = buckets[bucket_of(key)];
    while (entry != nullptr && entry->key != key) entry = entry->chain;
    return entry;
  }
  void insert(Entry* entry) {
    Entry*& bucket = buckets[bucket_of(entry->key)];
    entry->chain = bucket;
    bucket = entry;
    ++entries;
  }
  void unchain(Entry* entry) {
    Entry** at = &buckets[bucket_of(entry->key)];
    while (*at != entry) at = &(*at)->chain;
    *at = entry->chain;
    --entries;
  }
  static void append(Share& list, Entry* entry, Entry::Links Entry::*links) {
    (entry->*links).older = list.newest;
    (list.newest == nullptr ? list.oldest : (list.newest->*links).newer) = entry;
    list.newest = entry;
    list.bytes += entry->cost;
  }
  static void remove(Share& list, Entry* entry, Entry::Links Entry::*links) {
    const Entry::Links at = entry->*links;
    (at.older == nullptr ? list.oldest : (at.older->*links).newer) = at.newer;
    (at.newer == nullptr ? list.newest : (at.newer->*links).older) = at.older;
    list.bytes -= entry->cost;
  }
  void append_done(Entry* entry) {
    append(all, entry, &Entry::of_all);
    append(share_of(entry->key), entry, &Entry::of_share);
  }
  // Takes a done one out; the caller frees the chain, unlocked.
  void evict(Entry* entry, Entry*& evicted) {
    remove(all, entry, &Entry::of_all);
    remove(share_of(entry->key), entry, &Entry::of_share);
    unchain(entry);
    entry->chain = std::exchange(evicted, entry);
  }
  void evict_old(TimePoint before, Entry*& evicted) {
    while (all.oldest != nullptr && all.oldest->finished < before) evict(all.oldest, evicted);
  }
  // Called after `newest` was added: its address keeps no more bytes than are free, apart from this
  // entry. If there are so many addresses that not even this entry fits, the oldest entry of all is
  // removed.
  void evict_for(Entry* newest, std::size_t max_bytes, Entry*& evicted) {
    Share& own = share_of(newest->key);
    const auto beyond = [&] { return all.bytes > max_bytes || own.bytes > max_bytes - all.bytes; };
    while (own.oldest != newest && beyond()) evict(own.oldest, evicted);
    while (all.oldest != nullptr && all.bytes > max_bytes) evict(all.oldest, evicted);
  }
};

namespace {
template <class Entry>
void free_chain(Entry* entry) {
  while (entry != nullptr) delete std::exchange(entry, entry->chain);
}
// Entries that were taken out, freed at the end of the scope: without the lock, whatever happens.
template <class Entry>
struct FreedChain {
  FreedChain() = default;
  FreedChain(const FreedChain&) = delete;
  ~FreedChain() { free_chain(first); }
  Entry* first = nullptr;
};
}  // namespace

ReplayCache::ReplayCache(ReplayCacheOptions options)
    : options_(options), shards_(std::make_unique<Shard[]>(kShards)) {}

ReplayCache::~ReplayCache() {
  for (std::size_t i = 0; i < kShards; ++i)
    for (Entry* bucket : shards_[i].buckets) free_chain(bucket);
}

ReplayCache::Shard& ReplayCache::shard_of(const ReplayKey& key) const {
  return shards_[load_be<std::uint64_t>(key.digest.data() + 24) % kShards];
}

bool ReplayCache::admit_now(const ReplayKey& key, Waiter& waiter) {
  auto fresh = std::make_unique<Entry>();
  fresh->key = key;
  const TimePoint before = waiter.loop->now() - options_.max_age;
  Shard& shard = shard_of(key);
  FreedChain<Entry> evicted;
  Waiter* displaced = nullptr;
  bool decided = true;
  const bool looks = waiter.looks;
  {
    const std::lock_guard lock(shard.mutex);
    shard.evict_old(before, evicted.first);
    Entry* entry = shard.find(key);
    if (entry == nullptr) {
      shard.insert(fresh.release());
    } else if (entry->done) {
      waiter.admitted.admission = Admission::Replay;
      waiter.admitted.results = entry->results;
    } else {
      decided = false;
      if (looks) displaced = std::exchange(entry->waiter, &waiter);
    }
  }
  // Not `waiter` any more when it waits: another loop may have decided it already.
  if (displaced != nullptr) displaced->resume_with(Admission::Drop, nullptr);
  if (decided || looks) return decided;
  // Without the lock, for it asks for memory.
  waiter.look_later();
  return admit_now(key, waiter);
}

Task<ReplayCache::Admitted> ReplayCache::admit(const ReplayKey& key, Loop& loop) {
  struct Awaiter {
    ReplayCache& cache;
    const ReplayKey& key;
    Waiter waiter;
    bool await_ready() const { return false; }
    bool await_suspend(std::coroutine_handle<> handle) {
      waiter.handle = handle;
      return !cache.admit_now(key, waiter);
    }
    Admitted await_resume() { return std::move(waiter.admitted); }
  };
  Awaiter awaiter{*this, key, Waiter(loop)};
  co_return co_await awaiter;
}

void ReplayCache::finish(const ReplayKey& key, Loop& loop,
                         const std::optional<CallResults>& results) noexcept {
  std::optional<CallResults> copy;
  if (results && results->results.size() > longest())
    copy = without_results();
  else if (results)
    copy_to(copy, *results);
  const TimePoint now = loop.now();
  Shard& shard = shard_of(key);
  FreedChain<Entry> freed;
  Waiter* waiter = nullptr;
  {
    const std::lock_guard lock(shard.mutex);
    Entry* entry = shard.find(key);
    STAG_CHECK(entry != nullptr && !entry->done);
    waiter = std::exchange(entry->waiter, nullptr);
    if (copy) {
      entry->done = true;
      entry->finished = now;
      entry->cost = cost_of(*copy) + sizeof(Entry);
      entry->results = *std::move(copy);
      shard.append_done(entry);
      shard.evict_old(now - options_.max_age, freed.first);
      shard.evict_for(entry, options_.max_bytes / kShards, freed.first);
    } else if (results || waiter == nullptr) {
      shard.unchain(entry);
      entry->chain = nullptr;
      freed.first = entry;
    }
  }
  if (waiter != nullptr)
    waiter->resume_with(results ? Admission::Replay : Admission::Run,
                        results ? &*results : nullptr);
}

std::size_t ReplayCache::longest() const {
  return options_.max_bytes / kShards / kLongestPart;
}

std::size_t ReplayCache::bytes() const {
  std::size_t all = 0;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    all += shards_[i].all.bytes;
  }
  return all;
}

std::size_t ReplayCache::entries() const {
  std::size_t all = 0;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    all += shards_[i].entries;
  }
  return all;
}

}  // namespace stag::rpc
