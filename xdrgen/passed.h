// The names that a specification defines for the C compiler: `%#define NAME number`, within
// whatever `%#if` the line stands. Which of those hold, the C compiler alone knows in general; a
// name of which it would have one number in any case has that number.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "xdrgen/macros.h"

namespace xdrgen {

class PassedNames {
 public:
  // `macros` outlives this: those of #define are replaced in lines passed through, too.
  explicit PassedNames(const Macros& macros) : macros_(macros) {}

  // Called for each line that is passed through.
  void perform(const Token& directive);
  // Called for each `const NAME`, which is a #define to the C compiler.
  void constant(const Token& name);
  // The number of the name; nullopt when it has none. Complains when it may have several values.
  std::optional<std::string_view> number_of(const Token& name) const;

 private:
  // A branch of which nobody but the C compiler knows whether it is taken.
  struct Arm {
    std::size_t conditional = 0;
    std::size_t arm = 0;
    bool operator==(const Arm&) const = default;
  };
  using Path = std::vector<Arm>;
  struct Conditional {
    Arm arm;
    bool outer = true;         // Whether what surrounds it may be taken.
    bool active = true;        // Whether this branch may be.
    bool settled = false;      // Whether none of the branches that follow can be.
    bool undecided = false;    // Whether this branch, or one before it, is a question.
    std::string_view guarded;  // NAME in the first branch of `%#ifndef NAME`.
  };
  struct Definition {
    Path path;
    std::string_view number;  // Empty: it is something else.
    bool removed = false;     // By %#undef.
  };
  using Values = std::set<std::string_view>;

  bool conditional(std::string_view word, std::string_view rest);
  void define(std::string_view rest, const Location& where);
  void add(std::string_view name, Definition definition, const Location& where);
  std::optional<bool> condition(std::string_view text) const;
  std::optional<bool> is_defined(std::string_view name) const;
  std::optional<std::string_view> sum(Lexer& lexer);
  std::optional<std::string_view> one_number(std::string_view name) const;
  std::optional<std::string_view> known_number(Token token) const;
  Values values(std::string_view name) const;
  bool reaching(std::string_view name, std::vector<const Definition*>& to) const;
  Path path() const;
  bool active() const { return open_.empty() || open_.back().active; }

  const Macros& macros_;
  std::deque<std::string> kept_;
  std::vector<Conditional> open_;
  std::size_t conditionals_ = 0;
  std::map<std::string, std::vector<Definition>, std::less<>> names_;
};

}  // namespace xdrgen
