#include "xdrgen/location.h"

#include <fmt/format.h>

namespace xdrgen {

std::string to_string(const Location& where) {
  return fmt::format("{}:{}:{}", where.file, where.line, where.column);
}

void complain(const Location& where, const std::string& message) {
  throw Mistake{fmt::format("{}: {}", to_string(where), message)};
}

}  // namespace xdrgen
