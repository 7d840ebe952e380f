#include "fuse/mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/unique_fd.h"
#include "cli/commands.h"
#include "cli/support/arguments.h"
#include "cli/support/child_end.h"
#include "cli/support/local_file.h"
#include "cli/support/log.h"
#include "cli/support/mount_options.h"
#include "cli/support/mounts.h"
#include "cli/support/output.h"
#include "cli/support/process_of_thread.h"
#include "cli/support/remote.h"

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::FileSystem;
using nfs::client::Node;

// A mount waits for its server, however long that takes.
constexpr std::uint32_t kForEver = 1u << 20;  // seconds

constexpr ReasonInfo kLogFileKept{"LogFileKept", Severity::Warning,
                                  "the log file cannot be opened anew; the one before goes on"};

constexpr ReasonInfo kServerAwaited{"ServerAwaited", Severity::Warning,
                                    "programs wait for the server for more than a minute"};
constexpr ReasonInfo kServerGoesOn{"ServerGoesOn", Severity::Info,
                                   "no program waits for the server for long any more"};

constexpr ReasonInfo kWritesGivenUp{"WritesGivenUp", Severity::Error,
                                    "data of a closed file could not be made safe, and is lost"};

constexpr ReasonInfo kFewerConnections{"FewerConnections", Severity::Warning,
                                       "calls go by fewer connections than were asked for"};
constexpr ReasonInfo kOneLoop{"OneLoop", Severity::Warning,
                              "one loop works for all connections, whatever loops= says"};
constexpr ReasonInfo kNothingDelegated{
    "NothingDelegated", Severity::Info,
    "the server does not reach this mount by callbacks, and delegates no files to it"};
constexpr ReasonInfo kLocksAreLocal{
    "LocksAreLocal", Severity::Info,
    "file locks are this machine's alone: by NFS versions 2 and 3 the server is told of none"};

std::string no_process(int error) {
  return fmt::format("there can be no process for the mount: {}",
                     std::generic_category().message(error));
}

// The process that serves a mount, and the one that waits until it does.
class Background {
 public:
  // In the child: nullopt. In the parent, once the child is ready or has ended: the exit code; or
  // why there is no child any more, which has said nothing. Of what it inherits the child keeps
  // `errors`, if that is a file.
  Result<std::optional<Exit>, std::string> begin(const UniqueFd& errors);
  // Tells the parent, and leaves the terminal; standard error becomes `errors`, if that is a file.
  void ready(const UniqueFd& errors);
  bool without_terminal() const { return without_terminal_; }

 private:
  int to_parent_ = -1;
  bool without_terminal_ = false;
};

// The process that started this one would wait for its end otherwise: for that of a pipe, or for a
// lock.
void close_others(int one, int other) {
  unsigned next = STDERR_FILENO + 1;
  for (const int kept : {std::min(one, other), std::max(one, other)}) {
    const auto number = static_cast<unsigned>(kept);
    if (kept < 0 || number < next) continue;
    if (number > next) close_range(next, number - 1, 0);
    next = number + 1;
  }
  close_range(next, ~0U, 0);
}

Result<std::optional<Exit>, std::string> Background::begin(const UniqueFd& errors) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Failure{no_process(errno)};
  const pid_t child = fork();
  if (child < 0) {
    const int error = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    return Failure{no_process(error)};
  }
  if (child == 0) {
    to_parent_ = ends[1];
    close_others(to_parent_, errors.fd());
    return std::optional<Exit>();
  }
  ::close(ends[1]);
  char word = 0;
  ssize_t got = 0;
  while ((got = ::read(ends[0], &word, 1)) < 0 && errno == EINTR) {
  }
  ::close(ends[0]);
  if (got == 1) return std::optional(Exit::Done);
  const Result<int, std::string> exit = end_of_child(child);
  if (!exit) return Failure{"the process of the mount " + exit.error()};
  return std::optional(static_cast<Exit>(*exit));
}

void Background::ready(const UniqueFd& errors) {
  if (to_parent_ < 0) return;
  setsid();
  static_cast<void>(!chdir("/"));
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) dup2(null.fd(), standard);
  dup2(errors ? errors.fd() : null.fd(), STDERR_FILENO);
  static_cast<void>(!::write(to_parent_, "+", 1));
  ::close(std::exchange(to_parent_, -1));
  without_terminal_ = true;
}

bool is_below(const std::string& file, const std::string& directory) {
  std::error_code unknown;
  return std::filesystem::weakly_canonical(file, unknown).string().starts_with(directory + "/");
}

// A pipe that nobody reads is an error rather than waited for.
UniqueFd open_log(const std::string& path) {
  constexpr mode_t kMode = 0644;
  return UniqueFd(::open(path.c_str(),
                         O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, kMode));
}

void tell_long_waits(const std::string& url, std::size_t requests, pid_t thread) {
  if (requests == 0) return log_notice(kServerGoesOn, url);
  std::string detail = fmt::format("{} operation{}", requests, requests == 1 ? "" : "s");
  if (const auto process = process_of_thread(thread))
    detail += fmt::format(", the first of process {}", *process);
  log_notice(kServerAwaited, url, detail);
}

void tell_given_up(const std::string& url, std::uint64_t file_id, std::size_t bytes,
                   const Error& why) {
  log_notice(kWritesGivenUp, url,
             fmt::format("{} bytes of inode {}: {}", bytes, file_id, why.sentence));
}

// A mount of ours that is there already: a second one would hide it, and each take a 'stag umount'.
// mount.nfs(8) refuses it, too. Empty: there is none.
std::string what_is_mounted(const std::string& directory) {
  std::error_code trouble;
  const std::filesystem::path place = place_of_mount(directory, trouble);
  const std::optional<StagMount> mount = stag_mount_at(place);
  if (!mount) return {};
  return fmt::format("'{0}': '{1}' is mounted there already: 'stag umount {0}' first", directory,
                     mount->source);
}

// Where the files are to appear, as the kernel will name it; or why they cannot.
Result<std::string, std::string> mount_point(const std::string& directory) {
  // First: a mount whose server does not answer, or whose program has ended, says nothing of it.
  std::string mounted = what_is_mounted(directory);
  if (!mounted.empty()) return Failure{std::move(mounted)};
  std::error_code missing;
  const std::filesystem::path real = std::filesystem::canonical(directory, missing);
  const bool is_directory = !missing && std::filesystem::is_directory(real, missing);
  if (missing) return Failure{fmt::format("'{}': {}", directory, missing.message())};
  if (!is_directory) return Failure{fmt::format("'{}' is no directory", directory)};
  return real.string();
}

class MountCommand final : public Command {
 public:
  About about() const override {
    return {
        "mount", "show the files of a server in a directory of this machine",
        "  stag mount nfs://server/data ~/data\n"
        "  stag mount -f -o ro nfs://server/data /mnt\n"
        "  stag umount ~/data\n",
        "Needs FUSE (package fuse3), but neither root nor a kernel with NFS over RDMA. Calls "
        "are made as the user\n"
        "who mounts, and only this user sees the files unless '-o allow_other' says otherwise. "
        "A server that does\n"
        "not answer is waited for; Ctrl-C ends a program that waits.\n"
        "\n"
        "Options of -o: 'actimeo=SECONDS' for which attributes are used unasked [1], 'direct' "
        "(nothing is cached),\n"
        "'nconnect=N' for the connections that calls are spread over [1], 'loops=N' for the "
        "threads "
        "that work for\n"
        "connections [1], 'readahead=SIZE' that the kernel reads ahead where root mounts [1M], "
        "'retry=MINUTES' for which\n"
        "a server that is not there yet is tried again [0], 'timeout=SECONDS' as --timeout, those "
        "of "
        "the URL (vers=,\n"
        "proto=, port=, sec=, rsize=, wsize=, ...) as mount.nfs(8) has them, and those of FUSE and "
        "mount(8): ro,\n"
        "allow_other, default_permissions, ...\n"
        "In /etc/fstab: nfs://server/data /mnt stag ro,_netdev 0 0\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.texts("-o,--options", options_, "OPTION,...", "as mount(8) has them");
    arguments.flag("-f,--foreground", foreground_, "stay until it is unmounted; Ctrl-C unmounts");
    arguments.text("--log-file", log_file_, "FILE",
                   "append messages to FILE, opened anew on SIGHUP [the system's log; with -f: "
                   "standard error]");
    arguments.choice("--log-level", log_level_, {"debug", "info", "warning", "error", "off"},
                     "least severe messages to log");
    remote_.declare(arguments);
    arguments.positional("URL", url_, "export, or a directory in it");
    arguments.positional("DIRECTORY", directory_, "where its files appear");
  }

  Exit run() override {
    Result<MountWords, std::string> words = mount_words(options_);
    if (!words) return misused(words.error());
    Result<std::string, std::string> whole = url_with(*words, url_);
    if (!whole) return misused(whole.error());
    whole_url_ = *std::move(whole);
    const Result<std::string, std::string> place = mount_point(directory_);
    if (!place) return failed(place.error());
    directory_ = *place;
    take(*std::move(words));
    if (const auto opened = open_log_file(); !opened) return failed(opened.error());
    if (!foreground_) {
      const Result<std::optional<Exit>, std::string> parent = background_.begin(errors_);
      if (!parent) return failed(parent.error());
      if (*parent) return **parent;
      // logrotate(8) sends it, also where the mount was begun by nohup(1).
      if (!log_file_.empty()) begun_by_nohup_ = std::signal(SIGHUP, SIG_DFL) == SIG_IGN;
    }
    start_log();
    return on_loop([this](Run& run) { return serve(run); });
  }

 private:
  void take(MountWords words) {
    mount_ = {
        .directory = directory_,
        .source = url_,
        .options = std::move(words.passed_on),
        .valid = words.valid,
        .direct = words.direct,
        .read_ahead = words.read_ahead,
        .on_long_waits = [this](std::size_t requests,
                                pid_t first) { tell_long_waits(url_, requests, first); },
        .on_given_up = [this](std::uint64_t file_id, std::size_t bytes,
                              const Error& why) { tell_given_up(url_, file_id, bytes, why); }};
    remote_.connections = words.connections;
    remote_.loops = words.loops.value_or(1);
    remote_.retry = words.retry.value_or(0);
    if (words.timeout) {
      remote_.timeout = *words.timeout;
      remote_.timeout_given = true;
    }
  }
  // If there is one. The error is one sentence.
  Result<Ok, std::string> open_log_file() {
    if (log_file_.empty()) return Ok{};
    // The mount, which would open it again there, would wait for an answer of its own.
    if (is_below(log_file_, directory_))
      return Failure{
          fmt::format("--log-file '{}' lies below the directory of the mount", log_file_)};
    errors_ = open_log(log_file_);
    if (!errors_) return Failure{local_trouble("write", log_file_, errno)};
    std::error_code trouble;
    log_file_ = std::filesystem::absolute(log_file_, trouble).string();  // "/" is where it will be
    if (trouble) return Failure{local_trouble("write", log_file_, trouble.value())};
    return Ok{};
  }

  // In the background no terminal sends it, but logrotate(8).
  bool goes_on_after(int signal) const override {
    if (signal != SIGHUP) return false;
    if (!background_.without_terminal()) return begun_by_nohup_;
    if (!log_file_.empty()) reopen_log();
    return true;
  }
  void reopen_log() const {
    const UniqueFd anew = open_log(log_file_);
    if (!anew) return log_notice(kLogFileKept, log_file_, std::system_category().message(errno));
    // By the numbers that it has, so that code that writes there need not know.
    dup3(anew.fd(), errors_.fd(), O_CLOEXEC);
    dup2(anew.fd(), STDERR_FILENO);
  }

  Task<Exit> serve(Run& run) {
    Outcome<std::unique_ptr<Remote>> remote = co_await Remote::open(run, whole_url_, remote_);
    if (!remote) co_return failed(remote.error());
    const Outcome<Ok> done = co_await serve(run, **remote);
    co_await (*remote)->close();
    co_return done ? Exit::Done : failed(done.error());
  }

  Task<Outcome<Ok>> serve(Run& run, Remote& remote) {
    const Outcome<Node> root = co_await remote.files().walk(remote.path());
    if (!root) co_return Failure{root.error()};
    if (root->attributes.type != nfs::client::FileType::Directory)
      co_return Failure{
          Error::of_local(fmt::format("'{}' is no directory", to_string(remote.url())))};
    tell_what_is_missing(remote);
    // Calls go on while the mount is being ended, but not for long.
    CancelSource ended;
    FileSystem files = remote.files_until(ended);
    // Another one may have come while the server was waited for.
    if (std::string mounted = what_is_mounted(directory_); !mounted.empty())
      co_return Failure{Error::of_local(std::move(mounted))};
    mount_.seeks = remote.url().version == 4 && remote.url().minor.value_or(0) >= 2;
    Outcome<std::unique_ptr<fuse::Mount>> mount = fuse::Mount::open(run.loop, files, *root, mount_);
    if (!mount) co_return Failure{mount.error()};
    background_.ready(errors_);
    const CancelCallback on_interrupt(run.cancel, [&] { (*mount)->unmount(); });
    co_await (*mount)->unmounted();
    co_await (*mount)->settled(ended);
    co_return Ok{};
  }

  // What works all the same. By version 4.0 the URL says whether there are callbacks, and those by
  // TCP come later.
  void tell_what_is_missing(Remote& remote) const {
    const nfs::client::Url& url = remote.url();
    if (remote.connections() < url.connections)
      log_notice(kFewerConnections, url_, std::to_string(remote.connections()));
    if (remote_.loops > 1 && url.security != nfs::client::Url::Security::Sys)
      log_notice(kOneLoop, url_, "a context of Kerberos belongs to one loop");
    if (!remote.files().has_locks()) log_notice(kLocksAreLocal, url_);
    const bool calls_back = url.version == 4 && url.minor.value_or(0) > 0 && !url.callbacks_by_tcp;
    if (calls_back && !remote.called_back()) log_notice(kNothingDelegated, url_);
  }

  // Why a mount does not begin is said on standard error in any case.
  void start_log() {
    if (!log_file_.empty())
      start_file_log(log_level_, errors_.fd());
    else if (foreground_)
      cli::start_log(log_level_, LogFormat::Text);
    else
      start_system_log(log_level_, directory_);
  }

  std::string url_, directory_;
  std::string whole_url_;  // with what the options say of it
  std::vector<std::string> options_;
  bool foreground_ = false;
  bool begun_by_nohup_ = false;
  std::string log_file_, log_level_ = "info";
  UniqueFd errors_;
  RemoteOptions remote_{.timeout = kForEver, .delegations = true, .hard = true};
  fuse::MountOptions mount_;
  Background background_;
};

}  // namespace

std::unique_ptr<Command> make_mount() {
  return std::make_unique<MountCommand>();
}

}  // namespace stag::cli
