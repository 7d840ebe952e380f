// Characters to tokens for one file: C comments vanish here, a line that starts with `#` becomes
// one Directive token. So does, as Passed, a `%#` line; other `%` lines, which rpcgen passes
// through to C, vanish, too.
#pragma once

#include <string>
#include <string_view>

#include "xdrgen/location.h"

namespace xdrgen {

enum class TokenKind { End, Identifier, Number, String, Punctuation, Directive, Passed, Invalid };

struct Token {
  TokenKind kind = TokenKind::End;
  // Of a Directive: its line after the '#'. Of a String: without the quotes.
  std::string_view text;
  Location where;

  bool is(std::string_view wanted) const {
    return text == wanted && (kind == TokenKind::Identifier || kind == TokenKind::Punctuation);
  }
};

class Lexer {
 public:
  // Both outlive the tokens.
  Lexer(std::string_view file, std::string_view text) : text_(text) { here_.file = file; }

  // After the last token: End, for ever.
  Token next();

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void advance();
  bool skip_space();
  void skip_block_comment();
  void skip_line();
  Token directive(TokenKind kind);
  Token string();
  Token take(TokenKind kind, std::size_t length);

  std::string_view text_;
  std::size_t at_ = 0;
  Location here_;
  bool line_start_ = true;
};

}  // namespace xdrgen
