#include "cli/commands/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/support/format.h"

namespace stag::cli {
namespace {

using TextLines = std::vector<std::string>;

constexpr std::size_t kWidestName = 40;
constexpr std::size_t kNarrowestName = 15;  // of an IPv4 address
constexpr std::size_t kClientFigures = 48;  // behind the name

// The end of an address tells the clients of a network apart.
std::string cut_name(const std::string& name, std::size_t width) {
  return name.size() <= width ? name : ".." + name.substr(name.size() + 2 - width);
}

TextLines client_lines(const TopRates& rates, std::size_t width) {
  TextLines lines;
  for (const TopRates::Client& each : rates.clients)
    lines.push_back(fmt::format("{:<{}} {:>5} {:>10.1f} {:>8.1f} {:>10} {:>10}",
                                cut_name(each.address, width), width, each.connections, each.calls,
                                each.errors, human_size(each.bytes_in),
                                human_size(each.bytes_out)));
  return lines;
}

TextLines procedure_lines(const TopRates& rates) {
  TextLines lines;
  for (const TopRates::Procedure& each : rates.procedures)
    lines.push_back(fmt::format("{:<{}} {:>10.1f} {:>10.1f}", each.name, kWidestName, each.calls,
                                each.microseconds));
  return lines;
}

void shorten(TextLines& lines, std::size_t most) {
  if (lines.size() <= most) return;
  const std::size_t left = std::max<std::size_t>(most, 1) - 1;
  std::string rest = fmt::format("... {} more", lines.size() - left);
  lines.resize(left);
  if (most > 0) lines.push_back(std::move(rest));
}

void share_rows(TextLines& clients, TextLines& procedures, std::size_t rows) {
  shorten(clients, std::max(rows / 2, rows - std::min(rows, procedures.size())));
  shorten(procedures, rows - clients.size());
}

}  // namespace

std::string top_text(const TopRates& rates, std::uint64_t uptime, WindowSize window) {
  constexpr std::size_t kOtherRows = 6;  // the sum, two heads, two empty ones, the cursor's
  const std::size_t width = std::clamp(window.columns - std::min(window.columns, kClientFigures),
                                       kNarrowestName, kWidestName);
  TextLines clients = client_lines(rates, width), procedures = procedure_lines(rates);
  share_rows(clients, procedures, window.rows - std::min(window.rows, kOtherRows));
  TextLines lines{fmt::format("{:.0f} calls/s of {} clients, server up {} s", rates.calls,
                              rates.clients.size(), uptime),
                  "",
                  fmt::format("{:<{}} {:>5} {:>10} {:>8} {:>10} {:>10}", "CLIENT", width, "CONNS",
                              "CALLS/s", "ERRORS/s", "IN/s", "OUT/s")};
  lines.insert(lines.end(), clients.begin(), clients.end());
  lines.emplace_back();
  lines.push_back(
      fmt::format("{:<{}} {:>10} {:>10}", "PROCEDURE", kWidestName, "CALLS/s", "MEAN us"));
  lines.insert(lines.end(), procedures.begin(), procedures.end());
  lines.resize(std::min(lines.size(), std::max<std::size_t>(window.rows, 2) - 1));
  std::string text;
  for (const std::string& line : lines) text.append(line, 0, window.columns) += '\n';
  return text;
}

}  // namespace stag::cli
