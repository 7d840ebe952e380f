#include "nfs/state/copy_notices.h"

#include <algorithm>
#include <span>

namespace stag::nfs::state {

// Of another form than those of opens, which begin with bits of the epoch itself. A client that
// knows one may read by it, so no client can derive others from those that it was given.
CopyNotices::Name CopyNotices::next_name() {
  const std::uint64_t number = ++last_;
  SipHash hash(options_.key);
  hash.add(bytes_of("COPY_NOTIFY"));
  hash.add(std::as_bytes(std::span(&number, 1)));
  Name name{};
  store_be(name.data(), static_cast<std::uint16_t>(~options_.epoch));
  store_be(name.data() + 4, hash.finish());
  return name;
}

StateidResult CopyNotices::notify(const CopyNoticeArgs& args, const LifePtr& life, TimePoint now) {
  const Status readable = files_.may_read(args.file, args.source, *life);
  if (readable != Status::Ok) return {readable, {}};
  const StateidResult added = add(args, life, now);
  if (added.limit == Limit::None) return added;
  end_void(added.limit == Limit::Client ? of_client(*life) : next_portion());
  return add(args, life, now);
}

Limit CopyNotices::limit_of(ClientId client) const {
  std::uint32_t count = 0;
  for (auto at = first_of(client); is_of(at, client); ++at) ++count;
  if (count >= options_.limits.of_client) return Limit::Client;
  return notices_.size() < options_.limits.all ? Limit::None : Limit::All;
}

StateidResult CopyNotices::add(const CopyNoticeArgs& args, const LifePtr& life, TimePoint now) {
  const Name name = next_name();
  const Notice notice{args, life, now + options_.lease};
  Notices made{{name, notice}};
  Requests asked{{request_of(notice), name}};
  const BriefLock lock(mutex_);
  if (life->ended()) return {Status::Expired, {}};
  const auto known = requests_.find(request_of(notice));
  if (known != requests_.end()) {
    notices_.find(known->second)->second.until = notice.until;
    return {Status::Ok, {1, known->second}};
  }
  if (const Limit limit = limit_of(life->clientid); limit != Limit::None)
    return {Status::Delay, {}, limit};
  notices_.merge(made);
  requests_.merge(asked);
  return {Status::Ok, {1, name}};
}

// A destination that runs Linux reads with seqid 0, as every client of a session may (RFC 8881
// 8.2.2).
std::optional<CopyNotices::Notice> CopyNotices::renew(const FileKey& file, const Stateid& stateid,
                                                      TimePoint now) {
  const BriefLock lock(mutex_);
  const auto found = notices_.find(stateid.other);
  if (found == notices_.end() || stateid.seqid > 1) return std::nullopt;
  Notice& notice = found->second;
  if (notice.args.file != file || notice.until <= now) return std::nullopt;
  notice.until = now + options_.lease;
  return notice;
}

// What the client does with its open in the meantime gives that a later seqid.
bool CopyNotices::stands(const Notice& notice) const {
  const Stateid latest{0, notice.args.source.other};
  return !notice.life->ended() &&
         files_.may_read(notice.args.file, latest, *notice.life) == Status::Ok;
}

bool CopyNotices::admits(const FileKey& file, const Stateid& stateid, TimePoint now) {
  const std::optional<Notice> notice = renew(file, stateid, now);
  if (!notice) return false;
  if (stands(*notice)) return true;
  end({stateid.other, *notice});
  return false;
}

bool CopyNotices::cancel(const FileKey& file, const Stateid& stateid, const Life& life) {
  Removed removed;
  const BriefLock lock(mutex_);
  const auto found = notices_.find(stateid.other);
  if (found == notices_.end() || stateid.seqid != 1) return false;
  const Notice& notice = found->second;
  if (notice.life->clientid != life.clientid || notice.args.file != file) return false;
  remove(found, removed);
  return true;
}

void CopyNotices::end(const Notices::value_type& judged) {
  Removed removed;
  const BriefLock lock(mutex_);
  const auto found = notices_.find(judged.first);
  if (found != notices_.end() && found->second.until == judged.second.until) remove(found, removed);
}

void CopyNotices::end_void(const Some& some) {
  for (const auto& each : some)
    if (!stands(each.second)) end(each);
}

CopyNotices::Some CopyNotices::of_client(const Life& life) const {
  Some own;
  own.reserve(options_.limits.of_client);
  const BriefLock lock(mutex_);
  for (auto at = first_of(life.clientid); is_of(at, life.clientid); ++at)
    own.push_back(*notices_.find(at->second));
  return own;
}

CopyNotices::Some CopyNotices::next_portion() {
  Some some;
  some.reserve(options_.limits.of_client);
  const BriefLock lock(mutex_);
  const std::size_t count = std::min(some.capacity(), notices_.size());
  for (auto at = notices_.upper_bound(looked_at_); some.size() < count; ++at) {
    if (at == notices_.end()) at = notices_.begin();
    some.push_back(*at);
    looked_at_ = at->first;
  }
  return some;
}

void CopyNotices::release(const Life& life) {
  Removed removed;
  const BriefLock lock(mutex_);
  for (auto at = first_of(life.clientid); is_of(at, life.clientid); at = first_of(life.clientid))
    remove(notices_.find(at->second), removed);
}

void CopyNotices::expire(TimePoint now) {
  Removed removed;
  const BriefLock lock(mutex_);
  for (auto at = notices_.begin(); at != notices_.end();)
    at = at->second.until <= now ? remove(at, removed) : std::next(at);
}

std::size_t CopyNotices::size() const {
  const BriefLock lock(mutex_);
  return notices_.size();
}

CopyNotices::Notices::iterator CopyNotices::remove(Notices::iterator notice, Removed& removed) {
  const auto next = std::next(notice);
  removed.requests.insert(requests_.extract(request_of(notice->second)));
  removed.notices.insert(notices_.extract(notice));
  return next;
}

}  // namespace stag::nfs::state
