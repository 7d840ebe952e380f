// The expressions of #if and #elif, as cpp evaluates them (C17 6.10.1): whole numbers of 64 bits,
// `defined`, and the operators of C. Names that are no macros are 0.
#pragma once

#include <string_view>

#include "xdrgen/macros.h"

namespace xdrgen {

// Whether the condition holds. Complains at `where` when it is none.
bool holds(std::string_view condition, const Macros& macros, const Location& where);

}  // namespace xdrgen
