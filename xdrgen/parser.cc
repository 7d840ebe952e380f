#include "xdrgen/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "xdrgen/number.h"

namespace xdrgen {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxDefinitions = 4096;

bool is_reserved(std::string_view word) {
  constexpr std::array<std::string_view, 17> kWords = {
      "bool", "case",   "const",  "default", "double", "quadruple", "enum",     "float", "hyper",
      "int",  "opaque", "string", "struct",  "switch", "typedef",   "unsigned", "void"};
  return word == "union" || std::ranges::find(kWords, word) != kWords.end();
}

}  // namespace

void Parser::unexpected(std::string_view wanted) {
  const std::string found =
      token_.kind == TokenKind::End ? "the end of the input" : fmt::format("'{}'", token_.text);
  complain(token_.where, fmt::format("expected {} but found {}", wanted, found));
}

bool Parser::accept(std::string_view text) {
  if (!token_.is(text)) return false;
  advance();
  return true;
}

void Parser::expect(std::string_view text) {
  if (!accept(text)) unexpected(fmt::format("'{}'", text));
}

std::string Parser::identifier(std::string_view what) {
  if (token_.kind != TokenKind::Identifier || is_reserved(token_.text)) unexpected(what);
  std::string name(token_.text);
  advance();
  return name;
}

void Parser::add(std::string name, const Location& where, decltype(ast::Definition::body) body) {
  if (result_.definitions.size() == kMaxDefinitions) complain(where, "too many definitions");
  result_.definitions.push_back({std::move(name), where, std::move(body)});
}

ast::Specification Parser::specification() {
  while (token_.kind != TokenKind::End) definition();
  rename_all();
  return std::move(result_);
}

void Parser::definition() {
  const Location where = token_.where;
  if (token_.is("const")) return constant();
  if (token_.is("typedef")) return type_definition();
  if (token_.is("program")) return program();
  if (accept("enum")) {
    const std::string name = identifier("a name for the enum");
    add(name, where, enum_body());
  } else if (accept("struct")) {
    const std::string name = identifier("a name for the struct");
    add(name, where, struct_body(name));
  } else if (accept("union")) {
    const std::string name = identifier("a name for the union");
    add(name, where, union_body(name));
  } else {
    unexpected("a definition (const, enum, struct, union, typedef or program)");
  }
  expect(";");
}

void Parser::constant() {
  advance();
  const Location where = token_.where;
  const std::string name = identifier("a name for the constant");
  expect("=");
  ast::Constant result;
  if (token_.kind == TokenKind::String) {
    result.text = token_.text;
    if (result.text->find('\\') != std::string::npos) complain(token_.where, "no escapes here");
    advance();
  } else {
    result.value = value();
  }
  add(name, where, std::move(result));
  expect(";");
}

void Parser::type_definition() {
  advance();
  ast::Declaration declared = declaration({});
  const auto* type = std::get_if<std::string>(&declared.type.what);
  const bool is_anonymous = type != nullptr && type->starts_with('?');
  if (is_anonymous && declared.shape == ast::Shape::Plain) {
    name_anonymous(declared, declared.name);
  } else if (type == nullptr || *type != declared.name || declared.shape != ast::Shape::Plain) {
    if (is_anonymous) name_anonymous(declared, declared.name + "_element");
    const Location where = declared.where;
    std::string name = declared.name;
    add(std::move(name), where, ast::Typedef{std::move(declared)});
  }
  expect(";");
}

ast::Enum Parser::enum_body() {
  ast::Enum result;
  expect("{");
  do {
    ast::Enumerator one;
    one.where = token_.where;
    one.name = identifier("an enumerator");
    if (accept("=")) one.value = value();
    result.enumerators.push_back(std::move(one));
  } while (accept(","));
  expect("}");
  return result;
}

ast::Struct Parser::struct_body(const std::string& outer) {
  ast::Struct result;
  expect("{");
  do {
    result.fields.push_back(declaration(outer));
    expect(";");
  } while (!accept("}"));
  return result;
}

ast::Union Parser::union_body(const std::string& outer) {
  ast::Union result;
  expect("switch");
  expect("(");
  result.discriminant = declaration(outer);
  expect(")");
  expect("{");
  do {
    result.arms.push_back(arm(outer));
  } while (!accept("}"));
  return result;
}

ast::Arm Parser::arm(const std::string& outer) {
  ast::Arm result;
  if (!token_.is("case") && !token_.is("default")) unexpected("'case' or 'default'");
  for (;;) {
    if (accept("case")) {
      result.cases.push_back(value());
    } else if (accept("default")) {
      result.is_default = true;
    } else {
      break;
    }
    expect(":");
  }
  result.field = declaration(outer);
  expect(";");
  return result;
}

ast::Declaration Parser::declaration(const std::string& outer) {
  ast::Declaration result;
  result.where = token_.where;
  result.type = type_name();
  const auto* builtin = std::get_if<ast::Builtin>(&result.type.what);
  if (builtin != nullptr && *builtin == ast::Builtin::Void) return result;
  declarator(result);
  const auto* name = std::get_if<std::string>(&result.type.what);
  if (!outer.empty() && name != nullptr && name->starts_with('?'))
    name_anonymous(result, outer + "_" + result.name);
  return result;
}

void Parser::declarator(ast::Declaration& to) {
  if (accept("*")) to.shape = ast::Shape::Pointer;
  to.where = token_.where;
  to.name = identifier("a name");
  if (to.shape == ast::Shape::Pointer) return;
  if (accept("[")) {
    to.shape = ast::Shape::Fixed;
    to.bound = value();
    expect("]");
  } else if (accept("<")) {
    to.shape = ast::Shape::Variable;
    if (accept(">")) return;
    to.bound = value();
    expect(">");
  }
}

ast::TypeName Parser::unsigned_type() {
  const Location where = token_.where;
  advance();
  if (accept("hyper")) return {ast::Builtin::UnsignedHyper, where};
  if (!accept("int") && !accept("long") && !accept("short")) accept("char");
  return {ast::Builtin::UnsignedInt, where};
}

std::optional<ast::TypeName> Parser::simple_type() {
  using ast::Builtin;
  constexpr std::array<std::pair<std::string_view, Builtin>, 9> kTypes = {{
      {"void", Builtin::Void},
      {"int", Builtin::Int},
      {"hyper", Builtin::Hyper},
      {"float", Builtin::Float},
      {"double", Builtin::Double},
      {"quadruple", Builtin::Quadruple},
      {"bool", Builtin::Bool},
      {"opaque", Builtin::Opaque},
      {"string", Builtin::String},
  }};
  if (token_.is("unsigned")) return unsigned_type();
  const Location where = token_.where;
  for (const auto& [word, builtin] : kTypes)
    if (accept(word)) return ast::TypeName{builtin, where};
  return std::nullopt;
}

std::optional<ast::TypeName> Parser::compound_type() {
  const Location where = token_.where;
  for (const std::string_view keyword : {"struct", "union", "enum"}) {
    if (!accept(keyword)) continue;
    const bool body = token_.is("{") || token_.is("switch");
    if (body) return anonymous(keyword, where);
    return ast::TypeName{identifier("a type"), where};
  }
  return std::nullopt;
}

ast::TypeName Parser::type_name() {
  const Location where = token_.where;
  if (std::optional<ast::TypeName> simple = simple_type()) return *simple;
  if (std::optional<ast::TypeName> compound = compound_type()) return *compound;
  return {identifier("a type"), where};
}

ast::TypeName Parser::anonymous(std::string_view keyword, const Location& where) {
  if (depth_ == kMaxDepth) complain(where, "types are nested too deeply");
  ++depth_;
  const std::string name = fmt::format("?{}", anonymous_.size());
  anonymous_.emplace_back();
  if (keyword == "struct") {
    add(name, where, struct_body(name));
  } else if (keyword == "enum") {
    add(name, where, enum_body());
  } else {
    add(name, where, union_body(name));
  }
  --depth_;
  return {name, where};
}

void Parser::name_anonymous(const ast::Declaration& field, std::string name) {
  const std::string& placeholder = std::get<std::string>(field.type.what);
  anonymous_[std::stoul(placeholder.substr(1))] = std::move(name);
}

// Placeholders may stand for each other: "?3_kind" inside what became "call_body".
std::string Parser::full_name(const std::string& name) const {
  std::string result = name;
  while (result.starts_with('?')) {
    const std::size_t end = std::min(result.find('_'), result.size());
    result = anonymous_[std::stoul(result.substr(1, end - 1))] + result.substr(end);
  }
  return result;
}

void Parser::rename_all() {
  const auto rename = [this](ast::Declaration& declaration) {
    if (auto* name = std::get_if<std::string>(&declaration.type.what)) *name = full_name(*name);
  };
  for (ast::Definition& definition : result_.definitions) {
    definition.name = full_name(definition.name);
    if (auto* structure = std::get_if<ast::Struct>(&definition.body))
      for (ast::Declaration& field : structure->fields) rename(field);
    if (auto* type = std::get_if<ast::Typedef>(&definition.body)) rename(type->declaration);
    if (auto* unions = std::get_if<ast::Union>(&definition.body)) {
      rename(unions->discriminant);
      for (ast::Arm& arm : unions->arms) rename(arm.field);
    }
  }
}

ast::Value Parser::value() {
  ast::Value result;
  result.where = token_.where;
  if (token_.kind == TokenKind::Number) {
    result.literal = parse_number(token_);
    advance();
  } else {
    result.name = identifier("a number or the name of a constant");
  }
  return result;
}

void Parser::program() {
  advance();
  ast::Program result;
  result.where = token_.where;
  result.name = identifier("a name for the program");
  expect("{");
  do {
    result.versions.push_back(version());
  } while (!accept("}"));
  expect("=");
  result.number = value();
  expect(";");
  result_.programs.push_back(std::move(result));
}

ast::Version Parser::version() {
  expect("version");
  ast::Version result;
  result.where = token_.where;
  result.name = identifier("a name for the version");
  expect("{");
  do {
    result.procedures.push_back(procedure());
  } while (!accept("}"));
  expect("=");
  result.number = value();
  expect(";");
  return result;
}

ast::TypeName Parser::procedure_type() {
  const Location where = token_.where;
  if (std::optional<ast::TypeName> simple = simple_type()) {
    if (std::get<ast::Builtin>(simple->what) == ast::Builtin::Opaque)
      complain(where, "a procedure cannot take or return bare opaque; name it with a typedef");
    return *simple;
  }
  if (token_.is("struct") || token_.is("enum") || token_.is("union")) advance();
  return {identifier("a type"), where};
}

ast::Procedure Parser::procedure() {
  ast::Procedure result;
  result.results = procedure_type();
  result.where = token_.where;
  result.name = identifier("a name for the procedure");
  expect("(");
  do {
    ast::TypeName type = procedure_type();
    const auto* builtin = std::get_if<ast::Builtin>(&type.what);
    const bool none = builtin != nullptr && *builtin == ast::Builtin::Void;
    if (none && !result.arguments.empty()) complain(type.where, "void stands alone");
    if (!none) result.arguments.push_back(std::move(type));
  } while (accept(","));
  expect(")");
  expect("=");
  result.number = value();
  expect(";");
  return result;
}

}  // namespace xdrgen
