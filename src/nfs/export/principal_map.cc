#include "nfs/export/principal_map.h"

#include <mutex>
#include <utility>

#include "nfs/export/answers.h"

namespace stag::nfs {

using Ids = std::shared_ptr<const PrincipalIds>;

struct PrincipalMap::State {
  State(std::shared_ptr<PrincipalService> asked, const PrincipalMapOptions& of)
      : options(of), service(std::move(asked)), answers(of.entries) {}

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
    const TimePoint until = now + (found ? options.keep : options.keep_unknown);
    auto ids = std::make_shared<const PrincipalIds>(found ? *std::move(found) : PrincipalIds{});
    const std::lock_guard lock(mutex);
    answers.keep(principal, {std::move(ids), until});
  }

  const PrincipalMapOptions options;
  const std::shared_ptr<PrincipalService> service;
  mutable std::mutex mutex;
  Answers<std::string, Ids> answers;
};

PrincipalMap::PrincipalMap(std::shared_ptr<PrincipalService> service,
                           std::shared_ptr<Executor> worker, const PrincipalMapOptions& options)
    : options_(options),
      state_(std::make_shared<State>(std::move(service), options)),
      worker_(std::move(worker)) {}

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
  Asked asked{loop, *worker_, client, has_old ? options_.patience_with_old : options_.patience,
              [state = state_, principal, now] { state->ask(principal, now); }};
  co_await asked;
  co_return state_->find(principal, std::nullopt);
}

}  // namespace stag::nfs
