#include "cli/support/mount_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/size.h"

namespace stag::cli {
namespace {

constexpr std::string_view kSeconds = "actimeo=";
constexpr std::string_view kConnections = "nconnect=";
constexpr std::string_view kLoops = "loops=";
constexpr std::string_view kRetry = "retry=";
constexpr std::string_view kTimeout = "timeout=";
constexpr std::string_view kReadAhead = "readahead=";
constexpr std::string_view kPort = "port=";
constexpr double kMostSeconds = 86'400;
constexpr std::uint32_t kMostTimeout = 1u << 20;  // seconds, as --timeout
constexpr std::uint32_t kMostMinutes = 10'000;    // those of mount.nfs in the background
constexpr std::uint64_t kMostReadAhead = 64 << 20;

// Of mount(8) and systemd (fstab(5), systemd.mount(5)); and those of mount(8) for every file system
// that mean nothing here: the server keeps times of access and versions of files as it does.
bool is_of_others(std::string_view word) {
  constexpr auto kWords = std::to_array<std::string_view>({
      "",
      "defaults",
      "auto",
      "noauto",
      "user",
      "nouser",
      "users",
      "owner",
      "group",
      "nofail",
      "_netdev",
      "rw",
      "relatime",
      "norelatime",
      "strictatime",
      "nostrictatime",
      "lazytime",
      "nolazytime",
      "diratime",
      "nodiratime",
      "iversion",
      "noiversion",
      "mand",
      "nomand",
      "silent",
      "loud",
      // Of mount.nfs(8), what is so here in any case.
      "hard",
      "fg",
      "cto",
      "ac",
      "intr",
      "nointr",
      "rdirplus",
      "noresvport",
  });
  constexpr auto kBegins = std::to_array<std::string_view>({"x-", "X-", "comment=", "user="});
  const auto begins = [&](std::string_view begin) { return word.starts_with(begin); };
  return std::ranges::find(kWords, word) != kWords.end() || std::ranges::any_of(kBegins, begins);
}

struct Other {
  std::string_view word;  // its begin, if it ends with '='
  std::string_view here;

  bool means(std::string_view given) const {
    return word.ends_with('=') ? given.starts_with(word) : given == word;
  }
};
constexpr std::string_view kAttributes = "write actimeo=SECONDS, which is for all attributes";
constexpr std::string_view kFailing =
    "write timeout=SECONDS, after which a call fails (EIO); without it a call waits";
constexpr std::string_view kLocks =
    "locks are the server's with version 4, and of this machine with versions 2 and 3";
// Options of mount.nfs(8) that are others here, or that are an option of the URL in place of one of
// mounting.
constexpr auto kOthers = std::to_array<Other>({
    {"soft", kFailing},
    {"softerr", kFailing},
    {"timeo=", kFailing},
    {"retrans=", kFailing},
    {"noac", "write actimeo=0"},
    {"acregmin=", kAttributes},
    {"acregmax=", kAttributes},
    {"acdirmin=", kAttributes},
    {"acdirmax=", kAttributes},
    {"lookupcache=", "write actimeo=SECONDS, which is for names, too"},
    {"bg", "write retry=MINUTES, or x-systemd.automount"},
    {"minorversion=", "write vers=4.0, vers=4.1 or vers=4.2"},
    {"clientaddr=", "write callback=ADDRESS, where the server calls a client of version 4.0"},
    {"udp", "write proto=rdma or proto=tcp"},
    {"remount", "'mount -i -o remount,...' (root) changes ro and the like without 'stag mount'"},
    {"lock", kLocks},
    {"nolock", kLocks},
    {"local_lock=", kLocks},
    {"uid=", "write ?uid=N in the URL: who the server takes you for"},
    {"gid=", "write ?gid=N in the URL: who the server takes you for"},
});

// What mount.nfs(8) has, and the URL by another name or with a value.
constexpr auto kOfUrl = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"rdma", "proto=rdma"},
    {"tcp", "proto=tcp"},
    {"v2", "version=2"},
    {"v3", "version=3"},
    {"v4", "version=4"},
    {"v4.0", "version=4.0"},
    {"v4.1", "version=4.1"},
    {"v4.2", "version=4.2"},
    {"port=0", "port=rpcbind"},
    {"vers=", "version="},
    {"nfsvers=", "version="},
    {"version=", "version="},
    {"proto=", "proto="},
    {"fabric=", "fabric="},
    {"sec=", "sec="},
    {"mountport=", "mountport="},
    {"rsize=", "rsize="},
    {"wsize=", "wsize="},
    {"rpcbindport=", "rpcbindport="},
    {"port=rpcbind", "port=rpcbind"},
    {"callback=", "callback="},
});

// `word` as an option of the URL.
std::optional<std::string> option_of_url(std::string_view word) {
  for (const auto& [begin, option] : kOfUrl) {
    if (!Other{begin, {}}.means(word)) continue;
    return fmt::format("{}{}", option, begin.ends_with('=') ? word.substr(begin.size()) : "");
  }
  return std::nullopt;
}

// A number from `least` to `most`.
bool parse(std::string_view text, std::uint32_t least, std::uint32_t most, std::uint32_t& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc() && end == text.data() + text.size() && to >= least && to <= most;
}

// What the URL says of ports stands in two places of it.
void add_to_url(MountWords& to, const std::string& option) {
  const std::size_t equals = option.find('=');
  to.of_url[option.substr(0, equals)] = option.substr(equals + 1);
  if (option.starts_with(kPort)) to.port.clear();
}

bool add(MountWords& to, std::string_view word) {
  if (is_of_others(word)) return true;
  if (const std::optional<std::string> option = option_of_url(word)) {
    add_to_url(to, *option);
    return static_cast<bool>(nfs::client::Url::parse(fmt::format("nfs://host/?{}", *option)));
  }
  if (word.starts_with(kPort)) {
    std::uint32_t port = 0;
    to.port = word.substr(kPort.size());
    to.of_url.erase("port");
    return parse(to.port, 1, UINT16_MAX, port);
  }
  if (word == "direct") {
    to.direct = true;
    return true;
  }
  if (word.starts_with(kConnections))
    return parse(word.substr(kConnections.size()), 1, nfs::client::kMostConnections,
                 to.connections.emplace());
  if (word.starts_with(kLoops))
    return parse(word.substr(kLoops.size()), 1, nfs::client::kMostConnections, to.loops.emplace());
  if (word.starts_with(kRetry))
    return parse(word.substr(kRetry.size()), 0, kMostMinutes, to.retry.emplace());
  if (word.starts_with(kTimeout))
    return parse(word.substr(kTimeout.size()), 1, kMostTimeout, to.timeout.emplace());
  if (word.starts_with(kReadAhead)) {
    const std::optional<std::uint64_t> size = parse_size(word.substr(kReadAhead.size()));
    to.read_ahead = size.value_or(0);
    return size && *size <= kMostReadAhead;
  }
  if (std::ranges::any_of(kOthers, [&](const Other& other) { return other.means(word); }))
    return false;
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
  if (word.starts_with(kConnections) || word.starts_with(kLoops))
    return fmt::format("'-o {}': a number from 1 to {} is wanted", word,
                       nfs::client::kMostConnections);
  if (word.starts_with(kRetry))
    return fmt::format("'-o {}': a number of minutes up to {} is wanted", word, kMostMinutes);
  if (word.starts_with(kTimeout))
    return fmt::format("'-o {}': a number of seconds from 1 to {} is wanted", word, kMostTimeout);
  if (word.starts_with(kReadAhead))
    return fmt::format("'-o {}': a size up to {}M is wanted, as 1M, or 0", word,
                       kMostReadAhead >> 20);
  if (const std::optional<std::string> option = option_of_url(word))
    return fmt::format(
        "'-o {}': {}", word,
        nfs::client::Url::parse(fmt::format("nfs://host/?{}", *option)).error().sentence);
  if (word.starts_with(kPort))
    return fmt::format("'-o {}': a number of a port is wanted, or rpcbind", word);
  for (const Other& other : kOthers)
    if (other.means(word)) return fmt::format("'-o {}': {}", word, other.here);
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
  // Every user of the mount has the rights of the user who mounts, unless the kernel looks at
  // modes, too.
  if (std::ranges::find(words.passed_on, "allow_other") != words.passed_on.end())
    words.passed_on.emplace_back("default_permissions");
  return words;
}

Result<std::string, std::string> url_with(const MountWords& words, std::string url) {
  const auto parsed = nfs::client::Url::parse(url);
  if (!parsed) return url;  // the user of the URL says what is wrong
  if (!words.port.empty()) {
    if (parsed->port || parsed->port_from_rpcbind)
      return Failure{fmt::format("'-o port={}': the URL says where the port is", words.port)};
    const std::size_t host = url.find("//") + 2;
    url.insert(std::min(url.find_first_of("/?", host), url.size()), ":" + words.port);
  }
  for (const auto& [name, value] : words.of_url) {
    const bool first = url.find('?') == std::string::npos;
    url += fmt::format("{}{}={}", first ? '?' : '&', name, value);
    if (const auto both = nfs::client::Url::parse(url); !both)
      return Failure{fmt::format("'-o {}={}': {}", name, value, both.error().sentence)};
  }
  return url;
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
