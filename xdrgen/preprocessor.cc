#include "xdrgen/preprocessor.h"

#include <fmt/format.h>

#include <utility>

#include "xdrgen/condition.h"

namespace xdrgen {
namespace {

constexpr std::size_t kMaxIncludeDepth = 16;
constexpr std::size_t kMaxIncludes = 256;
constexpr std::size_t kMaxTokens = 1'000'000;
constexpr std::size_t kMaxBranches = 256;

}  // namespace

Preprocessor::Preprocessor(std::string_view file, std::string_view text, FileReader reader)
    : reader_(std::move(reader)) {
  files_.emplace_back(keep(std::string(file)), keep(std::string(text)));
  define("RPC_HDR 1", Location{});
}

std::string_view Preprocessor::keep(std::string text) {
  return kept_.emplace_back(std::move(text));
}

Token Preprocessor::raw() {
  if (++produced_ > kMaxTokens) complain({}, "the input is too large");
  if (!pending_.empty()) {
    Token token = pending_.back();
    pending_.pop_back();
    return token;
  }
  Token token = files_.back().next();
  while (token.kind == TokenKind::End && files_.size() > 1) {
    files_.pop_back();
    token = files_.back().next();
  }
  return token;
}

Token Preprocessor::next() {
  for (;;) {
    const bool replaced = !pending_.empty();
    const Token token = raw();
    if (token.kind == TokenKind::Directive) {
      perform(token);
    } else if (token.kind == TokenKind::Passed) {
      if (active()) passed_.perform(token);
    } else if (token.kind == TokenKind::End) {
      if (!branches_.empty()) complain(branches_.back().where, "this conditional has no #endif");
      return token;
    } else if (active()) {
      const bool names_constant = std::exchange(after_const_, token.is("const"));
      if (names_constant && !replaced && !macros_.contains(token.text)) passed_.constant(token);
      if (!replaced && replace(token)) continue;
      if (token.kind == TokenKind::Invalid)
        complain(token.where, fmt::format("unexpected character '{}'", token.text));
      return token;
    }
  }
}

// What a name stands for is not looked up again, so nothing can run away.
bool Preprocessor::replace(const Token& token) {
  if (token.kind != TokenKind::Identifier) return false;
  if (!macros_.contains(token.text)) return replace_passed(token);
  const std::vector<Token> expanded = macros_.expand(token);
  for (auto at = expanded.rbegin(); at != expanded.rend(); ++at)
    if (at->kind != TokenKind::Identifier || !replace_passed(*at)) pending_.push_back(*at);
  return true;
}

bool Preprocessor::replace_passed(const Token& token) {
  const std::optional<std::string_view> number = passed_.number_of(token);
  if (number) pending_.push_back({TokenKind::Number, *number, token.where});
  return number.has_value();
}

void Preprocessor::perform(const Token& directive) {
  const std::string_view text = trim(directive.text);
  const std::string_view word = first_word(text);
  const std::string_view rest = trim(text.substr(word.size()));
  if (conditional(word, rest, directive.where) || !active()) return;
  if (word == "define") define(rest, directive.where);
  if (word == "include") include(rest, directive.where);
  if (word == "undef") macros_.undefine(first_word(rest));
  if (word == "error") complain(directive.where, fmt::format("#error {}", rest));
}

// True when the directive was one of the conditional ones.
bool Preprocessor::conditional(std::string_view word, std::string_view rest,
                               const Location& where) {
  if (word == "if" || word == "ifdef" || word == "ifndef") {
    if (branches_.size() == kMaxBranches) complain(where, "conditionals are nested too deeply");
    const bool reached = active();
    const bool taken =
        reached && (word == "if" ? holds(rest, macros_, where)
                                 : macros_.contains(first_word(rest)) == (word == "ifdef"));
    branches_.push_back({reached, taken, taken, where});
    return true;
  }
  if (word != "else" && word != "elif" && word != "endif") return false;
  if (branches_.empty()) complain(where, fmt::format("#{} without #if", word));
  if (word == "endif") {
    branches_.pop_back();
  } else {
    otherwise(word, rest, where);
  }
  return true;
}

void Preprocessor::otherwise(std::string_view word, std::string_view rest, const Location& where) {
  Branch& branch = branches_.back();
  const bool reached = branch.outer && !branch.taken;
  branch.active = reached && (word == "else" || holds(rest, macros_, where));
  branch.taken = branch.taken || branch.active;
}

void Preprocessor::define(std::string_view rest, const Location& where) {
  const std::string_view name = first_word(rest);
  if (name.empty()) complain(where, "#define needs a name");
  if (rest.substr(name.size()).starts_with('('))
    complain(where, "macros with parameters are not supported");
  macros_.define(name, rest.substr(name.size()), where);
}

void Preprocessor::include(std::string_view rest, const Location& where) {
  if (!rest.starts_with('"')) return;
  std::string name(rest.substr(1, rest.find('"', 1) - 1));
  if (!name.starts_with('/'))
    name.insert(0, where.file.substr(0, where.file.find_last_of('/') + 1));
  if (files_.size() == kMaxIncludeDepth || kept_.size() > 2 * kMaxIncludes)
    complain(where, "too many files are included");
  std::optional<std::string> text = reader_ ? reader_(name) : std::nullopt;
  if (!text) complain(where, fmt::format("cannot read \"{}\"", name));
  const std::string_view file = keep(name);
  files_.emplace_back(file, keep(std::move(*text)));
}

}  // namespace xdrgen
