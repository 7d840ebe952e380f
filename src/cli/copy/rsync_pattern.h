// RsyncPattern: a pattern of rsync(1) that has "**", which matches '/' as well.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stag::cli {

class RsyncPattern {
 public:
  // `text`: without '/' at its ends; `anchored`: one stood in front.
  RsyncPattern(std::string_view text, bool anchored);
  // `path`: below the source, without '/' in front.
  bool matches(std::string_view path, bool directory) const;

 private:
  struct Token {
    enum class Kind { One, Some, SomeOrSlash } kind = Kind::One;
    std::string one{};  // a pattern of one character, for fnmatch(3)
  };
  static bool is_one(const std::string& pattern, char c);
  // Adds what is reached by matching nothing more.
  void pass_empty(std::vector<bool>& reached) const;

  std::vector<Token> tokens_;
  bool from_begin_ = false;  // it may not begin behind a '/' of the path
  bool prefixed_ = false, suffixed_ = false;
};

}  // namespace stag::cli
