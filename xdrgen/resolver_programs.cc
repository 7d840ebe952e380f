#include <fmt/format.h>

#include "xdrgen/resolver.h"

namespace xdrgen {

std::unique_ptr<Model> resolve(const ast::Specification& specification) {
  auto model = std::make_unique<Model>();
  Resolver(*model).run(specification);
  return model;
}

// Programs and versions are constants, too; several programs may share the name of a version when
// its number is the same.
void Resolver::number_constant(const std::string& name, const Location& where,
                               std::uint32_t value) {
  const auto at = globals_.find(name);
  const bool same = at != globals_.end() && at->second.value && *at->second.value == value;
  if (same) return;
  Global global;
  global.value = value;
  declare(name, where, global);
  model_.constants.push_back({name, value, {}});
}

void Resolver::collect_procedure_numbers(const ast::Specification& specification) {
  for (const ast::Program& program : specification.programs)
    for (const ast::Version& version : program.versions)
      for (const ast::Procedure& one : version.procedures)
        if (one.number.literal) procedure_numbers_.emplace(one.name, *one.number.literal);
}

Program Resolver::program(const ast::Program& from) {
  Program result{from.name, unsigned_32(from.number, "a program number"), {}};
  number_constant(from.name, from.where, result.number);
  std::set<std::uint32_t> numbers;
  for (const ast::Version& one : from.versions) {
    result.versions.push_back(version(one));
    if (!numbers.insert(result.versions.back().number).second)
      complain(one.where, "two versions of this program have the same number");
  }
  return result;
}

Version Resolver::version(const ast::Version& from) {
  Version result{from.name, unsigned_32(from.number, "a version number"), {}};
  number_constant(from.name, from.where, result.number);
  std::set<std::string> names;
  std::set<std::uint32_t> numbers;
  for (const ast::Procedure& one : from.procedures) {
    result.procedures.push_back(procedure(one));
    if (!names.insert(one.name).second || globals_.contains(one.name))
      complain(one.where, fmt::format("'{}' is already defined", one.name));
    if (!numbers.insert(result.procedures.back().number).second)
      complain(one.where, "two procedures of this version have the same number");
  }
  return result;
}

Type* Resolver::procedure_type(const ast::TypeName& name) {
  const auto* builtin = std::get_if<ast::Builtin>(&name.what);
  if (builtin != nullptr && *builtin == ast::Builtin::String) return make(Kind::String);
  return named_type(name);
}

// RFC 5531 12.1: several arguments are encoded one after the other, which is what a struct does.
Type* Resolver::arguments(const ast::Procedure& from) {
  if (from.arguments.empty()) return make(Kind::Void);
  if (from.arguments.size() == 1) return procedure_type(from.arguments[0]);
  const std::string name = from.name + "_args";
  Struct fields;
  for (const ast::TypeName& type : from.arguments) {
    Field field;
    field.name = fmt::format("arg{}", fields.fields.size() + 1);
    field.where = type.where;
    field.type = procedure_type(type);
    fields.fields.push_back(std::move(field));
  }
  Global global;
  global.type = make_named(name, from.where);
  declare(name, from.where, global);
  global.type->body = std::move(fields);
  return make(Kind::Struct, global.type);
}

Procedure Resolver::procedure(const ast::Procedure& from) {
  Procedure result;
  result.name = from.name;
  result.number = unsigned_32(from.number, "a procedure number");
  result.results = procedure_type(from.results);
  result.arguments = arguments(from);
  return result;
}

}  // namespace xdrgen
