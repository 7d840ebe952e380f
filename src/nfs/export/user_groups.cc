#include "nfs/export/user_groups.h"

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/failure.h"
#include "base/network.h"
#include "base/reason.h"
#include "nfs/export/answers.h"

namespace stag::nfs {

namespace {

// How long a thread does not look again for what it has seen of a user.
constexpr Duration kSeen = std::chrono::seconds(1);

std::uint64_t next_groups_version() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// The Executor's client, of client_at().
using ClientKey = std::uint64_t;

// A call that waits: of its loop's thread.
struct WaitingCall {
  Loop& loop;
  std::coroutine_handle<> call{};
  bool over = false;

  void end() {
    if (!std::exchange(over, true)) call.resume();
  }
};

}  // namespace

// What a thread has seen of a user lately.
struct UserGroups::Seen {
  std::uint64_t version = 0;
  std::uint32_t uid = 0;
  TimePoint until{};
  List groups{};

  static Seen& place_of(std::uint32_t uid) {
    thread_local std::unique_ptr<std::array<Seen, 256>> places;
    if (places == nullptr) places = std::make_unique<std::array<Seen, 256>>();
    return (*places)[uid % places->size()];
  }
};

// One that was asked by `client`. All but `found` is guarded by the State's mutex, or constant.
struct UserGroups::Question {
  const std::uint32_t uid;
  const ClientKey client;
  const TimePoint began;
  const std::uint64_t epoch;
  bool ended = false;
  std::list<std::shared_ptr<WaitingCall>> waiting{};
  // What the service has said; nullopt: it has not been asked. Of the worker.
  std::optional<Result<std::vector<std::uint32_t>, NoUser>> found{};
};

struct UserGroups::Answer {
  List groups;  // null: there never was one
  TimePoint given;
  std::uint64_t epoch = 0;
};

struct UserGroups::State {
  // After that the server asks for a user again; until there is an answer the old one holds, no
  // longer than kKeepAtMost after it was given, or after the name service last failed to give
  // another.
  static constexpr Duration kKeep = std::chrono::minutes(10);
  static constexpr Duration kKeepUnknown = std::chrono::minutes(1);
  static constexpr Duration kKeepAtMost = std::chrono::minutes(30);
  // How soon a question that had no answer is asked again.
  static constexpr Duration kRetry = std::chrono::seconds(5);
  // How long after a question was put calls wait for its answer.
  static constexpr Duration kPatience = std::chrono::seconds(5);

  State(std::shared_ptr<GroupService> asked_one, std::function<TimePoint()> time,
        const UserGroupsOptions& of)
      : options(of),
        service(std::move(asked_one)),
        clock(std::move(time)),
        users(of.entries),
        strangers(of.strangers) {}

  using Table = Answers<std::uint32_t, Answer>;
  struct Found {
    List groups;         // null: nothing that still holds
    bool fresh = false;  // the service need not be asked
  };

  // All with the mutex held, but for ask() and end().
  const Table::Answer* last(std::uint32_t uid) const {
    const auto* const user = users.find(uid);
    return user != nullptr ? user : strangers.find(uid);
  }
  Found find(std::uint32_t uid, TimePoint now) const {
    const auto* const answer = last(uid);
    if (answer == nullptr || answer->value->epoch != epoch) return {};
    const bool holds = now < answer->value->given + kKeepAtMost;
    return {holds ? answer->value->groups : nullptr, now < answer->until};
  }
  bool is_asked(std::uint32_t uid) const {
    const auto first = asked.lower_bound({uid, 0});
    return first != asked.end() && first->first.first == uid;
  }
  void keep(std::uint32_t uid, const Result<std::vector<std::uint32_t>, NoUser>& found,
            TimePoint now) {
    const auto* const before = last(uid);
    if (found) {
      const auto groups = std::make_shared<const std::vector<std::uint32_t>>(*found);
      strangers.erase(uid);
      return users.keep(uid, {Answer{groups, now, epoch}, now + kKeep});
    }
    // A user who was known before is no stranger yet and keeps the place among the users.
    Table& table = users.find(uid) != nullptr ? users : strangers;
    if (found.error() == NoUser::Unknown) {
      static const List kNone = std::make_shared<const std::vector<std::uint32_t>>();
      return table.keep(uid, {Answer{kNone, now, epoch}, now + kKeepUnknown});
    }
    // What was known before holds on, and a user who goes on calling does not wait for another
    // answer.
    const List groups = before == nullptr ? nullptr : before->value->groups;
    table.keep(uid, {Answer{groups, now - kKeep, epoch}, now + kRetry});
  }

  // Blocks, on a worker. A caller that waited in the queue behind another with the same question
  // finds it answered.
  void ask(Question& question) {
    {
      const std::lock_guard lock(mutex);
      if (question.epoch != epoch || find(question.uid, clock()).fresh) return;
    }
    question.found = service->groups_of(question.uid);
  }
  // On any thread. Callers that wait for the answer go on.
  void end(Question& question) {
    const std::lock_guard lock(mutex);
    question.ended = true;
    if (question.epoch == epoch) asked.erase({question.uid, question.client});
    try {
      if (question.epoch == epoch && question.found) keep(question.uid, *question.found, clock());
      for (const auto& each : question.waiting) each->loop.post([each] { each->end(); });
    } catch (...) {
      // They wait until their time is over.
      trace_exception(Reason::OutOfMemory, "groups of users");
    }
    question.waiting.clear();
  }

  const UserGroupsOptions options;
  const std::shared_ptr<GroupService> service;
  const std::function<TimePoint()> clock;
  std::mutex mutex;
  Table users, strangers;
  std::map<std::pair<std::uint32_t, ClientKey>, std::shared_ptr<Question>> asked;
  std::map<ClientKey, std::size_t> waiting;  // calls, by client
  std::size_t all_waiting = 0;
  std::uint64_t epoch = 0;  // how often all was forgotten
};

// What a worker does. The question ends with it, also where it never ran.
struct UserGroups::Job {
  // With the State's mutex held, unlike the end.
  Job(std::shared_ptr<State> of, std::uint32_t uid, ClientKey client, TimePoint now)
      : state(std::move(of)),
        question(std::make_shared<Question>(Question{uid, client, now, state->epoch})) {
    state->asked.emplace(std::pair(uid, client), question);
  }
  ~Job() { state->end(*question); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const std::shared_ptr<State> state;
  const std::shared_ptr<Question> question;
};

// co_await Turn(...): goes on when the question has ended, or its time is over, or at once where
// too many wait.
class UserGroups::Turn {
 public:
  Turn(State& state, Question& question, Loop& loop)
      : state_(state), question_(question), loop_(loop) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (wait_ == nullptr) return;
    const std::lock_guard lock(state_.mutex);
    question_.waiting.remove(wait_);
    --state_.all_waiting;
    const auto own = state_.waiting.find(question_.client);
    if (--own->second == 0) state_.waiting.erase(own);
  }

  bool await_ready() const { return false; }
  bool await_suspend(std::coroutine_handle<> call) {
    const Duration left = question_.began + State::kPatience - loop_.now();
    if (left <= Duration::zero()) return false;
    auto wait = std::make_shared<WaitingCall>(WaitingCall{loop_, call});
    timer_ = loop_.after(left, [wait] { wait->end(); });
    return enter(std::move(wait));
  }
  void await_resume() const {}

 private:
  bool enter(std::shared_ptr<WaitingCall> wait) {
    const std::lock_guard lock(state_.mutex);
    if (question_.ended || state_.all_waiting >= state_.options.waiting) return false;
    const auto own = state_.waiting.try_emplace(question_.client, 0).first;
    if (own->second >= state_.options.waiting_each) return false;
    question_.waiting.push_back(wait);
    ++state_.all_waiting;
    ++own->second;
    wait_ = std::move(wait);
    return true;
  }

  State& state_;
  Question& question_;
  Loop& loop_;
  std::shared_ptr<WaitingCall> wait_{};  // null: it does not
  Timer timer_{};
};

UserGroups::UserGroups(std::shared_ptr<GroupService> service, std::shared_ptr<Executor> workers,
                       std::function<TimePoint()> clock, const UserGroupsOptions& options)
    : state_(std::make_shared<State>(std::move(service), std::move(clock), options)),
      workers_(std::move(workers)),
      version_(next_groups_version()) {}

UserGroups::~UserGroups() = default;

UserGroups::List UserGroups::known(std::uint32_t uid, const Asker& asker) {
  const TimePoint now = asker.loop.now();
  const Seen& seen = Seen::place_of(uid);
  const bool holds = seen.version == version_.load(std::memory_order_acquire) && seen.uid == uid;
  return holds && now < seen.until ? seen.groups : look(uid, asker, now);
}

UserGroups::List UserGroups::look(std::uint32_t uid, const Asker& asker, TimePoint now) {
  State::Found found;
  std::unique_ptr<Job> job;
  std::uint64_t version = 0;
  {
    const std::lock_guard lock(state_->mutex);
    version = version_.load(std::memory_order_relaxed);
    found = state_->find(uid, now);
    if (found.groups == nullptr) return nullptr;
    if (!found.fresh && !state_->is_asked(uid))
      job = std::make_unique<Job>(state_, uid, client_at(asker.host), now);
  }
  if (job != nullptr) submit(std::move(job));
  // A pointer of its own to the shared one: its count stays in this thread's cache.
  const auto own = std::make_shared<const List>(std::move(found.groups));
  Seen& seen = Seen::place_of(uid);
  seen = {version, uid, now + kSeen, List(own, own->get())};
  return seen.groups;
}

Task<UserGroups::List> UserGroups::of(std::uint32_t uid, Asker asker) {
  const ClientKey client = client_at(asker.host);
  std::shared_ptr<Question> question;
  std::unique_ptr<Job> job;
  {
    const TimePoint now = asker.loop.now();
    const std::lock_guard lock(state_->mutex);
    const State::Found found = state_->find(uid, now);
    if (found.groups != nullptr) co_return found.groups;
    const auto at = state_->asked.find({uid, client});
    if (at != state_->asked.end()) {
      question = at->second;
    } else if (!found.fresh) {
      job = std::make_unique<Job>(state_, uid, client, now);
      question = job->question;
    }
  }
  if (job != nullptr) submit(std::move(job));
  if (question != nullptr) {
    Turn turn(*state_, *question, asker.loop);
    co_await turn;
  }
  const std::lock_guard lock(state_->mutex);
  const auto* const answer = state_->last(uid);
  co_return answer == nullptr ? nullptr : answer->value->groups;
}

// Where it is refused it ends here. No loop is told of its end, but by those who wait: that of the
// asker may be gone by then.
void UserGroups::submit(std::unique_ptr<Job> job) {
  const auto at_once = [](void*, Executor::Function done) { done(); };
  const void* const client = reinterpret_cast<const void*>(std::uintptr_t{job->question->client});
  auto work = [job = std::move(job)] { job->state->ask(*job->question); };
  workers_->submit({.work = std::move(work), .done = [] {}, .deliver = at_once, .client = client});
}

void UserGroups::forget() {
  const std::lock_guard lock(state_->mutex);
  ++state_->epoch;
  state_->asked.clear();
  version_.store(next_groups_version(), std::memory_order_release);
}

namespace {

class AuthSysWithGroups final : public rpc::Authenticator {
 public:
  explicit AuthSysWithGroups(std::shared_ptr<UserGroups> groups) : groups_(std::move(groups)) {}

  oncrpc::AuthFlavor flavor() const override { return oncrpc::AuthFlavor::AUTH_SYS; }
  bool may_accept(const oncrpc::CallHeader& header) const override {
    return sys_->may_accept(header);
  }
  bool authenticate_at_once(const oncrpc::CallHeader& header, const rpc::IncomingCall& call,
                            rpc::Authentication& to) override {
    sys_->authenticate_at_once(header, call, to);
    if (to.verdict != Verdict::Accepted) return true;
    to.caller.groups = groups_->known(to.caller.uid, asker_of(call));
    if (to.caller.groups != nullptr) return true;
    to = {};
    return false;
  }
  Task<rpc::Authentication> authenticate(const oncrpc::CallHeader& header,
                                         const rpc::IncomingCall& call) override {
    rpc::Authentication made;
    sys_->authenticate_at_once(header, call, made);
    if (made.verdict != Verdict::Accepted) co_return made;
    rpc::Caller& caller = made.caller;
    caller.groups = co_await groups_->of(caller.uid, asker_of(call));
    caller.groups_undecided = caller.groups == nullptr;
    if (caller.groups_undecided)
      trace(Reason::NfsGroupsUnknown, to_string(call.origin->peer),
            "user " + std::to_string(caller.uid));
    co_return made;
  }

 private:
  using Verdict = rpc::Authentication::Verdict;

  static UserGroups::Asker asker_of(const rpc::IncomingCall& call) {
    return {*call.origin->loop, call.origin->peer.host};
  }

  const std::unique_ptr<rpc::Authenticator> sys_ = rpc::auth_sys();
  const std::shared_ptr<UserGroups> groups_;
};

}  // namespace

std::unique_ptr<rpc::Authenticator> auth_sys_with(std::shared_ptr<UserGroups> groups) {
  return std::make_unique<AuthSysWithGroups>(std::move(groups));
}

}  // namespace stag::nfs
