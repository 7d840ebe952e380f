#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "base/unique_fd.h"
#include "cli/commands.h"
#include "cli/support/arguments.h"
#include "cli/support/child_end.h"
#include "cli/support/mounts.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

// Beside root, as a part of a sentence.
std::string and_root(uid_t user) {
  if (user == 0) return "root";
  const passwd* known = getpwuid(user);
  return fmt::format("{} and root", known ? known->pw_name : fmt::format("user {}", user));
}

struct Ended {
  bool good = false;
  std::string said{};  // on standard error, as one line
};

// Runs a program to its end; an errno where it cannot be run.
Result<Ended, int> run_program(const std::vector<const char*>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Failure{errno};
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  posix_spawn_file_actions_t actions;
  if (const int error = posix_spawn_file_actions_init(&actions)) return Failure{error};
  int error = posix_spawn_file_actions_adddup2(&actions, to.fd(), STDERR_FILENO);
  pid_t child = 0;
  if (error == 0)
    error = posix_spawnp(&child, words[0], &actions, nullptr,
                         const_cast<char* const*>(words.data()), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Failure{error};
  to = UniqueFd();
  Ended ended;
  ended.said = read_to_end(from.fd());
  while (ended.said.ends_with('\n')) ended.said.pop_back();
  std::ranges::replace(ended.said, '\n', ' ');
  const Result<int, std::string> exit = end_of_child(child);
  ended.good = exit && *exit == 0;
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
    const std::optional<StagMount> mount = stag_mount_at(place);
    const Exit ended = geteuid() == 0 ? as_root(place) : as_user(place);
    if (ended == Exit::Done && mount && !lazy_) tell_of_copy(*mount);
    return ended;
  }

 private:
  // A mount that goes on would be taken for one that hangs.
  void tell_of_copy(const StagMount& mount) const {
    const std::optional<Sight> copy = place_of_copy(mount);
    if (!copy) return;
    if (copy->process == 0)
      return complain(
          fmt::format("'{}' is unmounted; the mount goes on, as it is mounted on '{}', too",
                      directory_, copy->directory));
    complain(
        fmt::format("'{}' is unmounted; the mount goes on as long as process {} (a container's?) "
                    "and others in its mount namespace, which have a copy of it on '{}', or until "
                    "its own process is ended (SIGTERM)",
                    directory_, copy->process, copy->directory));
  }
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
    const std::optional<StagMount> mount = stag_mount_at(path);
    if (mount && mount->by && *mount->by != getuid())
      return failed(fmt::format("'{}' is another user's mount: only {} may unmount it ({})",
                                directory_, and_root(*mount->by), ended->said));
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
