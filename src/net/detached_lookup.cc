#include "net/detached_lookup.h"

#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "net/blocked_signals.h"
#include "net/loop.h"
#include "net/race.h"

namespace stag::net {
namespace {

using Addresses = Result<std::vector<SocketAddress>, Reason>;

// What the thread shares with the loop.
struct Question {
  Lookup lookup;
  Loop::Function tell;  // posted with the answer
  std::mutex mutex;
  Loop* loop = nullptr;  // guarded by mutex; null when nobody waits any more
  Addresses answer = Failure{Reason::None};
};

Addresses answer_of(Lookup& lookup) {
  try {
    return lookup();
  } catch (const std::bad_alloc&) {
    return Failure{Reason::OutOfMemory};
  }
}

void ask(Question& question) {
  Addresses answer = answer_of(question.lookup);
  const std::lock_guard lock(question.mutex);
  if (question.loop == nullptr) return;
  question.answer = std::move(answer);
  question.loop->post(std::move(question.tell));
}

// False when the system has no thread left to give.
bool start(const std::shared_ptr<Question>& question) {
  const BlockedSignals blocked;
  try {
    std::thread([question] { ask(*question); }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

// Waits for the answer: once it is gone the thread tells nobody.
class Waiter {
 public:
  explicit Waiter(std::shared_ptr<Question> question) : question_(std::move(question)) {}
  Waiter(Waiter&&) noexcept = default;
  Waiter& operator=(Waiter&&) = delete;
  ~Waiter() {
    if (question_ == nullptr) return;
    const std::lock_guard lock(question_->mutex);
    question_->loop = nullptr;
  }

 private:
  std::shared_ptr<Question> question_;
};

}  // namespace

Task<Addresses> detached_lookup(EpollLoop& loop, Lookup lookup, Duration limit, CancelToken token) {
  const auto race = Race::start(loop, limit, token);
  const auto question = std::make_shared<Question>();
  question->lookup = std::move(lookup);
  question->tell = [weak = std::weak_ptr(race)] {
    if (const auto still = weak.lock()) still->end(Reason::None);
  };
  question->loop = &loop;
  // The loop has it, because that may go while this coroutine is still suspended.
  const Timer waiting = loop.after(limit, [waiter = Waiter(question)] {});
  if (!start(question)) co_return answer_of(question->lookup);
  Completion<Reason>& ended = race->ended();
  const Reason reason = co_await ended;
  if (reason != Reason::None) co_return Failure{reason};
  co_return std::move(question->answer);
}

}  // namespace stag::net
