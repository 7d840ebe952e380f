// The options --state, --control and --timeout, which say what running server a command asks, and
// listings as they come from the control socket.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/control/control_client.h"
#include "cli/support/arguments.h"

namespace stag::cli {

struct ServerListing {
  std::vector<JsonObject> rows;
  std::vector<std::string> lines;  // the same as they came
  // Empty: all came; else a sentence.
  std::string error;

  // "[{...},{...}]"
  std::string json() const;
};

class AskedServer {
 public:
  void declare(Arguments& arguments);
  // All rows of one of the server's commands.
  Task<ServerListing> list(Run& run, std::string_view command);
  Task<ServerListing> list(Run& run, Json request);
  // The path of its control socket.
  std::string path() const;
  // What monitoring asks has to end soon; what changes something is waited for as long as the
  // control socket waits, unless the user says.
  ControlPatience patience_for_listing() const;
  ControlPatience patience_for_change() const;

 private:
  std::string state_;
  std::string control_;
  std::optional<std::uint32_t> timeout_;
};

// The value of a row's member; 0 and "-" where it has no such member. Texts are escaped: they may
// be a client's.
std::uint64_t number_in(const JsonObject& row, std::string_view key);
std::string text_in(const JsonObject& row, std::string_view key);

}  // namespace stag::cli
