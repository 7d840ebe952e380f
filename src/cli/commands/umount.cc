#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "cli/commands.h"
#include "cli/support/arguments.h"
#include "net/unique_fd.h"

namespace stag::cli {
namespace {

// The path of a mount in /proc/self/mountinfo, where blanks are octal (proc(5)).
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

// What is mounted at a directory.
struct Mounted {
  bool ours = false;
  std::optional<uid_t> by{};  // where FUSE tells it
};

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

// Beside root, as a part of a sentence.
std::string and_root(uid_t user) {
  if (user == 0) return "root";
  const passwd* known = getpwuid(user);
  return fmt::format("{} and root", known ? known->pw_name : fmt::format("user {}", user));
}

Mounted mounted_at(const std::string& directory) {
  std::ifstream mounts("/proc/self/mountinfo");
  Mounted found;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string word, path;
    for (int i = 0; i < 5; ++i) words >> path;
    if (unescaped(path) != directory) continue;
    while (words >> word && word != "-") {
    }
    std::string type, source, options;
    words >> type >> source >> options;
    // The last of several at one place is the one that is seen.
    found = {type == "fuse.stag", user_of(options)};
  }
  return found;
}

// The path of what is called `directory`. Its last component is not looked at: that would ask the
// mount itself, which may hang.
std::filesystem::path named_path(const std::string& directory, std::error_code& trouble) {
  std::filesystem::path path = std::filesystem::absolute(directory, trouble).lexically_normal();
  if (trouble) return {};
  if (!path.has_filename() && path.has_parent_path()) path = path.parent_path();
  return std::filesystem::weakly_canonical(path.parent_path(), trouble) / path.filename();
}

// Where a mount of ours is that is called `directory`, or a symbolic link to it; empty: there is
// none.
std::filesystem::path place_of_mount(const std::string& directory, std::error_code& trouble) {
  constexpr int kLinksMost = 40;
  std::filesystem::path path = named_path(directory, trouble);
  for (int links = 0; !trouble && links < kLinksMost; ++links) {
    if (mounted_at(path).ours) return path;
    std::error_code no_link;
    const std::filesystem::path target = std::filesystem::read_symlink(path, no_link);
    if (no_link) return {};
    path = named_path(path.parent_path() / target, trouble);
  }
  return {};
}

struct Ended {
  bool good = false;
  std::string said{};  // on standard error, as one line
};

// Runs a program to its end; an errno where it cannot be run.
Result<Ended, int> run_program(const std::vector<const char*>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Failure{errno};
  const net::UniqueFd from(ends[0]);
  net::UniqueFd to(ends[1]);
  posix_spawn_file_actions_t actions;
  if (const int error = posix_spawn_file_actions_init(&actions)) return Failure{error};
  int error = posix_spawn_file_actions_adddup2(&actions, to.fd(), STDERR_FILENO);
  pid_t child = 0;
  if (error == 0)
    error = posix_spawnp(&child, words[0], &actions, nullptr,
                         const_cast<char* const*>(words.data()), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Failure{error};
  to = net::UniqueFd();
  Ended ended;
  std::array<char, 4096> piece;
  ssize_t got = 0;
  while ((got = ::read(from.fd(), piece.data(), piece.size())) > 0 || (got < 0 && errno == EINTR))
    if (got > 0) ended.said.append(piece.data(), static_cast<std::size_t>(got));
  while (ended.said.ends_with('\n')) ended.said.pop_back();
  std::ranges::replace(ended.said, '\n', ' ');
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ended.good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return ended;
}

class Umount final : public Command {
 public:
  About about() const override {
    return {"umount", "end a mount of 'stag mount'", "  stag umount ~/data\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("-l,--lazy", lazy_,
                   "also while it is in use: it is gone at once, for programs that use it as soon "
                   "as they close what they have open");
    arguments.positional("DIRECTORY", directory_, "where it is mounted");
  }

  Exit run() override {
    std::error_code trouble;
    const std::filesystem::path place = place_of_mount(directory_, trouble);
    if (trouble) return failed(fmt::format("'{}': {}", directory_, trouble.message()));
    if (place.empty())
      return failed(fmt::format("nothing is mounted at '{}' by 'stag mount'", directory_));
    return geteuid() == 0 ? as_root(place) : as_user(place);
  }

 private:
  Exit busy() const {
    return failed(fmt::format(
        "'{}' is in use ('fuser -vm {}' shows by whom); with --lazy it ends nevertheless",
        directory_, directory_));
  }
  Exit as_root(const std::string& path) const {
    if (umount2(path.c_str(), lazy_ ? MNT_DETACH : 0) == 0) return Exit::Done;
    if (errno == EBUSY) return busy();
    return failed(fmt::format("'{}': {}", directory_, std::generic_category().message(errno)));
  }
  // What root has allowed users to unmount, fusermount3 does for them.
  Exit as_user(const std::string& path) const {
    std::vector<const char*> words = {"fusermount3", "-u"};
    if (lazy_) words.push_back("-z");
    words.insert(words.end(), {"--", path.c_str(), nullptr});
    const Result<Ended, int> ended = run_program(words);
    if (!ended && ended.error() == ENOENT)
      return failed("fusermount3 is missing: install the package fuse3");
    if (!ended) return failed(std::generic_category().message(ended.error()));
    if (ended->good) return Exit::Done;
    if (ended->said.find(std::generic_category().message(EBUSY)) != std::string::npos)
      return busy();
    const std::optional<uid_t> by = mounted_at(path).by;
    if (by && *by != getuid())
      return failed(fmt::format("'{}' is another user's mount: only {} may unmount it ({})",
                                directory_, and_root(*by), ended->said));
    return failed(ended->said.empty() ? "fusermount3 failed" : ended->said);
  }

  std::string directory_;
  bool lazy_ = false;
};

}  // namespace

std::unique_ptr<Command> make_umount() {
  return std::make_unique<Umount>();
}

}  // namespace stag::cli
