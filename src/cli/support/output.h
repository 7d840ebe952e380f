// The output of commands. Writing never throws; a failure to write to standard output is reported
// at the end, and decides the exit code.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_function.h"

namespace stag::cli {

void write_out(std::string_view text);
// If standard error cannot be written either, the text is lost.
void write_error(std::string_view text);

// Writes what of `text` standard error takes at once, for what comes again soon. False: nothing.
bool write_error_at_once(std::string_view text);

// Text waits for its reader, and while it waits nothing else happens on a loop. From now on `fd`
// ends that: when it is readable, and after note_interruption(), a stream of which nothing is taken
// for a second gets no more text. -1: text waits as long as it must, for signals that end the
// process by themselves.
void look_for_interruption(int fd);
void note_interruption();
// Whether text for standard output was lost so.
bool output_given_up();

// To standard output.
template <class... Values>
void put(fmt::format_string<Values...> format, Values&&... values) {
  write_out(fmt::format(format, std::forward<Values>(values)...));
}

// For a process that serves on when nobody reads: a line for standard output, or for standard
// error, that is not taken at once (a full pipe, a terminal that is stopped) is lost, and the next
// one says how many were. Text of write_out() comes later, unless it was flushed. Thread: any.
void offer_out(std::string_view line);
void offer_error(std::string_view line);

// `tell` is called when printed text is lost for the first time; empty: nothing is.
void on_lost_output(UniqueFunction<void()> tell);

// Writes the buffered text. False when some of the printed text is lost.
bool flush_out();
// flush_out() as a sentence: nullopt when all text was written; empty when the reader has closed
// the pipe, as with
// `| head`.
std::optional<std::string> output_trouble();

// Opens the descriptors 0 to 2 if the process was started without them, so that no file or socket
// gets these numbers: text for standard output must not reach a server.
void occupy_standard_descriptors();

}  // namespace stag::cli
