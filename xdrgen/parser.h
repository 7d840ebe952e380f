// The grammar of RFC 4506 6.3 and RFC 5531 12.2, by recursive descent, plus what rpcgen's users
// write: implicit enumerator values, `struct name` as a type, `string` and struct types as
// procedure arguments.
#pragma once

#include "xdrgen/ast.h"
#include "xdrgen/preprocessor.h"

namespace xdrgen {

class Parser {
 public:
  explicit Parser(Preprocessor& input) : input_(input) { advance(); }

  // Complains at the first token that does not fit.
  ast::Specification specification();

 private:
  void definition();
  void constant();
  void type_definition();
  void enumeration(const std::string& name, const Location& where);
  void structure(const std::string& name, const Location& where);
  void discriminated_union(const std::string& name, const Location& where);
  ast::Enum enum_body();
  ast::Struct struct_body(const std::string& outer);
  ast::Union union_body(const std::string& outer);
  ast::Arm arm(const std::string& outer);

  ast::Declaration declaration(const std::string& outer);
  void declarator(ast::Declaration& to);
  ast::TypeName type_name();
  std::optional<ast::TypeName> simple_type();
  ast::TypeName unsigned_type();
  std::optional<ast::TypeName> compound_type();
  ast::TypeName anonymous(std::string_view keyword, const Location& where);
  void name_anonymous(const ast::Declaration& field, std::string name);
  void rename_all();
  std::string full_name(const std::string& name) const;

  void program();
  ast::Version version();
  ast::Procedure procedure();
  ast::TypeName procedure_type();

  ast::Value value();
  std::string identifier(std::string_view what);
  bool accept(std::string_view text);
  void expect(std::string_view text);
  void advance() { token_ = input_.next(); }
  void add(std::string name, const Location& where, decltype(ast::Definition::body) body);
  [[noreturn]] void unexpected(std::string_view wanted);

  Preprocessor& input_;
  Token token_;
  ast::Specification result_;
  // The names of anonymous types, by number. Until everything is read they are called "?<number>":
  // the field that names such a type comes after its body.
  std::vector<std::string> anonymous_;
  int depth_ = 0;
};

}  // namespace xdrgen
