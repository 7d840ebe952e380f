// Golden messages: files of hexadecimal bytes with # comments.
#pragma once

#include <cctype>
#include <fstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"

namespace stag::rpcrdma::testing {

using Message = std::vector<std::byte>;

// Spaces are of no account.
inline Message from_hex(std::string_view text) {
  Message bytes;
  std::string digits;
  for (char digit : text) {
    if (std::isspace(static_cast<unsigned char>(digit))) continue;
    digits += digit;
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<std::byte>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  STAG_CHECK(digits.empty());
  return bytes;
}

inline Message golden(const std::string& name) {
  std::ifstream file("tests/golden/rpcrdma/" + name + ".hex");
  STAG_CHECK(file.is_open());
  std::string text;
  for (std::string line; std::getline(file, line);) text += line.substr(0, line.find('#'));
  return from_hex(text);
}

inline std::uint32_t word(Bytes bytes, std::size_t index) {
  STAG_CHECK(4 * index + 4 <= bytes.size());
  return load_be<std::uint32_t>(bytes.data() + 4 * index);
}
inline void set_word(Message& message, std::size_t index, std::uint32_t value) {
  STAG_CHECK(4 * index + 4 <= message.size());
  store_be(message.data() + 4 * index, value);
}
inline Message copy(Bytes bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace stag::rpcrdma::testing
