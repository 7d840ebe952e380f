// The state of resolve(): scopes of constants and types, and the checks of RFC 4506 6.4.
#pragma once

#include <set>

#include "xdrgen/model.h"

namespace xdrgen {

class Resolver {
 public:
  explicit Resolver(Model& model) : model_(model) {}
  void run(const ast::Specification& specification);

 private:
  struct Global {
    Location where;
    std::optional<ast::Integer> value;  // Of a constant or enumerator.
    Named* type = nullptr;
    const ast::Definition* definition = nullptr;
  };

  void declare(const std::string& name, const Location& where, Global global);
  void declare_all(const ast::Specification& specification);
  void declare_enum(const ast::Definition& definition, const ast::Enum& from, Named& to);
  void fill(const ast::Definition& definition, Named& to);

  Field field(const ast::Declaration& declaration);
  Type* declared_type(const ast::Declaration& declaration);
  Type* byte_type(const ast::Declaration& declaration, bool text);
  Type* named_type(const ast::TypeName& name);
  Type* well_known(const std::string& name);
  Type* shaped(const ast::Declaration& declaration, const Type* element);
  std::uint32_t bound(const ast::Declaration& declaration, std::string& text) const;
  void check_typedefs() const;
  void number_items(const std::vector<ast::Mark>& eligible);
  std::string item_of(Type& type, const std::string& name);

  void struct_body(const ast::Struct& from, Named& to);
  void union_body(const ast::Union& from, Named& to);
  std::string case_label(const ast::Value& value, const Type& discriminant,
                         std::set<ast::Integer>& seen);

  void collect_names(const ast::Specification& specification);
  Program program(const ast::Program& from);
  Version version(const ast::Version& from, const std::string& program);
  Procedure procedure(const ast::Procedure& from, const Version& version,
                      const std::string& program);
  Type* procedure_type(const ast::TypeName& name);
  Type* arguments(const ast::Procedure& from, const std::string& version,
                  const std::string& program);
  void number_constant(const std::string& name, const Location& where, std::uint32_t value);

  ast::Integer evaluate(const ast::Value& value) const;
  std::uint32_t unsigned_32(const ast::Value& value, std::string_view what) const;
  Type* make(Kind kind, Named* named = nullptr);
  Named* make_named(const std::string& name, const Location& where);

  Model& model_;
  std::map<std::string, Global, std::less<>> globals_;
  std::map<std::string, Type*, std::less<>> external_;
  // To rpcgen the names of procedures are constants, too, before and after their definition.
  std::map<std::string, ast::Integer, std::less<>> procedure_numbers_;
  std::multiset<std::string> version_names_;  // Of all programs.
  std::map<std::string, Location> eligible_;  // Marks that have met no field yet.
};

}  // namespace xdrgen
