// CB_RECALL and CB_GETATTR: what the holder of a delegation is asked (RFC 8881 20.1, 20.2).
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/unique_function.h"
#include "nfs/v4/callback/callback_request.h"

namespace stag::nfs::nfs4 {

class SharedState;

// Asked for until it is given back; revoked a lease after that. A client that wants the file comes
// again after a while: until then no client gets another delegation of it. A client that had one
// revoked gets none for some minutes.
class DelegationRecall final : public PendingCallback {
 public:
  DelegationRecall(SharedState& shared, const state::Recall& recall, TimePoint now);
  const state::FileKey& file() const { return recall_.file; }
  // A caller does not wait for a whole lease.
  void hurry(TimePoint until) { until_ = std::min(until_, until); }
  // Until the holder, which cannot give it back now, has come again.
  void put_off(TimePoint now);
  void fill(v4::nfs_cb_argop4& operation) const override;
  Next answered(const CallbackOutcome& outcome, TimePoint now) override;
  bool is_over(TimePoint now) override;

 private:
  void revoke(TimePoint now);

  SharedState& shared_;
  const state::Recall recall_;
  const TimePoint asked_;
  TimePoint until_;
  std::weak_ptr<char> job_;  // that revokes it, done or dropped when this is expired
};

// Size and change as the holder of a write delegation knows them. Callers that ask meanwhile are
// told the same.
class HolderQuestion final : public PendingCallback {
 public:
  // nullopt: the client did not say.
  using Done = UniqueFunction<void(std::optional<HeldAttributes>)>;
  static constexpr std::size_t kAskers = 64;
  static constexpr Duration kPatience = std::chrono::seconds(1);

  HolderQuestion(SharedState& shared, const state::Recall& of, TimePoint now)
      : PendingCallback(of.clientid, of.granted_by, of.file),
        shared_(shared),
        delegation_(of),
        until_(now + kPatience) {}
  void ask(Done done);
  void fill(v4::nfs_cb_argop4& operation) const override;
  Next answered(const CallbackOutcome& outcome, TimePoint now) override;
  bool is_over(TimePoint now) override;

 private:
  void tell(std::optional<HeldAttributes> held);

  SharedState& shared_;
  const state::Recall delegation_;
  const TimePoint until_;
  std::vector<Done> askers_;
};

}  // namespace stag::nfs::nfs4
