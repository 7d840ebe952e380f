#include "cli/serve/hand_over.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "cli/support/log.h"
#include "net/passed_sockets.h"

namespace stag::cli {
namespace {

constexpr std::string_view kCommand = "take-over";
constexpr std::string_view kGo = "make-way";
constexpr unsigned kPatienceSeconds = 60;
// The reply's first line.
constexpr std::size_t kLongestReply = 4096;

// The same for every name of a directory; empty where none is.
std::string identity_of(const std::string& directory) {
  struct stat found {};
  if (::stat(directory.c_str(), &found) != 0) return {};
  return fmt::format("{}:{}", found.st_dev, found.st_ino);
}

}  // namespace

HandOver::HandOver(const ServedSockets& sockets, const Observing& observing,
                   const std::string& state, std::function<Duration()> limit,
                   std::function<void()> asked)
    : sockets_(sockets),
      observing_(observing),
      state_(identity_of(state)),
      limit_(std::move(limit)),
      asked_(std::move(asked)) {}

void HandOver::add_to(ControlCommands& commands) {
  commands.emplace(kCommand,
                   [this](const ControlRequest& request, ControlReply& reply,
                          const ControlPeer& peer) { return give(request, reply, peer); });
  commands.emplace(
      kGo,
      [this](const ControlRequest&, ControlReply&, const ControlPeer& peer) -> Task<std::string> {
        co_return make_way(peer);
      });
}

Task<std::string> HandOver::give(const ControlRequest& request, ControlReply& reply,
                                 const ControlPeer& peer) {
  if (!peer.administrator)
    co_return std::string("only root and the user of the server may take its place");
  if (request.members.text("state") != state_)
    co_return std::string("it serves with another state directory");
  std::vector<UniqueFd> sockets = sockets_.copies();
  // Before it listens, and once it ends, there is nothing to give.
  if (sockets.empty()) co_return std::string("the server is starting or ending; try again");
  const auto limit = std::chrono::duration_cast<std::chrono::seconds>(limit_()).count();
  const Address metrics = observing_.metrics_at();
  Json row;
  row.set("sockets", std::uint64_t{sockets.size()})
      .set("seconds", static_cast<std::uint64_t>(limit))
      .set("metrics", std::uint64_t{metrics.port})
      .set("metrics_host", metrics.host);
  reply.add(row);
  reply.attach(std::move(sockets));
  const bool sent = co_await reply.flush();
  if (sent) successor_ = peer.credentials.pid;
  co_return std::string();
}

// A successor that has failed meanwhile leaves everything as it was.
std::string HandOver::make_way(const ControlPeer& peer) {
  if (!peer.administrator || successor_ != peer.credentials.pid)
    return "only a successor that has the sockets may ask";
  log_notice(Event::HandedOver, "control", peer.text());
  asked_();
  return {};
}

TakeOver::TakeOver(std::string control_path, std::string state, UniqueFd control,
                   std::vector<UniqueFd> sockets, const JsonObject& said)
    : control_path_(std::move(control_path)),
      state_(std::move(state)),
      control_(std::move(control)),
      sockets_(std::move(sockets)),
      limit_(std::chrono::seconds(said.number("seconds").value_or(0))) {
  // Where only the port is told, they may be in the way of any address.
  if (const auto port = said.number("metrics"))
    metrics_at_ =
        Address{said.text("metrics_host").value_or("::"), static_cast<std::uint16_t>(*port)};
}

Result<std::optional<TakeOver>, std::string> TakeOver::ask(const std::string& control_path,
                                                           const std::string& state) {
  const auto trouble = [&](std::string_view why) {
    return Failure{fmt::format("cannot take over from the server at {}: {}", control_path, why)};
  };
  auto connected = net::connect_locally(control_path, kPatienceSeconds);
  if (!connected) {
    // At a path that is too long nobody can listen.
    constexpr std::array kNobody{ENOENT, ENOTDIR, ECONNREFUSED, ENAMETOOLONG};
    if (std::ranges::count(kNobody, connected.error()) != 0) return std::optional<TakeOver>();
    // So many wait to be heard that no more are let in.
    if (connected.error() == EAGAIN) return trouble("it does not answer; is it stopped?");
    return trouble(std::strerror(connected.error()));
  }
  Json request;
  request.set("command", kCommand).set("state", identity_of(state));
  // One that turns connections away has said why, and may have closed this one by now.
  const bool sent = net::send_with_sockets(connected->fd(), request.line() + "\n", {});
  auto reply = net::receive_with_sockets(connected->fd(), kLongestReply);
  if (!sent && (!reply || reply->text.empty())) return trouble("it does not listen any more");
  if (!reply) return trouble(reply.error());
  const auto row = JsonObject::parse(reply->text.substr(0, reply->text.find('\n')));
  if (!row) return trouble("its answer is not that of a stag server");
  if (const auto error = row->text("error")) return trouble(*error);
  if (row->number("sockets") != reply->sockets.size())
    return trouble("it has passed other sockets than it says");
  return std::optional(
      TakeOver(control_path, state, *std::move(connected), std::move(reply->sockets), *row));
}

bool TakeOver::send_go() const {
  Json request;
  request.set("command", kGo);
  return net::send_with_sockets(control_.fd(), request.line() + "\n", {});
}

Duration TakeOver::go() {
  if (send_go()) return limit_;
  // It waits for a request for a minute at most, and the name service may have taken longer than
  // that to be asked. A process that is gone has left the lock.
  auto again = ask(control_path_, state_);
  if (!again || !*again) return limit_;
  control_ = std::move((*again)->control_);
  limit_ = (*again)->limit_;
  static_cast<void>(send_go());
  return limit_;
}

}  // namespace stag::cli
