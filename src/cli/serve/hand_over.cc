#include "cli/serve/hand_over.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "cli/serve/notices.h"
#include "net/passed_sockets.h"

namespace stag::cli {
namespace {

constexpr std::string_view kCommand = "take-over";
constexpr unsigned kPatienceSeconds = 60;
// The reply's first line.
constexpr std::size_t kLongestReply = 4096;

}  // namespace

void HandOver::add_to(ControlCommands& commands) {
  commands.emplace(kCommand, [this](const ControlRequest&, ControlReply& reply,
                                    const ControlPeer& peer) { return give(reply, peer); });
}

Task<std::string> HandOver::give(ControlReply& reply, const ControlPeer& peer) {
  if (!peer.administrator)
    co_return std::string("only root and the user of the server may take its place");
  std::vector<net::UniqueFd> sockets = sockets_.copies();
  // Before it listens, and once it ends, there is nothing to give.
  if (sockets.empty()) co_return std::string("the server is starting or ending; try again");
  const auto limit = std::chrono::duration_cast<std::chrono::seconds>(limit_).count();
  Json row;
  row.set("sockets", std::uint64_t{sockets.size()})
      .set("seconds", static_cast<std::uint64_t>(limit));
  reply.add(row);
  reply.attach(std::move(sockets));
  const bool sent = co_await reply.flush();
  if (!sent) co_return std::string();
  log_notice(notices::kHandedOver, "control", peer.text());
  asked_();
  co_return std::string();
}

Result<std::optional<TakenOver>, std::string> take_over(const std::string& control_path) {
  const auto trouble = [&](std::string_view why) {
    return Failure{fmt::format("cannot take over from the server at {}: {}", control_path, why)};
  };
  const auto connected = net::connect_locally(control_path, kPatienceSeconds);
  if (!connected) {
    if (connected.error() == ENOENT || connected.error() == ECONNREFUSED)
      return std::optional<TakenOver>();
    return trouble(std::strerror(connected.error()));
  }
  Json request;
  request.set("command", kCommand);
  if (!net::send_with_sockets(connected->fd(), request.line() + "\n", {}))
    return trouble("it does not listen any more");
  auto reply = net::receive_with_sockets(connected->fd(), kLongestReply);
  if (!reply) return trouble(reply.error());
  const auto row = JsonObject::parse(reply->text.substr(0, reply->text.find('\n')));
  if (!row) return trouble("its answer is not that of a stag server");
  if (const auto error = row->text("error")) return trouble(*error);
  if (row->number("sockets") != reply->sockets.size())
    return trouble("it has passed other sockets than it says");
  return std::optional(TakenOver{std::move(reply->sockets),
                                 std::chrono::seconds(row->number("seconds").value_or(0))});
}

}  // namespace stag::cli
