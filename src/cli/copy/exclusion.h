// What --exclude leaves out of a copy.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/copy/rsync_pattern.h"

namespace stag::cli {

// A pattern (glob(7)) without '/' is about names, at any depth; one with '/' about paths below the
// source. One that ends with '/' is about directories only. One with "**", which matches '/' as
// well, is what it is to rsync(1): about paths that end as it says at any depth, unless '/' is in
// front, and with "/***" at its end about a directory and all that is in it.
class Exclusion {
 public:
  Exclusion() = default;
  explicit Exclusion(const std::vector<std::string>& patterns);

  // Patterns, one in each line of `text`, as in a file for rsync(1): without comments, which begin
  // with '#' or ';', and empty lines. Fails with what it does not know.
  static Result<std::vector<std::string>, std::string> patterns_in(std::string_view text);

  // `path`: below the source, without '/' in front.
  bool excludes(std::string_view path, bool directory) const;

 private:
  struct Pattern {
    std::string text;
    bool whole_path = false;
    bool directories_only = false;
    std::optional<RsyncPattern> crossing{};  // where it has "**"
  };
  std::vector<Pattern> patterns_;
};

}  // namespace stag::cli
