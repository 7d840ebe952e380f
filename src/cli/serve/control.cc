#include "cli/serve/control.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/reason.h"
#include "base/unique_fd.h"
#include "cli/control/control_client.h"
#include "cli/serve/hand_over.h"
#include "cli/serve/host_lookup.h"
#include "cli/serve/services.h"
#include "net/local_socket.h"

namespace stag::cli {
namespace {

constexpr std::string_view kNone = "none";

std::string link_in(const std::string& state) {
  return state + "/control-link";
}

std::string path_of(const ControlSettings& settings, const std::string& state) {
  std::error_code ignored;
  return std::filesystem::absolute(
      settings.path.empty() ? default_control_path(state) : settings.path, ignored);
}

bool are_same_file(const std::string& one, const std::string& other) {
  struct stat first {};
  struct stat second {};
  return ::stat(one.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

std::string cannot_make(const std::string& path, const std::string& why) {
  return fmt::format("cannot make the control socket {} (--control): {}", path, why);
}

// The error is one phrase.
Result<gid_t, std::string> group_of(const std::string& name) {
  // An entry has the names of all members.
  constexpr std::size_t kMost = 64 << 20;
  std::vector<char> memory(65536);
  group found{};
  group* result = nullptr;
  int failed = 0;
  while ((failed = getgrnam_r(name.c_str(), &found, memory.data(), memory.size(), &result)) ==
             ERANGE &&
         memory.size() < kMost)
    memory.resize(2 * memory.size());
  if (failed != 0)
    return Failure{fmt::format("the name service cannot say whether there is a group '{}' ({})",
                               name, std::strerror(failed))};
  if (result == nullptr) return Failure{fmt::format("there is no group '{}'", name)};
  return found.gr_gid;
}

// Asks the kernel, by a file without a name. The error is its reason.
Result<Ok, std::string> may_give_to(gid_t group) {
  const UniqueFd file(::memfd_create("control-group", MFD_CLOEXEC));
  if (!file || ::fchown(file.fd(), static_cast<uid_t>(-1), group) == 0) return Ok{};
  return Failure{std::string(std::strerror(errno))};
}

}  // namespace

void ControlSettings::declare(Arguments& arguments) {
  arguments.text(
      "--control", path, "PATH",
      "Unix socket for 'stag clients', 'stag status', 'stag top' and 'stag capture'; none: without "
      "[control in the state directory]");
  arguments.text("--control-group", group, "GROUP",
                 "users who may look at the control socket, but change nothing [none]");
}

Result<Ok, std::string> ControlSettings::check() const {
  if (path == kNone || group.empty()) return Ok{};
  const Result<gid_t, std::string> number = group_of(group);
  if (!number) return Failure{fmt::format("--control-group: {}", number.error())};
  const auto given = may_give_to(*number);
  if (given) return Ok{};
  return Failure{
      fmt::format("--control-group: this user may not give the control socket to the group '{}' "
                  "({}); make him a member of it, or name a group that he is in",
                  group, given.error())};
}

Result<Ok, std::string> ControlSettings::check_beside(const ControlSettings& running,
                                                      Duration patience,
                                                      const std::stop_token& stop) const {
  if (group == running.group && running.path != kNone) return Ok{};
  const auto ask = [asked = *this](const std::string&) -> HostAnswer {
    if (const auto checked = asked.check(); !checked) return Failure{checked.error()};
    return std::vector<std::string>();
  };
  // The thread that waits for the name service is left to itself.
  const HostInquiry inquiry({group}, ask);
  inquiry.wait(patience, stop);
  if (!inquiry.ended())
    return Failure{std::string("--control-group: the name service does not answer")};
  const HostAnswer answer = inquiry.answers().at(group);
  if (!answer) return Failure{answer.error()};
  return Ok{};
}

Control::Control(const std::string& state, Services& services, HandOver& hand_over,
                 std::shared_ptr<fabric::capture::Tap> tap)
    : clients_(services.nfs4().administration(), services.locking().service()),
      status_(services.observing().observation(), services.observing().sources()),
      exports_(services.nfs(), services.exports()),
      adoption_(services.recovery(), services.locking().service(), services.stores(), state),
      capture_(std::move(tap)) {
  clients_.add_to(commands_);
  status_.add_to(commands_);
  exports_.add_to(commands_);
  adoption_.add_to(commands_);
  capture_.add_to(commands_);
  hand_over.add_to(commands_);
}

void Control::stop() {
  socket_->stop();
  if (!adoption_.is_under_way()) socket_->join();
}

Control::Link::Link(const std::string& state, const std::string& to) : at_(link_in(state)) {
  std::error_code ignored;
  std::filesystem::remove(at_, ignored);
  // Where it cannot be made, a successor with these settings takes over all the same.
  if (!to.empty()) std::filesystem::create_symlink(to, at_, ignored);
}

Control::Link::~Link() {
  std::error_code ignored;
  std::filesystem::remove(at_, ignored);
}

std::vector<std::string> Control::places(const ControlSettings& settings,
                                         const std::string& state) {
  std::vector<std::string> places{path_of({}, state)};
  std::error_code none;
  if (const auto linked = std::filesystem::read_symlink(link_in(state), none); !none)
    places.push_back(linked);
  if (!settings.path.empty() && settings.path != kNone) places.push_back(path_of(settings, state));
  return places;
}

Result<Ok, std::string> Control::rehearse(const ControlSettings& settings,
                                          const std::vector<std::string>& own, bool makes) {
  if (settings.path.empty() || settings.path == kNone) return Ok{};
  const std::string path = path_of(settings, {});
  const auto is_there = [&](const std::string& each) { return are_same_file(each, path); };
  if (std::ranges::any_of(own, is_there)) return Ok{};
  if (!makes) {
    const auto free = net::may_listen_locally(path);
    if (!free) return Failure{cannot_make(path, free.error())};
    return Ok{};
  }
  const auto made = net::listen_locally({.path = path});
  if (!made) return Failure{cannot_make(path, made.error())};
  unlink(path.c_str());
  return Ok{};
}

Result<std::unique_ptr<Control>, std::string> Control::open(
    const ControlSettings& settings, const std::string& state, Services& services,
    HandOver& hand_over, std::shared_ptr<fabric::capture::Tap> tap) {
  if (settings.path == kNone) {
    const Link none(state, "");
    return std::unique_ptr<Control>();
  }
  ControlOptions options;
  const bool asked = !settings.path.empty();
  options.path = path_of(settings, state);
  if (const auto checked = settings.check(); !checked) return Failure{checked.error()};
  if (!settings.group.empty()) {
    const Result<gid_t, std::string> group = group_of(settings.group);
    if (!group) return Failure{fmt::format("--control-group: {}", group.error())};
    options.group = *group;
  }
  std::unique_ptr<Control> made(new Control(state, services, hand_over, std::move(tap)));
  auto socket = ControlSocket::open(options, made->commands_);
  if (socket) {
    made->socket_ = *std::move(socket);
    made->link_.emplace(state, asked ? options.path : "");
    return made;
  }
  if (asked) return Failure{cannot_make(options.path, socket.error())};
  trace(Reason::ControlUnavailable, options.path, socket.error());
  return std::unique_ptr<Control>();
}

}  // namespace stag::cli
