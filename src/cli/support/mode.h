// Modes as chmod(1) takes them: octal, or clauses like "u+x,go=r".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stag::cli {

class ModeChange {
 public:
  // Fails with one sentence. A clause that names nobody, "+w", leaves the bits of `umask` alone, as
  // POSIX has it for chmod.
  static Result<ModeChange, std::string> parse(std::string_view text, std::uint32_t umask = 0);

  // Applies the change to `mode` (07777). As with GNU chmod(1), a directory keeps setuid and setgid
  // unless the change names them: five octal digits, or s.
  std::uint32_t apply(std::uint32_t mode, bool directory) const;

 private:
  struct Clause {
    std::uint32_t who = 0;             // mask of the bits that = clears
    std::uint32_t named = 0;           // mask of those it may set: without the umask
    char how = '=';                    // + - =
    std::uint32_t bits = 0;            // within `named`
    std::optional<unsigned> copied{};  // u, g or o: the place of those bits, to be added to `bits`
    bool searchable = false;    // X: execute where something is executable, or for a directory
    std::uint32_t set_ids = 0;  // those of setuid and setgid that it names
  };
  static bool parse_clause(std::string_view text, std::uint32_t umask,
                           std::vector<Clause>& clauses);

  std::vector<Clause> clauses_;
};

// The umask of this process.
std::uint32_t current_umask();

}  // namespace stag::cli
