#include "cli/support/json_list.h"

#include <algorithm>
#include <string_view>

#include "cli/support/output.h"

namespace stag::cli {

// No string within an object has a line end in it: those are escaped.
void JsonList::add(const Json& object) {
  write_out(empty_ ? "[" : ",");
  empty_ = false;
  const std::string text = object.text();
  for (std::string_view left = text; !left.empty();) {
    const std::string_view line = left.substr(0, left.find('\n'));
    write_out("\n  ");
    write_out(line);
    left.remove_prefix(std::min(line.size() + 1, left.size()));
  }
}

void JsonList::end() {
  write_out(empty_ ? "[]\n" : "\n]\n");
}

}  // namespace stag::cli
