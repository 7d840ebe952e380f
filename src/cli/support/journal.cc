#include "cli/support/journal.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>

namespace stag::cli {

namespace {

constexpr const char* kVariable = "JOURNAL_STREAM";

// As the variable names it; empty: it is not open.
std::string stream_of(int fd) {
  struct stat about {};
  return ::fstat(fd, &about) == 0 ? fmt::format("{}:{}", about.st_dev, about.st_ino) : "";
}

}  // namespace

bool is_journal(int fd) {
  const char* const stream = std::getenv(kVariable);
  return stream != nullptr && *stream != '\0' && stream == stream_of(fd);
}

void pass_for_journal(int fd) {
  ::setenv(kVariable, stream_of(fd).c_str(), 1);
}

std::string journal_prefix(int fd, int priority) {
  return is_journal(fd) ? fmt::format("<{}>", priority) : std::string();
}

}  // namespace stag::cli
