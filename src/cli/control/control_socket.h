// The control socket of `stag serve`: a Unix socket at which programs of this machine ask a running
// server (docs/decisions/0044-control-socket.md). One request is one line of
// JSON, {"command": NAME, ...}; the reply is any number of lines with an object each, and a last
// one that has "done": true or "error": SENTENCE.
//
// A thread of its own serves it: the loops that serve clients never wait for it. Requests,
// connections and what waits to be read are bounded; who does not read is cut off.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/loop.h"
#include "base/task.h"
#include "cli/support/json.h"
#include "net/local_socket.h"

namespace stag::cli {

// One request, parsed.
struct ControlRequest {
  // The error is one sentence.
  static Result<ControlRequest, std::string> parse(std::string_view line);

  std::string command;
  JsonObject members;
};

// Where a command writes its rows.
class ControlReply {
 public:
  virtual ~ControlReply() = default;
  void add(const Json& row) {
    text_ += row.line();
    text_ += '\n';
  }
  // Behind the rows so far; the reader knows how many.
  void add_bytes(Bytes bytes) { text_ += text_of(bytes); }
  // These go with the next flush(), with its first byte. The process keeps its own.
  virtual void attach(std::vector<UniqueFd> sockets) = 0;
  // Sends what was added. False: nobody reads any more, and the command may end.
  virtual Task<bool> flush() = 0;
  // The next line of who asks, for a command that goes on with it. nullopt: there is none any more.
  virtual Task<std::optional<std::string>> next_line() = 0;
  virtual Loop& loop() = 0;

 protected:
  std::string text_;
};

// The process that asks.
struct ControlPeer {
  net::PeerCredentials credentials;
  bool administrator = false;  // root, or the user of the server; others only look

  // For the log.
  std::string text() const;
};

// A command of the server. Empty: it is done; else one sentence. Runs on the loop of the control
// socket and does not block.
using ControlCommand =
    std::function<Task<std::string>(const ControlRequest&, ControlReply&, const ControlPeer&)>;
using ControlCommands = std::map<std::string, ControlCommand, std::less<>>;

struct ControlOptions {
  std::string path;
  std::optional<gid_t> group{};  // may look, too
  std::size_t connections = 16;  // half of them for administrators only
  std::size_t request_bytes = 4096;
  // How long a peer may leave replies unread, or ask for nothing.
  Duration patience = std::chrono::seconds(60);
};

class ControlSocket {
 public:
  // Listens from now on. `commands` outlives it. The error is one phrase. Blocking.
  static Result<std::unique_ptr<ControlSocket>, std::string> open(ControlOptions options,
                                                                  const ControlCommands& commands);
  // stop(), join().
  ~ControlSocket();

  // Removes the socket's file and ends the connections; commands that run go on.
  void stop();
  // Waits for these. Blocking.
  void join();

  std::size_t connections() const;

 private:
  struct State;
  explicit ControlSocket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  bool stopped_ = false;
};

}  // namespace stag::cli
