#include "cli/support/journal.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>

namespace stag::cli {

bool is_journal(int fd) {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat about {};
  return stream != nullptr && ::fstat(fd, &about) == 0 &&
         stream == fmt::format("{}:{}", about.st_dev, about.st_ino);
}

std::string journal_prefix(int fd, int priority) {
  return is_journal(fd) ? fmt::format("<{}>", priority) : std::string();
}

}  // namespace stag::cli
