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
  // `told` hears of each object that was removed, or would be in a dry run. All outlive the Tasks.
  using Told = std::function<void(const CopyObject& removed)>;
  Remover(Run& run, CopyEndpoint& endpoint, bool dry_run, Told told)
      : run_(run), endpoint_(endpoint), dry_run_(dry_run), told_(std::move(told)) {}

  // Removes an entry of `directory`, with all that is below.
  Task<Outcome<Ok>> remove(CopyObject directory, Member member);
  // The entries of `directory`. Fails where there are more than can be kept.
  Task<Outcome<std::vector<Member>>> all_of(CopyObject directory);

 private:
  Run& run_;
  CopyEndpoint& endpoint_;
  const bool dry_run_;
  const Told told_;
  Descent descent_;
};

}  // namespace stag::cli
