// The manual page stag-exports(5), which is made of docs/exports.md (cmake/exports_page.cmake).
#pragma once

#include <string_view>

namespace stag::cli {

std::string_view exports_page();

}  // namespace stag::cli
