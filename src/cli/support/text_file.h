// Files of this machine that are read whole: configuration, lists, records.
#pragma once

#include <optional>
#include <string>

namespace stag::cli {

// nullopt, with errno set, for what cannot be read. An empty file is an empty text.
std::optional<std::string> text_of_file(const std::string& path);

}  // namespace stag::cli
