// Recovery after a restart of `stag serve`: the records of NFSv4 clients, and the grace period that
// all versions share.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/loop.h"
#include "base/result.h"
#include "cli/serve/store_watch.h"
#include "cli/support/arguments.h"
#include "nfs/recovery/recovery.h"
#include "nfs/state/grace_period.h"
#include "nfs/v4/nfs4_server.h"

namespace stag::cli {

struct RecoveryOptions {
  std::string records;  // empty: in the state directory
  std::uint32_t lease_seconds = nfs::nfs4::Nfs4Options{}.lease_seconds;
  std::optional<std::uint32_t> grace_seconds;

  void declare(Arguments& arguments);
  Result<Ok, std::string> check() const;
};

class Recovery {
 public:
  // Counts this start and begins the grace period if a client has state to reclaim. Blocking.
  // Without `nfs4` the state of NFSv4 clients is lost. `handles` identifies the key of the server's
  // file handles. The error is one sentence. `stores` outlive it.
  static Result<std::unique_ptr<Recovery>, std::string> open(const RecoveryOptions& options,
                                                             const std::string& state, bool nfs4,
                                                             std::uint64_t handles,
                                                             StoreWatch& stores);

  // Clients that were adopted, and how long they may reclaim; no time where there are none.
  struct Adopted {
    std::size_t clients = 0;
    Duration grace{};
    bool unrecorded = false;  // nothing says where clients of version 4 would have been recorded
  };
  // Adopts the clients of a server that has ended and cannot begin meanwhile, by its state
  // directory: those recorded there, and in the cluster, where the directory says so. The error is
  // one sentence, and says that not all are adopted; to adopt again is safe. Blocking, and not for
  // a thread that clients wait for: that directory may hang.
  Result<Adopted, std::string> adopt(const std::string& directory);
  // The same by records in a Ceph cluster, of which one server at a time is the owner. That it has
  // ended, and had the same key of file handles, is seen there.
  Result<Adopted, std::string> adopt(nfs::recovery::RadosPlace place);
  bool serves_nfs4() const { return records_ != nullptr; }

  // The length of a grace period.
  Duration grace() const { return grace_; }
  const std::shared_ptr<nfs::state::GracePeriod>& period() const { return period_; }
  // Waits until all records are written. Called after the last Call has ended, while the lock state
  // still exists.
  void drain() const {
    if (records_ != nullptr) records_->drain();
  }
  // For the server that uses it; the Recovery outlives the server.
  nfs::nfs4::Nfs4Options nfs4_options() const;

 private:
  Recovery() = default;
  Result<Ok, std::string> open_records(const std::string& state, bool nfs4, StoreWatch& stores);
  Result<Ok, std::string> move_records(const std::string& from);
  Result<Ok, std::string> note_place(const std::string& state) const;
  bool is_own(const nfs::recovery::RadosPlace& place) const;
  using DatabasePtr = std::unique_ptr<nfs::recovery::Database>;
  Result<DatabasePtr, std::string> open_lost(nfs::recovery::RadosPlace place);
  Result<DatabasePtr, std::string> open_noted(const nfs::recovery::RadosPlace& place,
                                              const std::string& directory);
  Result<Adopted, std::string> adopt(nfs::recovery::Database& lost, const std::string& name);

  Duration grace_{};
  std::uint64_t handles_ = 0;
  RecoveryOptions options_;
  // By whose conf= and id= a cluster was reached to adopt from, which is done once at a time.
  nfs::recovery::RadosPlace reached_;
  std::shared_ptr<nfs::state::GracePeriod> period_ = std::make_shared<nfs::state::GracePeriod>();
  std::unique_ptr<nfs::recovery::Recovery> records_;  // null when NFSv4 is not served
};

}  // namespace stag::cli
