#include "cli/commands/ask.h"

#include <filesystem>
#include <utility>

#include "cli/serve/process.h"
#include "cli/support/escape.h"

namespace stag::cli {

std::string ServerListing::json() const {
  std::string text = "[";
  for (const std::string& line : lines) text += (text.size() > 1 ? "," : "") + line;
  return text + "]";
}

void AskedServer::declare(Arguments& arguments) {
  state_ = default_state_directory();
  arguments.text("--state", state_, "DIR",
                 "the server's state directory, which has its control socket [/var/lib/stag; "
                 "without root $XDG_STATE_HOME/stag or ~/.local/state/stag]");
  arguments.text("--control", control_, "PATH", "the server's control socket [that of --state]");
  constexpr std::uint32_t kMost = 1u << 20;
  arguments.number("--timeout", timeout_, 1, kMost,
                   "seconds to wait for a server that does not answer [5; where it is to change "
                   "or capture something, 60]");
}

ControlPatience AskedServer::patience_for_listing() const {
  constexpr std::uint32_t kUsual = 5;
  ControlPatience patience;
  patience.answer = std::chrono::seconds(timeout_.value_or(kUsual));
  patience.advice = "is it stopped, or its machine too busy? --timeout N waits longer";
  return patience;
}

ControlPatience AskedServer::patience_for_change() const {
  ControlPatience patience;
  if (timeout_) patience.answer = std::chrono::seconds(*timeout_);
  return patience;
}

std::string AskedServer::path() const {
  std::error_code ignored;
  return std::filesystem::absolute(control_.empty() ? default_control_path(state_) : control_,
                                   ignored);
}

Task<ServerListing> AskedServer::list(Run& run, std::string_view command) {
  Json request;
  request.set("command", command);
  return list(run, std::move(request));
}

Task<ServerListing> AskedServer::list(Run& run, Json request) {
  ServerListing listing;
  listing.error = co_await ask_server(
      run, path(), std::move(request),
      [&listing](const JsonObject&, std::string_view line) { listing.lines.emplace_back(line); },
      patience_for_listing());
  for (const std::string& line : listing.lines) listing.rows.push_back(*JsonObject::parse(line));
  co_return listing;
}

std::uint64_t number_in(const JsonObject& row, std::string_view key) {
  return row.number(key).value_or(0);
}

std::string text_in(const JsonObject& row, std::string_view key) {
  const std::string text = row.text(key).value_or("");
  return text.empty() ? "-" : escaped(text);
}

}  // namespace stag::cli
