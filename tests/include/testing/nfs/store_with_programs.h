// A store whose files programs of its own machine use, as a test says.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testing/nfs/faulty_store.h"
#include "testing/nfs/program_locks.h"

namespace stag::testing {

class StoreWithPrograms final : public FaultyStore {
 public:
  using FaultyStore::FaultyStore;

  // Another one than its inner store has.
  std::string own_handle_space;
  std::string handle_space() const override {
    return own_handle_space.empty() ? FaultyStore::handle_space() : own_handle_space;
  }

  // Why there is no lease.
  std::optional<vfs::Status> refusal;
  // Those that are held.
  int leases = 0;
  std::vector<vfs::LeaseKind> kinds;  // of all that were ever taken
  std::function<void()> on_lease;     // called before one is
  // Some program wants the files, and waits so long.
  void want(Duration waits) {
    for (vfs::LeaseWanted& told : std::exchange(wanted_, {})) told(waits);
  }

  vfs::Operation<std::shared_ptr<vfs::Lease>> lease(vfs::CallerContext, const vfs::Handle&,
                                                    vfs::LeaseKind kind,
                                                    vfs::LeaseWanted wanted) override {
    if (refusal) return Failure{*refusal};
    if (on_lease) on_lease();
    kinds.push_back(kind);
    wanted_.push_back(std::move(wanted));
    return std::shared_ptr<vfs::Lease>(std::make_shared<CountedLease>(leases));
  }

  // Of whatever file; tests lock one at a time.
  bool has_locks = false;
  // Why the store says nothing of them.
  std::optional<vfs::Status> locks_refusal;
  ProgramLocks locks;
  vfs::Operation<std::unique_ptr<vfs::LocalLocks>> local_locks(vfs::CallerContext,
                                                               const vfs::Handle&) override {
    if (locks_refusal) return Failure{*locks_refusal};
    if (!has_locks) return Failure{vfs::Status::NotSupported};
    return std::unique_ptr<vfs::LocalLocks>(std::make_unique<ProgramLocksOfFile>(locks));
  }

 private:
  struct CountedLease final : vfs::Lease {
    explicit CountedLease(int& of) : count(of) { ++count; }
    ~CountedLease() override { --count; }
    std::optional<Duration> wanted() const override { return std::nullopt; }
    int& count;
  };
  std::vector<vfs::LeaseWanted> wanted_;
};

}  // namespace stag::testing
