#include <fmt/format.h>

#include "xdrgen/resolver.h"

namespace xdrgen {

std::unique_ptr<Model> resolve(const ast::Specification& specification) {
  auto model = std::make_unique<Model>();
  Resolver(*model).run(specification);
  return model;
}

void Resolver::number_constant(const std::string& name, const Location& where,
                               std::uint32_t value) {
  Global global;
  global.value = value;
  declare(name, where, global);
  model_.constants.push_back({name, value, {}});
}

void Resolver::collect_names(const ast::Specification& specification) {
  for (const ast::Program& program : specification.programs)
    for (const ast::Version& version : program.versions) {
      version_names_.insert(version.name);
      for (const ast::Procedure& one : version.procedures)
        if (one.number.literal) procedure_numbers_.emplace(one.name, *one.number.literal);
    }
}

Program Resolver::program(const ast::Program& from) {
  Program result{from.name, unsigned_32(from.number, "a program number"), {}};
  const auto known = globals_.find(from.name);
  if (known == globals_.end() || known->second.value != result.number)
    number_constant(from.name, from.where, result.number);
  std::set<std::string> names;
  std::set<std::uint32_t> numbers;
  for (const ast::Version& one : from.versions) {
    if (!names.insert(one.name).second)
      complain(one.where, fmt::format("'{}' is already defined", one.name));
    result.versions.push_back(version(one, from.name));
    if (!numbers.insert(result.versions.back().number).second)
      complain(one.where, "two versions of this program have the same number");
  }
  return result;
}

// RFC 5531 12.3: the name of a version belongs to its program. The constant, which only C has,
// therefore gives way to what is called the same, as does the namespace of the procedures.
Version Resolver::version(const ast::Version& from, const std::string& program) {
  const std::string full = program + "_" + from.name;
  Version result{from.name, from.name, unsigned_32(from.number, "a version number"), {}};
  if (version_names_.count(from.name) > 1) result.scope = full;
  const auto known = globals_.find(from.name);
  if (known == globals_.end() || known->second.value != result.number)
    number_constant(known == globals_.end() ? from.name : full, from.where, result.number);
  std::set<std::string> names, types;
  std::set<std::uint32_t> numbers;
  for (const ast::Procedure& one : from.procedures) {
    if (!names.insert(one.name).second)
      complain(one.where, fmt::format("'{}' is already defined", one.name));
    Procedure next = procedure(one, result, program);
    while (globals_.contains(next.type) || !types.insert(next.type).second) next.type += '_';
    result.procedures.push_back(std::move(next));
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
Type* Resolver::arguments(const ast::Procedure& from, const std::string& version,
                          const std::string& program) {
  if (from.arguments.empty()) return make(Kind::Void);
  if (from.arguments.size() == 1) return procedure_type(from.arguments[0]);
  Struct fields;
  for (const ast::TypeName& type : from.arguments) {
    Field field;
    field.name = fmt::format("arg{}", fields.fields.size() + 1);
    field.where = type.where;
    field.type = procedure_type(type);
    fields.fields.push_back(std::move(field));
  }
  std::string name = from.name + "_args";
  for (const std::string& scope : {version, program}) {
    if (!globals_.contains(name) && !procedure_numbers_.contains(name)) break;
    name.insert(0, scope + "_");
  }
  Global global;
  global.type = make_named(name, from.where);
  declare(name, from.where, global);
  global.type->body = std::move(fields);
  return make(Kind::Struct, global.type);
}

Procedure Resolver::procedure(const ast::Procedure& from, const Version& version,
                              const std::string& program) {
  Procedure result;
  result.name = from.name;
  result.number = unsigned_32(from.number, "a procedure number");
  result.results = procedure_type(from.results);
  result.arguments = arguments(from, version.name, program);
  // Procedures may be called as types are: rpcgen appends the version's number to all of them.
  result.type = from.name;
  if (globals_.contains(from.name)) result.type += fmt::format("_{}", version.number);
  return result;
}

}  // namespace xdrgen
