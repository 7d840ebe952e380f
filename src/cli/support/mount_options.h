// The options of mount(8), as `stag mount -o` gets them from users, fstab and mount(8) itself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "nfs/client/session/url.h"

namespace stag::cli {

struct MountWords {
  std::vector<std::string> passed_on{};  // to FUSE and the kernel
  double valid = 1;                      // seconds: actimeo=
  bool direct = false;
  std::uint64_t read_ahead = 1 << 20;          // bytes: readahead=
  std::optional<std::uint32_t> connections{};  // nconnect=, from 1 to nfs::client::kMostConnections
  std::optional<std::uint32_t> loops{};        // loops=, from 1 to nfs::client::kMostConnections
  std::optional<std::uint32_t> retry{};        // minutes: retry=
  std::optional<std::uint32_t> timeout{};      // seconds: timeout=
  // Options of the URL, by name: "version", "4.2".
  std::map<std::string, std::string> of_url{};
  std::string port{};  // of NFS, behind the host of the URL; empty: not given
};

// `lists` of words that commas separate. What is meant for mount(8) and systemd alone is left out;
// what mount.nfs(8) has is what it is there, or refused with what to write in its place. Of what is
// given twice the last counts. Fails with a sentence.
Result<MountWords, std::string> mount_words(const std::vector<std::string>& lists);

// `url` with what `words` say of it, which it must not say itself; what is no URL stays as it is.
// Fails with a sentence.
Result<std::string, std::string> url_with(const MountWords& words, std::string url);

// What mount(8) says to a helper (mount.stag URL DIR [-sfnv] [-o OPTIONS] [-t TYPE], the program's
// own name first), as words of `stag mount`. nullopt: -f, which asks for nothing but success.
std::optional<std::vector<std::string>> from_mount_helper(const std::vector<std::string>& words);

}  // namespace stag::cli
