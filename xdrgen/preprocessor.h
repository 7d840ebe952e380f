// The part of the C preprocessor that .x files use: #define NAME [tokens], #undef, #if and #elif
// with any expression (condition.h), #ifdef, #ifndef, #else, #endif, #include "file". Other
// directives are ignored, as are #include <...>. RPC_HDR is defined as 1: types are what this
// compiler is after. A passed-through `%#define NAME number` counts as well (passed.h), though not
// in the #if of this preprocessor, as it does not in cpp: specifications use the number in bounds.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "xdrgen/passed.h"

namespace xdrgen {

// The text of an included file, its name relative to the folder of the file with the directive made
// whole; nullopt when there is none.
using FileReader = std::function<std::optional<std::string>(const std::string& name)>;

class Preprocessor {
 public:
  Preprocessor(std::string_view file, std::string_view text, FileReader reader);

  // Every token outside of untaken branches, macros replaced; End at last.
  Token next();

 private:
  struct Branch {
    bool outer;  // Whether what surrounds the conditional is taken.
    bool taken;  // Whether one of its branches was.
    bool active;
    Location where;
  };
  Token raw();
  void perform(const Token& directive);
  bool conditional(std::string_view word, std::string_view rest, const Location& where);
  void otherwise(std::string_view word, std::string_view rest, const Location& where);
  void define(std::string_view rest, const Location& where);
  void include(std::string_view rest, const Location& where);
  bool active() const { return branches_.empty() || branches_.back().active; }
  bool replace(const Token& token);
  bool replace_passed(const Token& token);
  std::string_view keep(std::string text);

  FileReader reader_;
  std::deque<std::string> kept_;
  std::vector<Lexer> files_;
  std::vector<Branch> branches_;
  Macros macros_;
  PassedNames passed_{macros_};
  std::vector<Token> pending_;  // In reverse.
  bool after_const_ = false;
  std::size_t produced_ = 0;
};

}  // namespace xdrgen
