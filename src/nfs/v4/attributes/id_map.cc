#include "nfs/v4/attributes/id_map.h"

#include <mutex>
#include <utility>

#include "nfs/acl/owner_name.h"
#include "nfs/export/answers.h"

namespace stag::nfs::nfs4 {

struct IdMap::State {
  static constexpr Duration kKeep = std::chrono::minutes(10);
  static constexpr Duration kKeepUnknown = std::chrono::minutes(1);
  // How long a call waits for an answer.
  static constexpr Duration kPatience = std::chrono::seconds(5);

  State(std::unique_ptr<NameService> service, std::size_t entries)
      : names(std::move(service)), by_id(entries), by_name(entries) {}

  using ById = std::pair<IdKind, std::uint32_t>;
  using ByName = std::pair<IdKind, std::string>;

  TimePoint until(TimePoint now, bool known) const { return now + (known ? kKeep : kKeepUnknown); }
  // True: this is known, and not too old.
  template <class Known, class Key>
  bool is_fresh(const Known& known, const Key& key, TimePoint now) const {
    const std::lock_guard lock(mutex);
    const auto* const answer = known.find(key);
    return answer != nullptr && now < answer->until;
  }
  // Both block, and are called by one thread at a time. A question that waited in the queue behind
  // the same one finds it answered.
  void ask(const ById& key, TimePoint now) {
    if (is_fresh(by_id, key, now)) return;
    auto name = names->name_of(key.first, key.second);
    if (name && name->size() > kLongestName) name.reset();
    const TimePoint end = until(now, name.has_value());
    const std::lock_guard lock(mutex);
    by_id.keep(key, {std::move(name), end});
  }
  void ask(const ByName& key, TimePoint now) {
    if (is_fresh(by_name, key, now)) return;
    const auto id = names->id_of(key.first, key.second);
    const TimePoint end = until(now, id.has_value());
    const std::lock_guard lock(mutex);
    by_name.keep(key, {id, end});
  }

  const std::unique_ptr<NameService> names;
  mutable std::mutex mutex;
  Answers<ById, std::string> by_id;
  Answers<ByName, std::uint32_t> by_name;
};

IdMap::IdMap(std::unique_ptr<NameService> names, std::shared_ptr<Executor> worker,
             const IdMapOptions& options)
    : gives_names_(options.gives_names),
      state_(std::make_shared<State>(std::move(names), options.entries)),
      worker_(std::move(worker)) {}

IdMap::~IdMap() = default;

Task<Result<std::uint32_t, v4::nfsstat4>> IdMap::id_of(IdKind kind, std::string name, Loop& loop,
                                                       const void* client) {
  const State::ByName key{kind, std::move(name)};
  if (key.second.size() > kLongestName || key.second.find('\0') != key.second.npos)
    co_return Failure{v4::NFS4ERR_BADOWNER};
  const TimePoint now = loop.now();
  if (!state_->is_fresh(state_->by_name, key, now)) {
    Asked asked{loop, *worker_, client, State::kPatience,
                [state = state_, key, now] { state->ask(key, now); }};
    co_await asked;
  }
  const std::lock_guard lock(state_->mutex);
  const auto* const answer = state_->by_name.find(key);
  if (answer == nullptr) co_return Failure{v4::NFS4ERR_DELAY};
  if (!answer->value) co_return Failure{v4::NFS4ERR_BADOWNER};
  co_return *answer->value;
}

Task<void> IdMap::learn(std::vector<IdName> ids, Loop& loop, const void* client) {
  const TimePoint now = loop.now();
  std::erase_if(ids, [&](const IdName& each) { return knows(each.kind, each.id, now); });
  if (ids.empty()) co_return;
  Asked asked{loop, *worker_, client, State::kPatience, [state = state_, ids, now] {
                for (const IdName& each : ids) state->ask(State::ById{each.kind, each.id}, now);
              }};
  co_await asked;
}

std::string IdMap::text_of(IdKind kind, std::uint32_t id) const {
  const std::lock_guard lock(state_->mutex);
  const auto* const answer = state_->by_id.find({kind, id});
  return answer != nullptr && answer->value ? *answer->value : owner_name(id);
}

bool IdMap::knows(IdKind kind, std::uint32_t id, TimePoint now) const {
  return state_->is_fresh(state_->by_id, State::ById{kind, id}, now);
}

}  // namespace stag::nfs::nfs4
