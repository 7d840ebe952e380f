#include "xdrgen/macros.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace xdrgen {
namespace {

constexpr std::size_t kMaxReplacement = 64;
// Tokens that one use, or one condition, may have looked at: a tower of macros doubles them with
// each floor.
constexpr std::size_t kMaxSteps = 1024;

}  // namespace

std::string_view trim(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r");
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(" \t\r") - start + 1);
}

std::string_view first_word(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[length])) != 0 || text[length] == '_'))
    ++length;
  return text.substr(0, length);
}

std::vector<Token> tokens_of(std::string_view text, const Location& where) {
  std::vector<Token> tokens;
  Lexer lexer(where.file, text);
  for (Token token = lexer.next(); token.kind != TokenKind::End; token = lexer.next()) {
    const auto after = static_cast<std::size_t>(token.text.data() - text.data()) + 1;
    const bool line_goes_on = token.text == "\\" && text.substr(after).starts_with('\n');
    if (!line_goes_on) tokens.push_back(token);
  }
  return tokens;
}

struct Macros::Expansion {
  Location where;
  bool of_condition = false;
  std::size_t steps = 0;
  std::vector<std::string_view> open{};  // The macros within whose bodies this is.
  std::vector<Token> result{};
};

void Macros::define(std::string_view name, std::string_view body, const Location& where) {
  std::vector<Token> tokens = tokens_of(body, where);
  if (tokens.size() > kMaxReplacement) complain(where, "this macro is too long");
  bodies_.insert_or_assign(std::string(name), std::move(tokens));
}

void Macros::undefine(std::string_view name) {
  if (const auto found = bodies_.find(name); found != bodies_.end()) bodies_.erase(found);
}

// A name within its own replacement stands for itself (C17 6.10.3.4), so that this ends.
void Macros::expand_into(Expansion& expansion, const std::vector<Token>& tokens) const {
  std::size_t untouched = 0;  // The tokens from here on that `defined` asks for.
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Token token = tokens[i];
    if (++expansion.steps > kMaxSteps)
      complain(expansion.where,
               expansion.of_condition ? "this condition is too long" : "this macro is too long");
    const auto body =
        token.kind == TokenKind::Identifier ? bodies_.find(token.text) : bodies_.end();
    const bool asked_for = i < untouched;
    if (expansion.of_condition && token.is("defined"))
      untouched = i + (i + 1 < tokens.size() && tokens[i + 1].is("(") ? 3 : 2);
    if (body != bodies_.end() && !asked_for &&
        std::ranges::find(expansion.open, body->first) == expansion.open.end()) {
      expansion.open.push_back(body->first);
      expand_into(expansion, body->second);
      expansion.open.pop_back();
    } else {
      token.where = expansion.where;
      expansion.result.push_back(token);
    }
  }
}

std::vector<Token> Macros::expand(const Token& name) const {
  Expansion expansion{name.where};
  expand_into(expansion, {name});
  if (expansion.result.size() > kMaxReplacement) complain(name.where, "this macro is too long");
  return std::move(expansion.result);
}

std::vector<Token> Macros::expand_condition(const std::vector<Token>& tokens) const {
  if (tokens.empty()) return {};
  Expansion expansion{tokens.front().where, true};
  expand_into(expansion, tokens);
  return std::move(expansion.result);
}

}  // namespace xdrgen
