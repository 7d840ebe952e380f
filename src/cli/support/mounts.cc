#include "cli/support/mounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

namespace stag::cli {
namespace {

// Blanks are octal there.
std::string unescaped(std::string_view text) {
  std::string path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 3 >= text.size()) {
      path.push_back(text[i]);
      continue;
    }
    path.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                     (text[i + 3] - '0')));
    i += 3;
  }
  return path;
}

std::optional<uid_t> user_of(const std::string& options) {
  constexpr std::string_view kUser = "user_id=";
  std::istringstream words(options);
  for (std::string word; std::getline(words, word, ',');) {
    uid_t user = 0;
    if (word.starts_with(kUser) &&
        std::from_chars(word.data() + kUser.size(), word.data() + word.size(), user).ec ==
            std::errc())
      return user;
  }
  return std::nullopt;
}

struct MountinfoLine {
  std::string directory;
  std::optional<StagMount> ours{};
};

MountinfoLine mountinfo_line(const std::string& text) {
  std::istringstream words(text);
  std::string word, device, path;
  words >> word >> word >> device >> word >> path;
  while (words >> word && word != "-") {
  }
  std::string type, source, options;
  words >> type >> source >> options;
  MountinfoLine line{unescaped(path)};
  if (type == "fuse.stag") line.ours = StagMount{device, unescaped(source), user_of(options)};
  return line;
}

// The path of what is called `directory`. Its last component is not looked at: that would ask the
// mount itself, which may hang.
std::filesystem::path named_path(const std::string& directory, std::error_code& trouble) {
  std::filesystem::path path = std::filesystem::absolute(directory, trouble).lexically_normal();
  if (trouble) return {};
  if (!path.has_filename() && path.has_parent_path()) path = path.parent_path();
  return std::filesystem::weakly_canonical(path.parent_path(), trouble) / path.filename();
}

// nullopt: it is not seen there.
std::optional<std::string> directory_of(const StagMount& mount, std::istream& mountinfo) {
  for (std::string text; std::getline(mountinfo, text);) {
    const MountinfoLine line = mountinfo_line(text);
    if (line.ours && line.ours->device == mount.device && line.ours->source == mount.source)
      return line.directory;
  }
  return std::nullopt;
}

}  // namespace

std::optional<StagMount> stag_mount_at(const std::string& directory) {
  std::ifstream mountinfo("/proc/self/mountinfo");
  std::optional<StagMount> found;
  for (std::string text; std::getline(mountinfo, text);) {
    MountinfoLine line = mountinfo_line(text);
    // The last of several at one place is the one that is seen.
    if (line.directory == directory) found = std::move(line.ours);
  }
  return found;
}

std::filesystem::path place_of_mount(const std::string& directory, std::error_code& trouble) {
  constexpr int kLinksMost = 40;
  std::filesystem::path path = named_path(directory, trouble);
  for (int links = 0; !trouble && links < kLinksMost; ++links) {
    if (stag_mount_at(path)) return path;
    std::error_code no_link;
    const std::filesystem::path target = std::filesystem::read_symlink(path, no_link);
    if (no_link) return {};
    path = named_path(path.parent_path() / target, trouble);
  }
  return {};
}

std::optional<Sight> place_of_copy(const StagMount& unmounted) {
  std::ifstream own("/proc/self/mountinfo");
  if (auto directory = directory_of(unmounted, own)) return Sight{0, *std::move(directory)};
  std::set<std::filesystem::path> namespaces;
  std::error_code ended;
  std::filesystem::directory_iterator processes("/proc", ended);
  for (; !ended && processes != std::filesystem::directory_iterator(); processes.increment(ended)) {
    const std::string name = processes->path().filename();
    pid_t process = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), process);
    if (read.ec != std::errc() || read.ptr != name.data() + name.size()) continue;
    // The system does not tell the namespace of another user's process.
    std::error_code not_told;
    const auto space = std::filesystem::read_symlink(processes->path() / "ns/mnt", not_told);
    if (!not_told && !namespaces.insert(space).second) continue;
    std::ifstream mountinfo(processes->path() / "mountinfo");
    if (auto directory = directory_of(unmounted, mountinfo))
      return Sight{process, *std::move(directory)};
  }
  return std::nullopt;
}

}  // namespace stag::cli
