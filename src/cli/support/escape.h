// Escapes bytes from peers for places that take text only. Another party has chosen the names and
// messages of a server: on a terminal they could move the cursor, set the title or look like other
// names.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stag::cli {

// Printable UTF-8: control characters (C0, DEL, C1), those that change the direction of writing or
// begin a line, and bytes that are no UTF-8 become \ooo, as with `ls -b`.
std::string escaped(std::string_view bytes);

// Whether escaped() leaves them as they are.
bool is_printable(std::string_view bytes);

bool is_utf8(std::string_view bytes);

// As in a URL: every byte but letters, digits and "-._~/" becomes %XX.
std::string percent_encoded(std::string_view bytes);
// The reverse, of any text; nullopt where two hexadecimal digits are missing behind a '%'.
std::optional<std::string> percent_decoded(std::string_view text);

// For readers that refuse what is no UTF-8: bytes that are none, and "%", become %XX. No two texts
// become one.
std::string as_utf8(std::string_view bytes);

}  // namespace stag::cli
