#include "xdrgen/passed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "xdrgen/number.h"

namespace xdrgen {
namespace {

// Each use of a name looks at all its definitions, and each of those at all that surrounds it.
constexpr std::size_t kMaxOfOneName = 16;
constexpr std::size_t kMaxOpen = 64;
constexpr ast::Integer kLargestSum = std::numeric_limits<std::int64_t>::max();

}  // namespace

void PassedNames::perform(const Token& directive) {
  const std::string_view text = trim(directive.text);
  const std::string_view word = first_word(text);
  const std::string_view rest = trim(text.substr(word.size()));
  if (conditional(word, rest)) {
    if (open_.size() > kMaxOpen) complain(directive.where, "conditionals are nested too deeply");
    return;
  }
  if (!active()) return;
  if (word == "define") define(rest, directive.where);
  if (word == "undef") add(first_word(rest), {path(), {}, true}, directive.where);
}

// True when the directive was a conditional one. Whether they are balanced is the C compiler's
// business.
bool PassedNames::conditional(std::string_view word, std::string_view rest) {
  std::optional<bool> holds;
  if (word == "ifdef" || word == "ifndef") {
    holds = is_defined(first_word(rest));
    if (holds && word == "ifndef") holds = !*holds;
  } else if (word == "if" || word == "elif") {
    holds = condition(rest);
  } else if (word == "else") {
    holds = true;
  } else if (word == "endif") {
    if (!open_.empty()) open_.pop_back();
    return true;
  } else {
    return false;
  }
  if (word.starts_with("if")) {
    Conditional opened;
    opened.outer = active();
    opened.arm.conditional = ++conditionals_;
    if (word == "ifndef") opened.guarded = first_word(rest);
    open_.push_back(opened);
  } else if (open_.empty()) {
    return true;
  } else {
    ++open_.back().arm.arm;
    open_.back().guarded = {};
  }
  Conditional& now = open_.back();
  now.active = now.outer && !now.settled && holds.value_or(true);
  now.undecided = now.undecided || !holds;
  now.settled = now.settled || holds.value_or(false);
  return true;
}

// Number, name, defined NAME, defined(NAME), with any '!' before it; all else is a question.
std::optional<bool> PassedNames::condition(std::string_view text) const {
  bool wanted = true;
  for (text = trim(text); text.starts_with('!'); text = trim(text.substr(1))) wanted = !wanted;
  const std::vector<Token> tokens = tokens_of(text, {});
  const bool asks = !tokens.empty() && tokens[0].is("defined");
  if (asks &&
      (tokens.size() == 2 || (tokens.size() == 4 && tokens[1].is("(") && tokens[3].is(")")))) {
    const std::optional<bool> known = is_defined(tokens[tokens.size() / 2].text);
    return known ? std::optional(*known == wanted) : std::nullopt;
  }
  if (tokens.size() != 1) return std::nullopt;
  const std::optional<std::string_view> number = known_number(tokens[0]);
  if (!number) return std::nullopt;
  return (number->find_first_not_of("0xX") != std::string_view::npos) == wanted;
}

void PassedNames::define(std::string_view rest, const Location& where) {
  Lexer lexer(where.file, rest);
  const Token name = lexer.next();
  if (name.kind != TokenKind::Identifier) return;
  Definition definition;
  definition.path = path();
  definition.number = sum(lexer).value_or(std::string_view());
  // Behind `%#ifndef NAME` and its `%#define NAME` the name is defined in any case, and if no line
  // here has done it before, this is the only number that is known.
  const bool guarded =
      !open_.empty() && open_.back().undecided && open_.back().guarded == name.text;
  if (guarded && values(name.text).empty()) definition.path.pop_back();
  add(name.text, std::move(definition), where);
}

void PassedNames::constant(const Token& name) {
  if (active()) add(name.text, {path(), {}, false}, name.where);
}

void PassedNames::add(std::string_view name, Definition definition, const Location& where) {
  std::vector<Definition>& all = names_[std::string(name)];
  const auto covered = [&](const Definition& earlier) {
    return earlier.path.size() >= definition.path.size() &&
           std::equal(definition.path.begin(), definition.path.end(), earlier.path.begin());
  };
  std::erase_if(all, covered);
  if (all.size() == kMaxOfOneName)
    complain(where, fmt::format("'{}' is defined too many times", name));
  all.push_back(std::move(definition));
}

// Numbers and names of numbers, added up.
std::optional<std::string_view> PassedNames::sum(Lexer& lexer) {
  ast::Integer total = 0;
  for (bool more = true; more;) {
    Token token = lexer.next();
    const std::optional<std::string_view> number = known_number(token);
    if (!number) return std::nullopt;
    token.text = *number;
    total += parse_number(token);
    token = lexer.next();
    more = token.text == "+";
    if (!more && token.kind != TokenKind::End) return std::nullopt;
  }
  if (total > kLargestSum || total < -kLargestSum) return std::nullopt;
  return kept_.emplace_back(std::to_string(static_cast<std::int64_t>(total)));
}

PassedNames::Path PassedNames::path() const {
  Path result;
  for (const Conditional& one : open_)
    if (one.undecided) result.push_back(one.arm);
  return result;
}

// Appends the definitions that may hold here. True when one of them does for certain.
bool PassedNames::reaching(std::string_view name, std::vector<const Definition*>& to) const {
  const auto found = names_.find(name);
  if (found == names_.end()) return false;
  const Path here = path();
  for (auto at = found->second.rbegin(); at != found->second.rend(); ++at) {
    const auto [theirs, ours] = std::ranges::mismatch(at->path, here);
    const bool certain = theirs == at->path.end();
    // Of two branches of one conditional not both are taken.
    if (!certain && ours != here.end() && theirs->conditional == ours->conditional) continue;
    to.push_back(&*at);
    if (certain) return true;
  }
  return false;
}

std::optional<bool> PassedNames::is_defined(std::string_view name) const {
  std::vector<const Definition*> possible;
  const bool certain = reaching(name, possible);
  const auto removed = std::ranges::count(possible, true, &Definition::removed);
  if (certain && removed == 0) return true;
  if (certain && removed == std::ssize(possible)) return false;
  return std::nullopt;
}

// The numbers that the name may have; empty for other values.
PassedNames::Values PassedNames::values(std::string_view name) const {
  std::vector<const Definition*> possible;
  reaching(name, possible);
  Values result;
  for (const Definition* one : possible)
    if (!one->removed) result.insert(one->number);
  return result;
}

std::optional<std::string_view> PassedNames::one_number(std::string_view name) const {
  const Values all = values(name);
  if (all.size() != 1 || all.begin()->empty()) return std::nullopt;
  return *all.begin();
}

std::optional<std::string_view> PassedNames::known_number(Token token) const {
  if (macros_.contains(token.text))
    if (const std::vector<Token> expanded = macros_.expand(token); expanded.size() == 1)
      token = expanded.front();
  return token.kind == TokenKind::Number ? token.text : one_number(token.text);
}

std::optional<std::string_view> PassedNames::number_of(const Token& name) const {
  Values all = values(name.text);
  if (all.size() < 2) return one_number(name.text);
  if (all.erase(std::string_view()) > 0) all.insert("something else");
  complain(name.where, fmt::format("'{}' is {}, depending on a %#if that only a C compiler decides",
                                   name.text, fmt::join(all, " or ")));
}

}  // namespace xdrgen
