#include "rpc/replay_cache.h"

#include <coroutine>

#include "base/failure.h"
#include "base/siphash.h"

namespace stag::rpc {
namespace {

constexpr std::size_t kShards = 16;
constexpr std::size_t kBuckets = 1024;

// The complete message behind the header, whether its items came inline or apart.
void hash_arguments(SipHash& hash, Bytes payload, std::size_t from, const ReducedItems& items) {
  std::uint32_t moved = 0;  // bytes of the complete stream that are not in the payload
  for (std::size_t i = 0; i < items.size(); ++i) {
    // Its length, count or flag stays in the payload, right before where the item would be.
    const std::uint32_t position = items.position(i);
    if (position < moved || position - moved > payload.size() || position - moved < from + 4)
      continue;
    const std::size_t at = position - moved;
    const Rope& data = items.bytes(i);
    hash.add(payload.subspan(from, at - from));
    for (const Buffer& piece : data.pieces()) hash.add(piece.bytes());
    // RFC 8166 3.4.5.2: the chunk of an opaque may come without its pad; all others are complete.
    static constexpr std::array<std::byte, 4> kPad{};
    hash.add(Bytes(kPad).first(xdr_pad(data.size())));
    moved += static_cast<std::uint32_t>(data.size() + xdr_pad(data.size()));
    from = at;
  }
  hash.add(payload.subspan(from));
}

}  // namespace

ReplayKey replay_key(const Origin& origin, const oncrpc::CallHeader& header, Bytes payload,
                     const ReducedItems& items) {
  SipHash peer(process_sip_key());
  peer.add(bytes_of(origin.peer.host));
  SipHash content(process_sip_key());
  const std::uint32_t flavor = static_cast<std::uint32_t>(header.credential.flavor);
  content.add(std::as_bytes(std::span(&flavor, 1)));
  content.add(header.credential.body);
  // Six words of header, then flavor, length and padded body of credential and verifier.
  const auto padded = [](Bytes body) { return body.size() + xdr_pad(body.size()); };
  const std::size_t arguments = 40 + padded(header.credential.body) + padded(header.verifier.body);
  hash_arguments(content, payload, arguments, items);

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

// False, and nothing copied, when there is no memory for it.
bool copy_to(std::optional<OutgoingReply>& to, const OutgoingReply& reply) noexcept {
  try {
    to = reply;
  } catch (...) {
    trace_exception(Reason::OutOfMemory, "replay cache");
    to.reset();
  }
  return to.has_value();
}

}  // namespace

// In one chain of its bucket and, once done, in the list from the oldest to the newest.
struct ReplayCache::Entry {
  ReplayKey key;
  bool done = false;
  OutgoingReply reply;
  std::size_t cost = 0;
  TimePoint finished;
  Waiter* waiter = nullptr;
  Entry* chain = nullptr;
  Entry* older = nullptr;
  Entry* newer = nullptr;
};

struct ReplayCache::Waiter {
  Loop* loop;
  std::coroutine_handle<> handle;
  Admitted admitted;

  // Without memory for the Reply it is told to drop its Call.
  void resume_with(Admission admission, const OutgoingReply* reply) noexcept {
    admitted.admission = admission;
    if (reply != nullptr && !copy_to(admitted.reply, *reply)) admitted.admission = Admission::Drop;
    loop->post([handle = handle] { handle.resume(); });
  }
};

struct ReplayCache::Shard {
  mutable std::mutex mutex;
  std::array<Entry*, kBuckets> buckets{};
  Entry* oldest = nullptr;
  Entry* newest = nullptr;
  std::size_t bytes = 0;
  std::size_t entries = 0;

  static std::size_t bucket_of(const ReplayKey& key) {
    return load_be<std::uint64_t>(key.digest.data() + 24) / kShards % kBuckets;
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
  void append_done(Entry* entry) {
    entry->older = newest;
    (newest == nullptr ? oldest : newest->newer) = entry;
    newest = entry;
    bytes += entry->cost;
  }
  // Takes out what is too old or too much; the caller frees the chain it returns, unlocked.
  Entry* evict(TimePoint before, std::size_t max_bytes) {
    Entry* evicted = nullptr;
    while (oldest != nullptr && (oldest->finished < before || bytes > max_bytes)) {
      Entry* entry = oldest;
      oldest = entry->newer;
      (oldest == nullptr ? newest : oldest->older) = nullptr;
      bytes -= entry->cost;
      unchain(entry);
      entry->chain = evicted;
      evicted = entry;
    }
    return evicted;
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
  {
    const std::lock_guard lock(shard.mutex);
    evicted.first = shard.evict(before, options_.max_bytes / kShards);
    Entry* entry = shard.find(key);
    if (entry == nullptr) {
      shard.insert(fresh.release());
    } else if (entry->done) {
      waiter.admitted.admission = Admission::Replay;
      waiter.admitted.reply = entry->reply;
    } else {
      displaced = std::exchange(entry->waiter, &waiter);
      decided = false;
    }
  }
  // Not `waiter` any more when it waits: another loop may have decided it already.
  if (displaced != nullptr) displaced->resume_with(Admission::Drop, nullptr);
  return decided;
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
  Awaiter awaiter{*this, key, {&loop, {}, {}}};
  co_return co_await awaiter;
}

void ReplayCache::finish(const ReplayKey& key, Loop& loop,
                         const std::optional<OutgoingReply>& reply) noexcept {
  std::optional<OutgoingReply> copy;
  if (reply) copy_to(copy, *reply);
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
      entry->cost = copy->stream.size() + sizeof(Entry);
      entry->reply = *std::move(copy);
      shard.append_done(entry);
      freed.first = shard.evict(now - options_.max_age, options_.max_bytes / kShards);
    } else {
      shard.unchain(entry);
      entry->chain = nullptr;
      freed.first = entry;
    }
  }
  if (waiter != nullptr)
    waiter->resume_with(reply ? Admission::Replay : Admission::Drop, reply ? &*reply : nullptr);
}

std::size_t ReplayCache::bytes() const {
  std::size_t all = 0;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    all += shards_[i].bytes;
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
