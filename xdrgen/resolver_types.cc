#include <fmt/format.h>

#include <array>

#include "xdrgen/resolver.h"

namespace xdrgen {
namespace {

using Known = std::pair<std::string_view, Kind>;

// What C headers call the basic types, for specifications that do not define them. All narrow ones
// take 32 bits on the wire.
constexpr std::array kScalars = {
    Known{"char", Kind::Int},
    Known{"short", Kind::Int},
    Known{"long", Kind::Int},
    Known{"u_char", Kind::UnsignedInt},
    Known{"u_short", Kind::UnsignedInt},
    Known{"u_int", Kind::UnsignedInt},
    Known{"u_long", Kind::UnsignedInt},
    Known{"bool_t", Kind::Bool},
    Known{"int8_t", Kind::Int},
    Known{"int16_t", Kind::Int},
    Known{"int32_t", Kind::Int},
    Known{"int64_t", Kind::Hyper},
    Known{"uint8_t", Kind::UnsignedInt},
    Known{"uint16_t", Kind::UnsignedInt},
    Known{"uint32_t", Kind::UnsignedInt},
    Known{"uint64_t", Kind::UnsignedHyper},
    Known{"u_int8_t", Kind::UnsignedInt},
    Known{"u_int16_t", Kind::UnsignedInt},
    Known{"u_int32_t", Kind::UnsignedInt},
    Known{"u_int64_t", Kind::UnsignedHyper},
    Known{"u_hyper", Kind::UnsignedHyper},
    Known{"u_quad_t", Kind::UnsignedHyper},
    Known{"quad_t", Kind::Hyper},
    Known{"longlong_t", Kind::Hyper},
    Known{"u_longlong_t", Kind::UnsignedHyper},
};

// RPC libraries predefine these two for every specification.
constexpr std::uint32_t kNetobjBound = 1024;
constexpr std::uint32_t kDesBlockSize = 8;

}  // namespace

const Type& strip(const Type& type) {
  const Type* at = &type;
  while (at->kind == Kind::Alias) at = std::get<Alias>(at->named->body).field.type;
  return *at;
}

bool is_boxed(const Type& optional) {
  const Named* inside = strip(*optional.element).named;
  return inside != nullptr && inside->recursive;
}

Type* Resolver::well_known(const std::string& name) {
  if (const auto at = external_.find(name); at != external_.end()) return at->second;
  for (const auto& [word, kind] : kScalars)
    if (word == name) return external_[name] = make(kind);
  if (name != "netobj" && name != "des_block") return nullptr;
  Type* bytes = make(name == "netobj" ? Kind::Opaque : Kind::FixedOpaque);
  bytes->bound = name == "netobj" ? kNetobjBound : kDesBlockSize;
  bytes->bound_text = std::to_string(bytes->bound);
  Named* alias = make_named(name, {});
  Field field;
  field.name = name;
  field.type = bytes;
  alias->body = Alias{std::move(field)};
  return external_[name] = make(Kind::Alias, alias);
}

Type* Resolver::named_type(const ast::TypeName& name) {
  if (const auto* builtin = std::get_if<ast::Builtin>(&name.what)) {
    // Void to Bool stand in the same order in both enumerations.
    return make(static_cast<Kind>(static_cast<int>(*builtin)));
  }
  const auto& word = std::get<std::string>(name.what);
  const auto at = globals_.find(word);
  if (at == globals_.end()) {
    if (Type* known = well_known(word)) return known;
    complain(name.where, fmt::format("type '{}' is not defined", word));
  }
  if (at->second.type == nullptr) complain(name.where, fmt::format("'{}' is not a type", word));
  constexpr std::array kKinds = {Kind::Enum, Kind::Struct, Kind::Union, Kind::Alias};
  return make(kKinds[at->second.type->body.index()], at->second.type);
}

std::uint32_t Resolver::bound(const ast::Declaration& declaration, std::string& text) const {
  if (!declaration.bound) return kUnbounded;
  const std::uint32_t result = unsigned_32(*declaration.bound, "a bound");
  const auto constant = globals_.find(declaration.bound->name);
  const bool named = constant != globals_.end() && constant->second.definition != nullptr;
  text = named ? declaration.bound->name : std::to_string(result);
  return result;
}

Type* Resolver::byte_type(const ast::Declaration& declaration, bool text) {
  const bool fixed = declaration.shape == ast::Shape::Fixed;
  if ((!fixed && declaration.shape != ast::Shape::Variable) || (fixed && text))
    complain(declaration.where, text ? "a string is declared as name<> or name<bound>"
                                     : "opaque is declared as name[size], name<> or name<bound>");
  Type* type = make(text ? Kind::String : Kind::Opaque);
  type->bound = bound(declaration, type->bound_text);
  if (fixed) type->kind = Kind::FixedOpaque;
  if (!fixed && !text && type->bound <= kBoundedOpaqueMax) type->kind = Kind::BoundedOpaque;
  return type;
}

Type* Resolver::shaped(const ast::Declaration& declaration, const Type* element) {
  constexpr std::array kKinds = {Kind::Void, Kind::Array, Kind::Vector, Kind::Optional};
  Type* type = make(kKinds[static_cast<std::size_t>(declaration.shape)]);
  type->element = element;
  type->bound = bound(declaration, type->bound_text);
  return type;
}

Type* Resolver::declared_type(const ast::Declaration& declaration) {
  if (const auto* builtin = std::get_if<ast::Builtin>(&declaration.type.what)) {
    if (*builtin == ast::Builtin::Opaque) return byte_type(declaration, false);
    if (*builtin == ast::Builtin::String) return byte_type(declaration, true);
  }
  Type* type = named_type(declaration.type);
  return declaration.shape == ast::Shape::Plain ? type : shaped(declaration, type);
}

// A typedef that leads back to itself names nothing.
void Resolver::check_typedefs() const {
  for (const Named* named : model_.types) {
    if (!std::holds_alternative<Alias>(named->body)) continue;
    const Type* at = std::get<Alias>(named->body).field.type;
    for (std::size_t steps = 0; at != nullptr; ++steps) {
      if (steps > 2 * model_.types.size())
        complain(named->where, fmt::format("typedef '{}' leads back to itself", named->name));
      at = at->kind == Kind::Alias ? std::get<Alias>(at->named->body).field.type : at->element;
    }
  }
}

// The name of the item when the declaration itself writes a long opaque or string: its own, or that
// of its elements. Or when it is marked: then the item is all it writes.
std::string Resolver::item_of(Type& type, const std::string& name) {
  const Type* at = &type;
  if (const auto mark = eligible_.find(name); mark != eligible_.end()) {
    type.eligible = type.kind == Kind::Vector || type.kind == Kind::Optional;
    if (!type.eligible)
      complain(mark->second,
               fmt::format("'{}' is neither a variable-length array nor optional", name));
    eligible_.erase(mark);
    model_.items.push_back(name);
    return name;
  }
  while (at->kind == Kind::Alias || at->element != nullptr) {
    const bool container = at->element != nullptr;
    const Type* inside = container ? at->element : std::get<Alias>(at->named->body).field.type;
    // A typedef of a container has codecs of its own, with its own item.
    if (!container && inside->element != nullptr) return {};
    at = inside;
  }
  const bool bytes = at->kind == Kind::Opaque || at->kind == Kind::String;
  if (!bytes || at->bound <= kBoundedOpaqueMax) return {};
  model_.items.push_back(name);
  return name;
}

void Resolver::number_items(const std::vector<ast::Mark>& eligible) {
  for (const ast::Mark& mark : eligible) eligible_.emplace(mark.name, mark.where);
  for (Named* named : model_.types) {
    if (auto* alias = std::get_if<Alias>(&named->body))
      alias->field.item = item_of(*alias->field.type, named->name);
    const auto assign = [&](Field& field) {
      field.item = item_of(*field.type, named->name + "_" + field.name);
    };
    if (auto* structure = std::get_if<Struct>(&named->body))
      for (Field& field : structure->fields) assign(field);
    if (auto* unions = std::get_if<Union>(&named->body))
      for (Arm& arm : unions->arms) assign(arm.field);
  }
  if (!eligible_.empty())
    complain(eligible_.begin()->second,
             fmt::format("there is no '{}' to be eligible", eligible_.begin()->first));
}

Field Resolver::field(const ast::Declaration& declaration) {
  Field result;
  result.name = declaration.name;
  result.where = declaration.where;
  result.type = declared_type(declaration);
  return result;
}

}  // namespace xdrgen
