#include "cli/support/mount_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "nfs/client/session/url.h"

namespace stag::cli {
namespace {

constexpr std::string_view kSeconds = "actimeo=";
constexpr std::string_view kConnections = "nconnect=";
constexpr std::string_view kRetry = "retry=";
constexpr double kMostSeconds = 86'400;
constexpr std::uint32_t kMostMinutes = 10'000;  // those of mount.nfs in the background

// Of mount(8) and systemd (fstab(5), systemd.mount(5)); and those of mount(8) for every file system
// that mean nothing here: the server keeps times of access and versions of files as it does.
bool is_of_others(std::string_view word) {
  constexpr auto kWords = std::to_array<std::string_view>({
      "",         "defaults",   "auto",        "noauto",        "user",     "nouser",
      "users",    "owner",      "group",       "nofail",        "_netdev",  "rw",
      "relatime", "norelatime", "strictatime", "nostrictatime", "lazytime", "nolazytime",
      "diratime", "nodiratime", "iversion",    "noiversion",    "mand",     "nomand",
      "silent",   "loud",
  });
  constexpr auto kBegins = std::to_array<std::string_view>({"x-", "X-", "comment=", "user="});
  const auto begins = [&](std::string_view begin) { return word.starts_with(begin); };
  return std::ranges::find(kWords, word) != kWords.end() || std::ranges::any_of(kBegins, begins);
}

// A number from `least` to `most`.
bool parse(std::string_view text, std::uint32_t least, std::uint32_t most, std::uint32_t& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc() && end == text.data() + text.size() && to >= least && to <= most;
}

bool add(MountWords& to, std::string_view word) {
  if (is_of_others(word)) return true;
  if (word == "direct") {
    to.direct = true;
    return true;
  }
  if (word.starts_with(kConnections))
    return parse(word.substr(kConnections.size()), 1, nfs::client::kMostConnections,
                 to.connections.emplace());
  if (word.starts_with(kRetry))
    return parse(word.substr(kRetry.size()), 0, kMostMinutes, to.retry.emplace());
  if (!word.starts_with(kSeconds)) {
    to.passed_on.emplace_back(word);
    return true;
  }
  word.remove_prefix(kSeconds.size());
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), to.valid);
  return error == std::errc() && end == word.data() + word.size() && to.valid >= 0 &&
         to.valid <= kMostSeconds;
}

std::string refusal(std::string_view word) {
  if (word.starts_with(kConnections))
    return fmt::format("'-o {}': a number from 1 to {} is wanted", word,
                       nfs::client::kMostConnections);
  if (word.starts_with(kRetry))
    return fmt::format("'-o {}': a number of minutes up to {} is wanted", word, kMostMinutes);
  return fmt::format("'-o {}': a number of seconds up to {} is wanted", word, kMostSeconds);
}

}  // namespace

Result<MountWords, std::string> mount_words(const std::vector<std::string>& lists) {
  MountWords words;
  for (std::string_view list : lists) {
    while (!list.empty()) {
      const std::string_view word = list.substr(0, list.find(','));
      list.remove_prefix(std::min(word.size() + 1, list.size()));
      if (!add(words, word)) return Failure{refusal(word)};
    }
  }
  // Whoever uses the mount has the rights of who mounts, unless the kernel looks at modes, too.
  if (std::ranges::find(words.passed_on, "allow_other") != words.passed_on.end())
    words.passed_on.emplace_back("default_permissions");
  return words;
}

std::optional<std::vector<std::string>> from_mount_helper(const std::vector<std::string>& words) {
  std::vector<std::string> to = {"stag", "mount"};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with('-')) {
      to.push_back(word);
    } else if (word == "-o" && i + 1 < words.size()) {
      to.push_back(word);
      to.push_back(words[++i]);
    } else if (word == "-t" || word == "-N") {
      ++i;
    } else if (word.find('f') != std::string::npos) {
      return std::nullopt;
    }
  }
  return to;
}

}  // namespace stag::cli
