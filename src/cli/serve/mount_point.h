// Mount points of this machine, of which an export may depend (`mp` of exports(5)).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/result.h"

namespace stag::cli {

// Whether something is mounted at `folder`; false where there is no such folder. Fails with a
// phrase: a file system on the way there has not answered within `patience`, or nobody could ask.
// Blocks for so long; any thread.
Result<bool, std::string> is_mount_point(const std::string& folder, Duration patience);

// What the options mp, mountpoint, mp=PATH and mountpoint=PATH say: the path, empty for the folder
// itself; nullopt: it is another option.
std::optional<std::string> mount_point_in(std::string_view option);

// What comes of an export that is there while something is mounted at `at`.
struct AwaitedMount {
  bool exported = true;
  std::string doubt{};   // why nobody knows, in one sentence: ExportLine::doubt
  std::string remark{};  // for the operator; empty: it is mounted
};
// `mounted` is the answer of is_mount_point().
AwaitedMount awaited_mount(const std::string& exported, const std::string& at,
                           const Result<bool, std::string>& mounted);

}  // namespace stag::cli
