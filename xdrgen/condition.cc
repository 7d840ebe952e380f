#include "xdrgen/condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace xdrgen {
namespace {

constexpr int kMaxNesting = 128;
constexpr unsigned kBits = 64;

// Operators are spelled as in C; of numbers and names the token itself.
struct Piece {
  TokenKind kind;
  std::string_view text;
};

constexpr std::array<std::string_view, 8> kTwoCharacters{
    "||", "&&", "==", "!=", "<=", ">=", "<<", ">>"};

// To the lexer, whose language has none of them, operators are single characters, and the '-'
// before a number is a part of it.
std::vector<Piece> pieces_of(const std::vector<Token>& tokens) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::string_view text = tokens[i].text;
    if (tokens[i].kind == TokenKind::Number && text.starts_with('-')) {
      pieces.push_back({TokenKind::Punctuation, text.substr(0, 1)});
      text.remove_prefix(1);
    }
    const bool two =
        i + 1 < tokens.size() && text.size() == 1 && tokens[i + 1].text.data() == text.data() + 1 &&
        std::ranges::find(kTwoCharacters, std::string_view(text.data(), 2)) != kTwoCharacters.end();
    if (two) text = {text.data(), 2};
    pieces.push_back({tokens[i].kind, text});
    if (two) ++i;
  }
  return pieces;
}

struct Number {
  std::uint64_t bits = 0;
  bool is_unsigned = false;

  std::int64_t value() const { return static_cast<std::int64_t>(bits); }
  bool negative() const { return !is_unsigned && value() < 0; }
};

Number truth(bool is_true) {
  return {is_true ? 1u : 0u};
}

bool is_suffix(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += c == 'U' ? 'u' : c;
  for (const std::string_view known :
       {"", "u", "l", "L", "ll", "LL", "ul", "uL", "ull", "uLL", "lu", "Lu", "llu", "LLu"})
    if (lower == known) return true;
  return false;
}

std::optional<Number> parsed(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) base = 16;
  if (text.starts_with("0b") || text.starts_with("0B")) base = 2;
  if (base != 10) text.remove_prefix(2);
  if (base == 10 && text.starts_with('0')) base = 8;
  Number number;
  const auto [stopped, error] =
      std::from_chars(text.data(), text.data() + text.size(), number.bits, base);
  const std::string_view suffix = text.substr(static_cast<std::size_t>(stopped - text.data()));
  if (error != std::errc{} || !is_suffix(suffix)) return std::nullopt;
  number.is_unsigned = number.value() < 0 || suffix.find_first_of("uU") != std::string_view::npos;
  return number;
}

// By `places` to the left, or to the right when they are negative.
Number shifted(Number number, Number by, bool left) {
  std::uint64_t places = by.bits;
  if (by.negative()) {
    left = !left;
    places = 0 - places;
  }
  const std::uint64_t fill = number.negative() ? ~std::uint64_t{0} : 0;
  if (left)
    number.bits = places < kBits ? number.bits << places : 0;
  else if (places != 0)
    number.bits = places < kBits ? (number.bits >> places) | (fill << (kBits - places)) : fill;
  return number;
}

// 0 for what is no operator between two numbers.
int precedence(std::string_view op) {
  constexpr std::array<std::string_view, 10> kRows{"||",    "&&",        "|",     "^",   "&",
                                                   "== !=", "< > <= >=", "<< >>", "+ -", "* / %"};
  for (std::size_t row = 0; row < kRows.size(); ++row)
    for (std::string_view rest = kRows[row]; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (rest.substr(0, end) == op) return static_cast<int>(row) + 1;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  return 0;
}

class Evaluation {
 public:
  Evaluation(std::vector<Piece> pieces, const Macros& macros, const Location& where)
      : pieces_(std::move(pieces)), macros_(macros), where_(where) {}

  bool holds() {
    const Number number = choice(true);
    if (at_ < pieces_.size()) unexpected();
    return number.bits != 0;
  }

 private:
  // What is not `needed` may divide by zero.
  Number choice(bool needed);
  Number binary(int least, bool needed);
  Number unary(bool needed);
  Number primary(bool needed);
  Number is_defined();
  Number combined(std::string_view op, Number left, Number right, bool needed) const;
  Number quotient(std::string_view op, Number left, Number right, bool needed) const;

  std::string_view op() const {
    const bool there = at_ < pieces_.size() && pieces_[at_].kind != TokenKind::String;
    return there ? pieces_[at_].text : std::string_view();
  }
  bool take(std::string_view wanted) {
    const bool there = op() == wanted;
    if (there) ++at_;
    return there;
  }
  [[noreturn]] void unexpected() const {
    complain(where_, at_ < pieces_.size()
                         ? fmt::format("unexpected '{}' in this condition", pieces_[at_].text)
                         : "this condition has no end");
  }

  std::vector<Piece> pieces_;
  const Macros& macros_;
  const Location where_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

Number Evaluation::choice(bool needed) {
  if (++nesting_ > kMaxNesting) complain(where_, "this condition is nested too deeply");
  Number result = binary(1, needed);
  if (take("?")) {
    const bool first = result.bits != 0;
    const Number yes = choice(needed && first);
    if (!take(":")) unexpected();
    const Number no = choice(needed && !first);
    result = first ? yes : no;
    result.is_unsigned = yes.is_unsigned || no.is_unsigned;
  }
  --nesting_;
  return result;
}

Number Evaluation::binary(int least, bool needed) {
  Number left = unary(needed);
  for (;;) {
    const std::string_view between = op();
    const int here = precedence(between);
    if (here < least) return left;
    ++at_;
    const bool settled = (between == "||" && left.bits != 0) || (between == "&&" && left.bits == 0);
    const Number right = binary(here + 1, needed && !settled);
    left = combined(between, left, right, needed);
  }
}

Number Evaluation::combined(std::string_view op, Number left, Number right, bool needed) const {
  if (op == "||") return truth(left.bits != 0 || right.bits != 0);
  if (op == "&&") return truth(left.bits != 0 && right.bits != 0);
  if (op == "<<" || op == ">>") return shifted(left, right, op == "<<");
  // C converts both to unsigned when one of them is.
  const bool is_unsigned = left.is_unsigned || right.is_unsigned;
  left.is_unsigned = right.is_unsigned = is_unsigned;
  const bool less = is_unsigned ? left.bits < right.bits : left.value() < right.value();
  const bool equal = left.bits == right.bits;
  if (op == "==") return truth(equal);
  if (op == "!=") return truth(!equal);
  if (op == "<") return truth(less);
  if (op == "<=") return truth(less || equal);
  if (op == ">") return truth(!less && !equal);
  if (op == ">=") return truth(!less);
  if (op == "|") return {left.bits | right.bits, is_unsigned};
  if (op == "^") return {left.bits ^ right.bits, is_unsigned};
  if (op == "&") return {left.bits & right.bits, is_unsigned};
  if (op == "+") return {left.bits + right.bits, is_unsigned};
  if (op == "-") return {left.bits - right.bits, is_unsigned};
  if (op == "*") return {left.bits * right.bits, is_unsigned};
  return quotient(op, left, right, needed);
}

Number Evaluation::quotient(std::string_view op, Number left, Number right, bool needed) const {
  if (right.bits == 0) {
    if (needed) complain(where_, "this condition divides by zero");
    return left;
  }
  // By magnitudes, since the smallest number has no positive one.
  const auto magnitude = [](Number of) { return of.negative() ? 0 - of.bits : of.bits; };
  const bool whole = op == "/";
  const std::uint64_t result =
      whole ? magnitude(left) / magnitude(right) : magnitude(left) % magnitude(right);
  const bool negative = whole ? left.negative() != right.negative() : left.negative();
  return {negative ? 0 - result : result, left.is_unsigned};
}

Number Evaluation::unary(bool needed) {
  if (++nesting_ > kMaxNesting) complain(where_, "this condition is nested too deeply");
  Number result;
  if (take("!")) {
    result = truth(unary(needed).bits == 0);
  } else if (take("~")) {
    result = unary(needed);
    result.bits = ~result.bits;
  } else if (take("-")) {
    result = unary(needed);
    result.bits = 0 - result.bits;
  } else if (take("+")) {
    result = unary(needed);
  } else {
    result = primary(needed);
  }
  --nesting_;
  return result;
}

Number Evaluation::primary(bool needed) {
  if (take("(")) {
    const Number result = choice(needed);
    if (!take(")")) unexpected();
    return result;
  }
  if (at_ == pieces_.size()) unexpected();
  const Piece& piece = pieces_[at_];
  if (piece.kind == TokenKind::Identifier) {
    ++at_;
    return piece.text == "defined" ? is_defined() : Number{};
  }
  const std::optional<Number> number =
      piece.kind == TokenKind::Number ? parsed(piece.text) : std::nullopt;
  if (!number) unexpected();
  ++at_;
  return *number;
}

Number Evaluation::is_defined() {
  const bool enclosed = take("(");
  if (at_ == pieces_.size() || pieces_[at_].kind != TokenKind::Identifier) unexpected();
  const Number result = truth(macros_.contains(pieces_[at_++].text));
  if (enclosed && !take(")")) unexpected();
  return result;
}

}  // namespace

bool holds(std::string_view condition, const Macros& macros, const Location& where) {
  std::vector<Token> tokens = tokens_of(condition, where);
  if (tokens.empty()) complain(where, "this conditional has no condition");
  tokens.front().where = where;
  return Evaluation(pieces_of(macros.expand_condition(tokens)), macros, where).holds();
}

}  // namespace xdrgen
