// What commands print. Writing never throws; what could not be written to standard output is known
// at the end, when it decides what the process exits with.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stag::cli {

void write_out(std::string_view text);
// Where that cannot be written either, nobody can be told.
void write_error(std::string_view text);

// To standard output.
template <class... Values>
void put(fmt::format_string<Values...> format, Values&&... values) {
  write_out(fmt::format(format, std::forward<Values>(values)...));
}

// Writes what is still buffered. False when something of all that was printed is lost.
bool flush_out();
// flush_out() as a sentence; empty when whoever read it has had enough, as with `| head`; nothing
// when all is well.
std::optional<std::string> output_trouble();

// Keeps the numbers 0 to 2 from the first files and sockets that are opened, where this process was
// started without: what is meant for standard output must not reach a server.
void occupy_standard_descriptors();

}  // namespace stag::cli
