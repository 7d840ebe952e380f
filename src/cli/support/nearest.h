// What a user may have meant by a word that is none of those that there are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stag::cli {

// The one of `names` that differs in a third of the letters of `word` at most, or that it begins
// with, or the other way round; empty: there is none.
std::string nearest(std::string_view word, const std::vector<std::string>& names);

}  // namespace stag::cli
