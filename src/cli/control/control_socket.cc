#include "cli/control/control_socket.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <list>

#include "base/failure.h"
#include "base/reason.h"
#include "base/task_group.h"
#include "endpoint/loops.h"
#include "net/listener.h"
#include "net/passed_sockets.h"

namespace stag::cli {
namespace {

Json error_line(std::string_view sentence) {
  Json line;
  line.set("error", sentence);
  return line;
}

Json done_line() {
  Json line;
  line.set("done", true);
  return line;
}

}  // namespace

Result<ControlRequest, std::string> ControlRequest::parse(std::string_view line) {
  auto members = JsonObject::parse(line);
  if (!members) return Failure{std::string("a request is one JSON object on one line")};
  auto command = members->text("command");
  if (!command) return Failure{std::string("a request has a member \"command\", a string")};
  return ControlRequest{*std::move(command), *std::move(members)};
}

std::string ControlPeer::text() const {
  return fmt::format("by user {}, process {}", credentials.uid, credentials.pid);
}

// One connection: reads a line, answers it, reads the next one.
class ControlConnection final : public ControlReply {
 public:
  ControlConnection(net::TcpSocket socket, const ControlPeer& peer, const ControlOptions& options,
                    const ControlCommands& commands)
      : socket_(std::move(socket)), peer_(peer), options_(options), commands_(commands) {
    buffer_.resize(options.request_bytes);
  }

  Task<void> serve();
  void close() { socket_.close(); }
  void attach(std::vector<UniqueFd> sockets) override { attached_ = std::move(sockets); }
  Task<bool> flush() override;
  Task<std::optional<std::string>> next_line() override;
  Loop& loop() override { return socket_.loop(); }

 private:
  Task<void> answer(const std::string& line);
  // Closes the connection when its peer takes too long.
  Timer patience();

  net::TcpSocket socket_;
  const ControlPeer peer_;
  const ControlOptions& options_;
  const ControlCommands& commands_;
  std::string buffer_;
  std::size_t used_ = 0;
  std::vector<UniqueFd> attached_;
};

Timer ControlConnection::patience() {
  return socket_.loop().after(options_.patience, [this] {
    trace(Reason::ControlPeerStalled, "control", peer_.text());
    socket_.close();
  });
}

Task<std::optional<std::string>> ControlConnection::next_line() {
  const Timer timer = patience();
  for (std::size_t searched = 0;;) {
    const std::size_t end = std::string_view(buffer_.data(), used_).find('\n', searched);
    if (end != std::string_view::npos) {
      std::string line = buffer_.substr(0, end);
      std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(end) + 1,
                buffer_.begin() + static_cast<std::ptrdiff_t>(used_), buffer_.begin());
      used_ -= end + 1;
      co_return line;
    }
    searched = used_;
    if (used_ == buffer_.size()) {
      trace(Reason::ControlRequestMalformed, "control", peer_.text());
      add(error_line(fmt::format("a request has at most {} bytes", buffer_.size())));
      co_await flush();
      co_return std::nullopt;
    }
    const auto read =
        co_await socket_.read_some(std::as_writable_bytes(std::span(buffer_).subspan(used_)));
    if (!read) co_return std::nullopt;
    used_ += *read;
  }
}

Task<bool> ControlConnection::flush() {
  if (text_.empty()) co_return !socket_.closed();
  const std::string text = std::exchange(text_, {});
  if (const auto sockets = std::exchange(attached_, {}); !sockets.empty())
    co_return net::send_with_sockets(socket_.fd(), text, sockets);
  const Timer timer = patience();
  const auto written = co_await socket_.write_all(Rope::copy_of(bytes_of(text)));
  co_return bool(written);
}

Task<void> ControlConnection::answer(const std::string& line) {
  auto request = ControlRequest::parse(line);
  std::string error;
  if (!request) {
    trace(Reason::ControlRequestMalformed, "control", peer_.text());
    error = request.error();
  } else if (const auto command = commands_.find(request->command); command == commands_.end()) {
    error = "this server knows no command '" + request->command + "'";
  } else {
    error = co_await command->second(*request, *this, peer_);
  }
  add(error.empty() ? done_line() : error_line(error));
  co_await flush();
}

Task<void> ControlConnection::serve() {
  if (!peer_.administrator && !options_.group) {
    trace(Reason::ControlPeerNotAllowed, "control", peer_.text());
    add(error_line("only root and the user of the server may ask here"));
    co_await flush();
    co_return;
  }
  while (!socket_.closed()) {
    const auto line = co_await next_line();
    if (!line) break;
    co_await answer(*line);
  }
}

struct ControlSocket::State {
  State(ControlOptions given, const ControlCommands& known)
      : options(std::move(given)), commands(known) {}

  void accept(net::AcceptedSocket accepted);
  void turn_away(net::TcpSocket& socket);
  bool is_full(const ControlPeer& peer) const {
    // Half of them are for administrators, whatever others do.
    return connections.size() >= options.connections / (peer.administrator ? 1 : 2);
  }
  Task<void> serve(net::TcpSocket socket, ControlPeer peer);
  void stop();
  Task<void> join() { co_await running.join(); }

  const ControlOptions options;
  const ControlCommands& commands;
  endpoint::Loops loops;
  // On the loop.
  std::optional<net::TcpListener> listener;
  std::list<ControlConnection> connections;
  TaskGroup running;
};

void ControlSocket::State::accept(net::AcceptedSocket accepted) {
  auto socket = net::TcpSocket::adopt(loops.at(0), std::move(accepted));
  if (!socket) return trace(socket.error(), "control");
  const auto who = net::peer_credentials(socket->fd());
  if (!who) return;
  const ControlPeer peer{*who, who->uid == 0 || who->uid == geteuid()};
  if (is_full(peer)) return turn_away(*socket);
  running.add(serve(*std::move(socket), peer));
}

// A fresh socket takes so few bytes.
void ControlSocket::State::turn_away(net::TcpSocket& socket) {
  trace(Reason::ControlTooManyConnections, "control");
  std::string line = error_line("too many ask at the same time; try again").line() + "\n";
  static_cast<void>(socket.try_write(iovec{line.data(), line.size()}));
}

Task<void> ControlSocket::State::serve(net::TcpSocket socket, ControlPeer peer) {
  const auto at =
      connections.emplace(connections.end(), std::move(socket), peer, options, commands);
  try {
    co_await at->serve();
  } catch (...) {
    trace_exception(Reason::TaskFailed, "control");
  }
  connections.erase(at);
}

void ControlSocket::State::stop() {
  listener.reset();
  for (ControlConnection& each : connections) each.close();
}

ControlSocket::ControlSocket(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<ControlSocket>, std::string> ControlSocket::open(
    ControlOptions options, const ControlCommands& commands) {
  auto listening = net::listen_locally({.path = options.path, .group = options.group});
  if (!listening) return Failure{listening.error()};
  auto state = std::make_unique<State>(std::move(options), commands);
  State& made = *state;
  const bool listens = endpoint::run_on(made.loops.at(0), [&] {
    auto adopted = net::TcpListener::adopt(made.loops.at(0), *std::move(listening));
    if (!adopted) return false;
    made.listener.emplace(*std::move(adopted));
    made.listener->start(
        [&made](net::AcceptedSocket accepted) { made.accept(std::move(accepted)); });
    return true;
  });
  if (!listens) {
    unlink(made.options.path.c_str());
    return Failure{std::string("the system has no descriptor left")};
  }
  return std::unique_ptr<ControlSocket>(new ControlSocket(std::move(state)));
}

void ControlSocket::stop() {
  // First the name: a command that comes later finds no server. Once: it may be another server's by
  // then.
  if (std::exchange(stopped_, true)) return;
  unlink(state_->options.path.c_str());
  endpoint::finish_on(state_->loops.at(0), [this] { state_->stop(); });
}

void ControlSocket::join() {
  endpoint::finish_on(state_->loops.at(0), [this] { return state_->join(); });
}

ControlSocket::~ControlSocket() {
  stop();
  join();
}

std::size_t ControlSocket::connections() const {
  return endpoint::run_on(state_->loops.at(0), [this] { return state_->connections.size(); });
}

}  // namespace stag::cli
