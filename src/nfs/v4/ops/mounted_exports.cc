#include "nfs/v4/ops/mounted_exports.h"

#include <algorithm>

#include "base/completion.h"
#include "base/failure.h"
#include "base/reason.h"
#include "nfs/export/kept_export.h"

namespace stag::nfs::nfs4 {

namespace {

// 5.8.2.23: all that a listing of names takes, and that the way to an export tells of it.
constexpr AttributeSet kOfTheWay{v4::FATTR4_RDATTR_ERROR, v4::FATTR4_MOUNTED_ON_FILEID,
                                 v4::FATTR4_LEASE_TIME};

constexpr Duration kPatienceOfPage = std::chrono::seconds(1);
// Where others have taken all of that.
constexpr Duration kLeastPatience = std::chrono::milliseconds(20);
// Stores give back what waits in vain; those that do not get no more questions than these.
constexpr std::size_t kMostQuestions = 4096;

// Nothing of it is its Call's, which may end first.
struct StoreQuestion {
  StoreQuestion(const Compound& compound, const ExportObject& of, AttributeSet attributes)
      : life(compound.life()),
        pending(compound.shared().questions),
        kept(of),
        object(of),
        asked(attributes) {
    kept.keep(object);
    object.worker_time = nullptr;
    // Those who have no client ID share what a client has.
    object.connection = life != nullptr ? static_cast<const void*>(life.get()) : &object.store();
    ++*pending;
  }
  StoreQuestion(const StoreQuestion&) = delete;
  ~StoreQuestion() { --*pending; }

  // The second of the two answers finds no waiter.
  void answer(StoreAnswered with) {
    if (!answered.completed()) answered.complete(std::move(with));
  }

  const state::LifePtr life;
  const std::shared_ptr<std::atomic<std::size_t>> pending;
  const KeptExport kept;
  ExportObject object;
  const AttributeSet asked;
  Completion<StoreAnswered> answered;
};

Task<void> put_question(std::shared_ptr<StoreQuestion> question,
                        vfs::Operation<vfs::Attributes> attributes) {
  StoreAnswered answer = Failure{v4::NFS4ERR_DELAY};
  try {
    answer = co_await ask_store(question->object, question->asked, std::move(attributes));
  } catch (...) {
    trace_exception(Reason::TaskFailed);
  }
  question->answer(std::move(answer));
}

}  // namespace

MountedExports::MountedExports(const Compound& compound, AttributeSet asked)
    : compound_(compound), asked_(asked), until_(compound.now() + kPatienceOfPage) {}

bool MountedExports::asks_stores() const {
  return !(asked_ - kOfTheWay).empty();
}

Duration MountedExports::patience() const {
  return std::max<Duration>(until_ - compound_.now(), kLeastPatience);
}

Task<Compound::FoundAttributes> MountedExports::attributes_of(const PseudoFs::Node& node,
                                                              const Object& entered) const {
  if (!asks_stores()) co_return compound_.source_of(node);
  const auto* const root = std::get_if<ExportObject>(&entered);
  if (root == nullptr) co_return co_await compound_.attributes_of(entered, asked_);
  if (*compound_.shared().questions >= kMostQuestions) co_return Failure{v4::NFS4ERR_DELAY};
  const auto question = std::make_shared<StoreQuestion>(compound_, *root, asked_);
  const ExportObject& object = question->object;
  detach(put_question(question, object.store().attributes(object.caller(), object.handle)));
  Timer limit;
  if (!question->answered.completed())
    limit = compound_.admission().call().loop().after(
        patience(), [question] { question->answer(Failure{v4::NFS4ERR_DELAY}); });
  StoreAnswered answer = co_await question->answered;
  if (!answer) co_return Failure{answer.error()};
  co_return co_await compound_.told_attributes_of(*root, asked_, *std::move(answer));
}

}  // namespace stag::nfs::nfs4
