// A program's side of the control socket (control_socket.h): one request, and its rows as they
// come.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "base/unique_function.h"
#include "cli/support/command.h"
#include "cli/support/json.h"

namespace stag::cli {

// The path where a server with this state directory listens unless told otherwise.
std::string default_control_path(const std::string& state_directory);

// `line` is the row as it came.
using OnRow = UniqueFunction<void(const JsonObject& row, std::string_view line)>;

// The bytes that a row says stand behind it ("bytes"); valid during the call. Yields the line that
// the server gets, or why nothing more is wanted.
using OnPiece =
    UniqueFunction<Task<Result<std::string_view, std::string>>(const JsonObject& row, Bytes piece)>;

// How long the server's next byte is waited for, before and after `run` is cancelled.
struct ControlPatience {
  Duration answer = std::chrono::seconds(60);
  Duration end = std::chrono::seconds(10);
  // What a user has to know where it did not come.
  std::string_view advice = "if it goes on, it may still do what it was asked";
};

// Yields an empty string when all rows came, else one sentence. Ends with "interrupted" when `run`
// is cancelled.
Task<std::string> ask_server(Run& run, std::string path, Json request, OnRow on_row,
                             ControlPatience patience = {});
// The same for a command whose rows have bytes behind them and are answered. Cancelling ends what
// has not begun; the answers end the rest, as long as the server has rows to be answered.
Task<std::string> ask_for_pieces(Run& run, std::string path, Json request, OnPiece on_piece,
                                 ControlPatience patience = {});

}  // namespace stag::cli
