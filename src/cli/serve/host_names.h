// The names of hosts and the netgroups of this machine's name service (nsswitch.conf).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "nfs/export/client_names.h"

namespace stag::cli {

// With workers of their own, which start when they are first asked.
std::shared_ptr<nfs::ClientNames> system_client_names();

// Whether there are netgroups, for the reader of exports. Once the service that knows them has been
// silent, none is asked any more: each question would take as long again. One thread at a time.
class NetgroupCheck {
 public:
  // Of one netgroup, as check() says; nullopt: nobody answers. On another thread, which is left to
  // itself when it takes too long.
  using Ask = std::function<std::optional<Result<std::string, std::string>>(const std::string&)>;
  NetgroupCheck();
  NetgroupCheck(Ask ask, std::chrono::milliseconds patience)
      : ask_(std::move(ask)), patience_(patience) {}

  // Yields an empty text, or a sentence where there is no such netgroup (yet), or nobody answers
  // for some seconds. Fails with one where any host belongs to it. Blocks.
  Result<std::string, std::string> check(const std::string& netgroup);

 private:
  const Ask ask_;
  const std::chrono::milliseconds patience_;
  bool silent_ = false;
};

}  // namespace stag::cli
