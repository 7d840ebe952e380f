// The constants of RFC 4506 6.2: decimal, hexadecimal and octal, with a sign before decimal ones.
#pragma once

#include "xdrgen/ast.h"
#include "xdrgen/lexer.h"

namespace xdrgen {

// Complains unless `token` is a number of at most 64 bits.
ast::Integer parse_number(const Token& token);

}  // namespace xdrgen
