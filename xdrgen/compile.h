// The XDR compiler as a library: the text of a specification in, the text of a C++ header and
// source file out. It reads no file and allocates in proportion to its input; any input gives an
// answer.
//
// Two kinds of comment mean something: `%// namespace: a::b`, and `%// eligible: type_field ...` for
// arrays and optionals that are to be data items as a whole (xdr/item.h).
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "xdrgen/preprocessor.h"

namespace xdrgen {

struct Options {
  std::string
      name_space;  // "stag::nfs::v3". Empty: what the text's own `%// namespace: X` line says.
  std::string file = "<input>";  // The text's name in messages.
  std::string header = "out.h";  // How the source file includes the header.
  std::string runtime;           // Where the runtime's headers are installed: "stag".
  FileReader reader;             // For #include "file"; none: such a directive is a mistake.
};

struct Output {
  std::string header;
  std::string source;
};

// "file:line:column: message"
using Complaint = std::string;

std::variant<Output, Complaint> compile(std::string_view text, const Options& options);

}  // namespace xdrgen
