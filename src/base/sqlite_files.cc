#include "base/sqlite_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stag {

void create_private(const std::string& database) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  if (const int made = ::open(database.c_str(), kFlags, 0600); made >= 0) ::close(made);
}

void make_private(const std::string& database) {
  for (const char* const each : kSqliteFiles) ::chmod((database + each).c_str(), 0600);
}

}  // namespace stag
