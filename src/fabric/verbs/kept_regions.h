// What a domain has registered of fabric::KeptRanges: a region for each range, without remote
// rights, which windows open in part and for one call. Only domains of devices with windows have
// it: elsewhere a region's own key would open all of it, and to every call at once.
//
// Thread: that of the domain's loop. A range that is there before the domain is registered when it
// is first used; where the device refuses that, what lies in it is registered as if it were not
// kept.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "fabric/kept_ranges.h"
#include "fabric/verbs/counted_region.h"
#include "fabric/verbs/verbs_functions.h"

namespace stag::fabric {

class KeptRegions final : private KeptRanges::User {
 public:
  // Both outlive this.
  KeptRegions(const VerbsFunctions& functions, ibv_pd* pd);
  ~KeptRegions();
  KeptRegions(const KeptRegions&) = delete;
  KeptRegions& operator=(const KeptRegions&) = delete;

  // The region in which `memory` lies, used once more until end_use(); null: it lies in none, or
  // that cannot be registered now.
  ibv_mr* use(const std::byte* memory, std::size_t size, bool writable);
  bool has(const ibv_mr* region) const;
  // False: the region is none of these.
  bool end_use(ibv_mr* region) noexcept;

 private:
  struct Kept {
    const KeptRange* range = nullptr;  // null: given up, and still used
    ibv_mr* region = nullptr;          // null: not yet registered
    std::size_t uses = 0;
    bool refused = false;  // by the device, which is not asked again and again
  };
  Reason on_kept(const KeptRange& range) override;
  void on_given_up(const KeptRange& range) noexcept override;
  Reason enroll(Kept& kept) const;
  void end(std::size_t index) noexcept;

  const VerbsFunctions& functions_;
  ibv_pd* const pd_;
  const std::shared_ptr<KeptRanges> table_ = KeptRanges::of_this_thread();
  std::vector<Kept> kept_;
};

}  // namespace stag::fabric
