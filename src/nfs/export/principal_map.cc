#include "nfs/export/principal_map.h"

#include <mutex>
#include <utility>

#include "nfs/export/answers.h"

namespace stag::nfs {

using Ids = std::shared_ptr<const PrincipalIds>;

struct PrincipalMap::State {
  static constexpr std::size_t kEntries = 8192;  // principals that are kept
  static constexpr Duration kKeep = std::chrono::minutes(10);
  static constexpr Duration kKeepUnknown = std::chrono::minutes(1);
  // How long a call waits for an answer: not for as long as the clients who wait for it, whose
  // libraries give up after 25 seconds (libtirpc).
  static constexpr Duration kPatience = std::chrono::seconds(20);
  // The same where there is an answer that is too old.
  static constexpr Duration kPatienceWithOld = std::chrono::seconds(5);

  explicit State(std::shared_ptr<PrincipalService> asked) : service(std::move(asked)) {}

  Ids find(const std::string& principal, std::optional<TimePoint> now) const {
    const std::lock_guard lock(mutex);
    const auto* const answer = answers.find(principal);
    if (answer == nullptr || (now && answer->until <= *now)) return nullptr;
    return *answer->value;
  }
  // Blocks. A caller that waited in the queue behind another with the same question finds it
  // answered.
  void ask(const std::string& principal, TimePoint now) {
    if (find(principal, now) != nullptr) return;
    auto found = service->ids_of(principal);
    // A failed lookup must not make a user nobody for the life of a context, which may be hours.
    if (!found && found.error() == NoUser::Failed) return;
    const TimePoint until = now + (found ? kKeep : kKeepUnknown);
    auto ids = std::make_shared<const PrincipalIds>(found ? *std::move(found) : PrincipalIds{});
    const std::lock_guard lock(mutex);
    answers.keep(principal, {std::move(ids), until});
  }

  const std::shared_ptr<PrincipalService> service;
  mutable std::mutex mutex;
  Answers<std::string, Ids> answers{kEntries};
};

PrincipalMap::PrincipalMap(std::shared_ptr<PrincipalService> service,
                           std::shared_ptr<Executor> worker)
    : state_(std::make_shared<State>(std::move(service))), worker_(std::move(worker)) {}

PrincipalMap::~PrincipalMap() = default;

Ids PrincipalMap::known(const std::string& principal, TimePoint now) const {
  return state_->find(principal, now);
}

Task<Ids> PrincipalMap::ids_of(std::string principal, Loop& loop, const void* client) {
  if (principal.size() > kLongestPrincipal || principal.find('\0') != principal.npos)
    co_return std::make_shared<const PrincipalIds>();
  const TimePoint now = loop.now();
  if (const Ids at_once = known(principal, now)) co_return at_once;
  const bool has_old = state_->find(principal, std::nullopt) != nullptr;
  Asked asked{loop, *worker_, client, has_old ? State::kPatienceWithOld : State::kPatience,
              [state = state_, principal, now] { state->ask(principal, now); }};
  co_await asked;
  co_return state_->find(principal, std::nullopt);
}

}  // namespace stag::nfs
