// The options of mount(8), as `stag mount -o` gets them from users, fstab and mount(8) itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace stag::cli {

struct MountWords {
  std::vector<std::string> passed_on{};  // to FUSE and the kernel
  double valid = 1;                      // seconds: actimeo=
  bool direct = false;
  std::optional<std::uint32_t> connections{};  // nconnect=, from 1 to nfs::client::kMostConnections
  std::optional<std::uint32_t> retry{};        // minutes: retry=
};

// `lists` of words that commas separate. What is meant for mount(8) and systemd alone is left out.
// Fails with a sentence.
Result<MountWords, std::string> mount_words(const std::vector<std::string>& lists);

// What mount(8) says to a helper (mount.stag URL DIR [-sfnv] [-o OPTIONS] [-t TYPE], the program's
// own name first), as words of `stag mount`. nullopt: -f, which asks for nothing but success.
std::optional<std::vector<std::string>> from_mount_helper(const std::vector<std::string>& words);

}  // namespace stag::cli
