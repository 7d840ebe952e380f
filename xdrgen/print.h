// Appends formatted text to what is emitted.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

namespace xdrgen {

template <class... Args>
void print(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

}  // namespace xdrgen
