#include "xdrgen/resolver.h"

#include <fmt/format.h>

#include <algorithm>

namespace xdrgen {
namespace {

constexpr ast::Integer kLargest = std::numeric_limits<std::uint32_t>::max();
// RPC libraries predefine this one for every specification.
constexpr ast::Integer kMaxNetNameLength = 255;
constexpr ast::Integer kSmallestInt = std::numeric_limits<std::int32_t>::min();
constexpr ast::Integer kLargestInt = std::numeric_limits<std::int32_t>::max();

}  // namespace

Type* Resolver::make(Kind kind, Named* named) {
  Type& type = model_.type_store.emplace_back();
  type.kind = kind;
  type.named = named;
  return &type;
}

Named* Resolver::make_named(const std::string& name, const Location& where) {
  Named& named = model_.named_store.emplace_back();
  named.name = name;
  named.where = where;
  model_.types.push_back(&named);
  return &named;
}

void Resolver::declare(const std::string& name, const Location& where, Global global) {
  global.where = where;
  const auto [at, fresh] = globals_.emplace(name, global);
  if (!fresh)
    complain(where,
             fmt::format("'{}' is already defined at {}", name, to_string(at->second.where)));
}

ast::Integer Resolver::evaluate(const ast::Value& value) const {
  if (value.literal) return *value.literal;
  if (const auto at = globals_.find(value.name); at != globals_.end()) {
    if (at->second.value) return *at->second.value;
    complain(value.where, fmt::format("'{}' is not a number", value.name));
  }
  if (value.name == "TRUE" || value.name == "FALSE") return value.name == "TRUE" ? 1 : 0;
  if (const auto at = procedure_numbers_.find(value.name); at != procedure_numbers_.end())
    return at->second;
  if (value.name == "MAXNETNAMELEN") return kMaxNetNameLength;
  complain(value.where, fmt::format("constant '{}' is not defined before its use", value.name));
}

std::uint32_t Resolver::unsigned_32(const ast::Value& value, std::string_view what) const {
  const ast::Integer number = evaluate(value);
  if (number < 0 || number > kLargest)
    complain(value.where, fmt::format("{} must be between 0 and 4294967295", what));
  return static_cast<std::uint32_t>(number);
}

void Resolver::declare_enum(const ast::Definition& definition, const ast::Enum& from, Named& to) {
  Enum result;
  ast::Integer next = 0;
  for (const ast::Enumerator& one : from.enumerators) {
    const ast::Integer value = one.value ? evaluate(*one.value) : next;
    // RFC 4506 4.3 has signed numbers; specifications write 0xffffffff all the same.
    if (value < kSmallestInt || value > kLargest)
      complain(one.where, fmt::format("'{}' does not fit 32 bits", one.name));
    Global global;
    global.value = value;
    declare(one.name, one.where, global);
    result.enumerators.push_back({one.name, static_cast<std::int32_t>(value)});
    next = value + 1;
  }
  if (!definition.name.empty()) to.body = std::move(result);
}

// Types may be used before they are defined; constants and enumerators may not.
void Resolver::declare_all(const ast::Specification& specification) {
  for (const ast::Definition& definition : specification.definitions) {
    Global global;
    global.definition = &definition;
    if (const auto* constant = std::get_if<ast::Constant>(&definition.body)) {
      if (!constant->text) global.value = evaluate(constant->value);
      model_.constants.push_back({definition.name, global.value.value_or(0), constant->text});
    } else {
      global.type = make_named(definition.name, definition.where);
    }
    declare(definition.name, definition.where, global);
    if (const auto* from = std::get_if<ast::Enum>(&definition.body))
      declare_enum(definition, *from, *global.type);
    if (std::holds_alternative<ast::Union>(definition.body)) global.type->body = Union{};
    if (std::holds_alternative<ast::Struct>(definition.body)) global.type->body = Struct{};
    if (std::holds_alternative<ast::Typedef>(definition.body)) global.type->body = Alias{};
  }
}

void Resolver::fill(const ast::Definition& definition, Named& to) {
  if (const auto* from = std::get_if<ast::Struct>(&definition.body)) struct_body(*from, to);
  if (const auto* from = std::get_if<ast::Union>(&definition.body)) union_body(*from, to);
  if (const auto* from = std::get_if<ast::Typedef>(&definition.body)) {
    if (from->declaration.name.empty()) complain(definition.where, "void cannot be named");
    Field declared = field(from->declaration);
    std::get<Alias>(to.body).field = std::move(declared);
  }
}

void Resolver::run(const ast::Specification& specification) {
  collect_names(specification);
  declare_all(specification);
  for (const bool typedefs : {true, false}) {
    for (const ast::Definition& definition : specification.definitions) {
      const Global& global = globals_.at(definition.name);
      if (std::holds_alternative<ast::Typedef>(definition.body) == typedefs && global.type)
        fill(definition, *global.type);
    }
    if (typedefs) check_typedefs();
  }
  for (const ast::Program& from : specification.programs) model_.programs.push_back(program(from));
  number_items(specification.eligible);
}

void Resolver::struct_body(const ast::Struct& from, Named& to) {
  std::set<std::string> names;
  Struct result;
  for (const ast::Declaration& declaration : from.fields) {
    if (declaration.name.empty()) complain(declaration.where, "a struct cannot hold void");
    if (!names.insert(declaration.name).second)
      complain(declaration.where, fmt::format("field '{}' is there twice", declaration.name));
    result.fields.push_back(field(declaration));
  }
  to.body = std::move(result);
}

std::string Resolver::case_label(const ast::Value& value, const Type& discriminant,
                                 std::set<ast::Integer>& seen) {
  ast::Integer number = evaluate(value);
  // As of enumerators: of what is signed, the upper half of 32 bits is written for negative ones.
  const bool is_signed = discriminant.kind == Kind::Int || discriminant.kind == Kind::Enum;
  const bool wraps = is_signed && number > kLargestInt && number <= kLargest;
  if (wraps) number -= kLargest + 1;
  const auto complain_range = [&](std::string_view what) {
    complain(value.where, fmt::format("this case is not {}", what));
  };
  if (!seen.insert(number).second) complain(value.where, "this case is there twice");
  switch (discriminant.kind) {
    case Kind::Bool:
      if (number != 0 && number != 1) complain_range("TRUE or FALSE");
      return number == 1 ? "1" : "0";
    case Kind::UnsignedInt:
      if (number < 0 || number > kLargest) complain_range("an unsigned int");
      break;
    case Kind::Enum: {
      const auto& enumerators = std::get<Enum>(discriminant.named->body).enumerators;
      const auto found = std::ranges::find(enumerators, number, &Enumerator::value);
      if (found == enumerators.end())
        complain_range(fmt::format("a member of {}", discriminant.named->name));
      const bool own = std::ranges::count(enumerators, value.name, &Enumerator::name) > 0;
      return own ? value.name : found->name;
    }
    default:
      if (number < kSmallestInt || number > kLargestInt) complain_range("an int");
  }
  // What is no constant in C++, such as TRUE or a procedure's name, has its number only.
  if (!wraps && globals_.contains(value.name)) return value.name;
  return fmt::format("{}", static_cast<std::int64_t>(number));
}

void Resolver::union_body(const ast::Union& from, Named& to) {
  Union result;
  result.discriminant = field(from.discriminant);
  const Type& kind = strip(*result.discriminant.type);
  const bool allowed = kind.kind == Kind::Int || kind.kind == Kind::UnsignedInt ||
                       kind.kind == Kind::Bool || kind.kind == Kind::Enum;
  if (!allowed || from.discriminant.name.empty())
    complain(from.discriminant.where, "a union is switched by an int, unsigned int, bool or enum");
  std::set<std::string> names = {from.discriminant.name};
  std::set<ast::Integer> seen;
  bool has_default = false;
  for (const ast::Arm& arm : from.arms) {
    Arm one;
    for (const ast::Value& value : arm.cases) one.cases.push_back(case_label(value, kind, seen));
    if (arm.is_default && has_default) complain(arm.field.where, "a union has one default");
    one.is_default = arm.is_default;
    has_default = has_default || arm.is_default;
    one.field = field(arm.field);
    if (!arm.field.name.empty() && !names.insert(arm.field.name).second)
      complain(arm.field.where, fmt::format("arm '{}' is there twice", arm.field.name));
    result.arms.push_back(std::move(one));
  }
  to.body = std::move(result);
}

}  // namespace xdrgen
