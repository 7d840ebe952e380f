#include "rpc/gss/context_table.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <new>
#include <string>

#include "base/inline_vector.h"
#include "base/siphash.h"

namespace stag::rpc {
namespace {

// The number of a context and a proof that this process has given it: a handle of another server,
// or of this one before it was restarted, is unknown.
ServerContext::Handle handle_of(std::uint64_t id) {
  ServerContext::Handle handle;
  store_be(handle.data(), id);
  store_be(handle.data() + 8, siphash(process_sip_key(), Bytes(handle).first(8)));
  return handle;
}

}  // namespace

// The set compares sizes, so a share is taken out of it before its size changes. Nodes are kept:
// only a new address asks for memory.
ServerContext* AddressShares::add(ServerContext& context) {
  const auto at = shares_.try_emplace(context.address).first;
  Share& share = *at;
  Contexts& contexts = share.second.contexts;
  contexts.reserve(contexts.size() + 1);
  if (contexts.empty()) {
    share.second.changed = ++changes_;
    ranked_.insert(&share);
  }
  auto node = ranked_.extract(&share);
  contexts.push_back(&context);
  share.second.changed = ++changes_;
  ranked_.insert(std::move(node));
  ++size_;
  ServerContext* victim = nullptr;
  for (auto most = ranked_.rbegin(); victim == nullptr && size_ > all_ && most != ranked_.rend();
       ++most)
    victim = longest_unused(**most, context);
  if (victim != nullptr) remove(*victim);
  return victim;
}

bool AddressShares::remove(ServerContext& context) {
  const auto at = shares_.find(context.address);
  if (at == shares_.end()) return false;
  Contexts& contexts = at->second.contexts;
  const auto found = std::ranges::find(contexts, &context);
  if (found == contexts.end()) return false;
  auto node = ranked_.extract(&*at);
  contexts.erase(found);
  at->second.changed = ++changes_;
  --size_;
  if (contexts.empty())
    shares_.erase(at);
  else
    ranked_.insert(std::move(node));
  return true;
}

// Of an address that has `except` alone nothing can go.
ServerContext* AddressShares::longest_unused(const Share& share,
                                             const ServerContext& except) const {
  ServerContext* oldest = nullptr;
  for (ServerContext* each : share.second.contexts)
    if (each != &except && (oldest == nullptr || each->last_used() < oldest->last_used()))
      oldest = each;
  return oldest;
}

ContextTable::ContextTable(const Limits& limits)
    : half_open_(limits.half_open), established_(limits.all) {
  for (Shard& shard : shards_) shard.contexts.reserve(2 * limits.all / kShards);
}

std::shared_ptr<ServerContext> ContextTable::begin(std::string address,
                                                   std::unique_ptr<gss::Context> context,
                                                   TimePoint now) {
  auto made = std::make_shared<ServerContext>(std::move(address), std::move(context), now);
  made->id = last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
  made->handle = handle_of(made->id);
  sweep(shard_of(made->id), now);
  return made;
}

void ContextTable::add_half_open(const std::shared_ptr<ServerContext>& context) {
  add(context, half_open_);
  context->half_open = true;
}

bool ContextTable::establish(const std::shared_ptr<ServerContext>& context, TimePoint now) {
  // Else the newest, whose first call is still on its way, would be unused for longest.
  context->used(now);
  if (!context->half_open) {
    add(context, established_);
  } else {
    std::uint64_t victim = 0;
    {
      const BriefLock held(mutex_);
      if (!half_open_.remove(*context)) return false;
      if (const ServerContext* const evicted = established_.add(*context)) victim = evicted->id;
    }
    if (victim != 0) evict(victim, *context);
  }
  context->established.store(true, std::memory_order_release);
  return true;
}

void ContextTable::add(const std::shared_ptr<ServerContext>& context, AddressShares& to) {
  Map one;
  one.emplace(context->id, context);
  auto node = one.extract(context->id);
  Shard& shard = shard_of(context->id);
  {
    const BriefLock held(shard.mutex);
    shard.contexts.insert(std::move(node));
  }
  std::uint64_t victim = 0;
  try {
    const BriefLock held(mutex_);
    if (const ServerContext* const evicted = to.add(*context)) victim = evicted->id;
  } catch (...) {
    take_out(context->id);
    throw;
  }
  if (victim != 0) evict(victim, *context);
}

std::shared_ptr<ServerContext> ContextTable::find(Bytes handle) const {
  if (handle.size() != sizeof(ServerContext::Handle)) return nullptr;
  const auto id = load_be<std::uint64_t>(handle.data());
  const Shard& shard = shards_[id % kShards];
  const BriefLock held(shard.mutex);
  const auto found = shard.contexts.find(id);
  if (found == shard.contexts.end() || !std::ranges::equal(found->second->handle, handle))
    return nullptr;
  return found->second;
}

void ContextTable::remove(ServerContext& context) {
  const std::shared_ptr<ServerContext> removed = take_out(context.id);
  if (removed == nullptr) return;
  const BriefLock held(mutex_);
  if (!half_open_.remove(context)) established_.remove(context);
}

std::shared_ptr<ServerContext> ContextTable::take_out(std::uint64_t id) {
  Shard& shard = shard_of(id);
  Map::node_type node;
  const BriefLock held(shard.mutex);
  node = shard.contexts.extract(id);
  return node.empty() ? nullptr : std::move(node.mapped());
}

// Called after it was taken out of its share.
void ContextTable::evict(std::uint64_t id, const ServerContext& by) noexcept {
  const std::shared_ptr<ServerContext> evicted = take_out(id);
  if (evicted == nullptr) return;
  try {
    std::array<char, sizeof "xid 0x12345678"> xid;
    std::snprintf(xid.data(), xid.size(), "xid 0x%08x", static_cast<unsigned>(by.xid));
    trace(Reason::GssContextEvicted, evicted->address,
          "for one of " + by.address + ", " + xid.data());
  } catch (const std::bad_alloc&) {
    trace(Reason::GssContextEvicted, evicted->address);
  }
}

// No client asks for a context again once it is gone, so each new context has the others of its
// shard looked at.
void ContextTable::sweep(Shard& shard, TimePoint now) {
  InlineVector<std::shared_ptr<ServerContext>, 8> over;
  {
    const BriefLock held(shard.mutex);
    for (const auto& [id, context] : shard.contexts) {
      const bool established = context->established.load(std::memory_order_acquire);
      const TimePoint end = established ? context->expires : context->last_used() + kHalfOpenTime;
      if (end < now) over.push_back(context);
      if (over.size() == 8) break;
    }
  }
  for (const std::shared_ptr<ServerContext>& context : over) remove(*context);
}

std::size_t ContextTable::established() const {
  const BriefLock held(mutex_);
  return established_.size();
}

std::size_t ContextTable::half_open() const {
  const BriefLock held(mutex_);
  return half_open_.size();
}

}  // namespace stag::rpc
