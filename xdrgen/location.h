// Where something stands in the text, and how a complaint about it reaches the caller of the
// compiler.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace xdrgen {

struct Location {
  std::string_view file;  // Lives as long as the compilation.
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

// "file:line:column"
std::string to_string(const Location& where);

// Thrown inside the compiler, caught by compile(): the first mistake ends the work.
struct Mistake {
  std::string message;  // "file:line:column: what"
};
[[noreturn]] void complain(const Location& where, const std::string& message);

}  // namespace xdrgen
