// Remover: removes what is too much in the destination of a copy.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/copy/copy_endpoint.h"
#include "cli/support/descent.h"

namespace stag::cli {

class Remover {
 public:
  // `told` hears of each object that was removed, or would be in a dry run. Of what `keeps` is true
  // for nothing is removed, and no directory above it. All outlive the Tasks.
  using Told = std::function<void(const CopyObject& removed)>;
  using Keeps = std::function<bool(const std::string& counterpart, Kind kind)>;
  Remover(Run& run, CopyEndpoint& endpoint, bool dry_run, Keeps keeps, Told told)
      : run_(run),
        endpoint_(endpoint),
        dry_run_(dry_run),
        keeps_(std::move(keeps)),
        told_(std::move(told)) {}

  // Removes an entry of `directory`, with all that is below but for what is kept; false: something
  // is. `counterpart`: where in the source the entry would be.
  Task<Outcome<bool>> remove(CopyObject directory, Member member, std::string counterpart);
  // The entries of `directory`. Fails where there are more than can be kept.
  Task<Outcome<std::vector<Member>>> all_of(CopyObject directory);

 private:
  Run& run_;
  CopyEndpoint& endpoint_;
  const bool dry_run_;
  const Keeps keeps_;
  const Told told_;
  Descent descent_;
};

}  // namespace stag::cli
