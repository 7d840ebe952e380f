#include "xdrgen/lexer.h"

#include <cctype>

namespace xdrgen {
namespace {

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

}  // namespace

void Lexer::advance() {
  if (text_[at_++] == '\n') {
    ++here_.line;
    here_.column = 1;
    line_start_ = true;
  } else {
    ++here_.column;
  }
}

void Lexer::skip_line() {
  while (at_ < text_.size() && peek() != '\n') {
    if (peek() == '\\' && peek(1) == '\n') advance();
    advance();
  }
}

void Lexer::skip_block_comment() {
  const Location start = here_;
  advance();
  advance();
  while (!(peek() == '*' && peek(1) == '/')) {
    if (at_ >= text_.size()) complain(start, "this comment has no end");
    advance();
  }
  advance();
  advance();
}

// False when nothing was skipped.
bool Lexer::skip_space() {
  const char c = peek();
  if (at_ >= text_.size()) return false;
  if (std::isspace(static_cast<unsigned char>(c)) != 0) return advance(), true;
  if (c == '/' && peek(1) == '*') return skip_block_comment(), true;
  if (c == '/' && peek(1) == '/') return skip_line(), true;
  if (c == '%' && here_.column == 1 && peek(1) != '#') return skip_line(), true;
  return false;
}

Token Lexer::take(TokenKind kind, std::size_t length) {
  Token token{kind, text_.substr(at_, length), here_};
  for (std::size_t i = 0; i < length; ++i) advance();
  line_start_ = false;
  return token;
}

// A backslash before the line's end continues it; a comment on it is not part of it.
Token Lexer::directive(TokenKind kind) {
  Token token{kind, {}, here_};
  if (kind == TokenKind::Passed) advance();
  advance();
  const std::size_t start = at_;
  std::size_t end = at_;
  while (at_ < text_.size() && peek() != '\n') {
    if (peek() == '/' && peek(1) == '*') {
      skip_block_comment();
      continue;
    }
    if (peek() == '\\' && peek(1) == '\n') advance();
    advance();
    end = at_;
  }
  token.text = text_.substr(start, end - start);
  return token;
}

Token Lexer::string() {
  std::size_t length = 1;
  while (at_ + length < text_.size() && peek(length) != '"' && peek(length) != '\n') ++length;
  if (peek(length) != '"') complain(here_, "this string has no end");
  Token token = take(TokenKind::String, length + 1);
  token.text = token.text.substr(1, length - 1);
  return token;
}

Token Lexer::next() {
  while (skip_space()) {
  }
  if (at_ >= text_.size()) return {TokenKind::End, {}, here_};
  const char c = peek();
  if (c == '#' && line_start_) return directive(TokenKind::Directive);
  if (c == '%' && here_.column == 1) return directive(TokenKind::Passed);
  if (c == '"') return string();
  std::size_t length = 1;
  if (is_letter(c)) {
    while (is_letter(peek(length)) || is_digit(peek(length))) ++length;
    return take(TokenKind::Identifier, length);
  }
  if (is_digit(c) || (c == '-' && is_digit(peek(1)))) {
    while (is_letter(peek(length)) || is_digit(peek(length))) ++length;
    return take(TokenKind::Number, length);
  }
  constexpr std::string_view kPunctuation = "{}()[]<>;:,=*";
  const bool known = kPunctuation.find(c) != std::string_view::npos;
  return take(known ? TokenKind::Punctuation : TokenKind::Invalid, 1);
}

}  // namespace xdrgen
