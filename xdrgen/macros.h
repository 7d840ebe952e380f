// The names of #define. A use of one is replaced when it is met, as cpp does, by what all names in
// its replacement stand for then.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "xdrgen/lexer.h"

namespace xdrgen {

class Macros {
 public:
  bool contains(std::string_view name) const { return bodies_.contains(name); }
  // The text outlives this.
  void define(std::string_view name, std::string_view body, const Location& where);
  void undefine(std::string_view name);
  // What `name` stands for: itself when it is no macro. Every token has the place of the name.
  std::vector<Token> expand(const Token& name) const;
  // The same of all names of a condition, but for those that `defined` asks for.
  std::vector<Token> expand_condition(const std::vector<Token>& tokens) const;

 private:
  using Bodies = std::map<std::string, std::vector<Token>, std::less<>>;
  struct Expansion;
  void expand_into(Expansion& expansion, const std::vector<Token>& tokens) const;

  Bodies bodies_;
};

// The tokens of a directive, which may go on over several lines.
std::vector<Token> tokens_of(std::string_view text, const Location& where);
// The text without white space around it, and the identifier that it begins with.
std::string_view trim(std::string_view text);
std::string_view first_word(std::string_view text);

}  // namespace xdrgen
