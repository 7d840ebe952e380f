#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "xdrgen/emitter.h"
#include "xdrgen/print.h"

namespace xdrgen {
namespace {

std::string constant_text(ast::Integer value) {
  if (value < 0 && value >= std::numeric_limits<std::int32_t>::min())
    return fmt::format("std::int32_t NAME = {}", static_cast<std::int64_t>(value));
  // The most negative number has no literal of its own.
  if (value < 0)
    return fmt::format("std::int64_t NAME = {} - 1", static_cast<std::int64_t>(value + 1));
  const auto number = static_cast<std::uint64_t>(value);
  if (number > kUnbounded) return fmt::format("std::uint64_t NAME = {}u", number);
  return fmt::format("std::uint32_t NAME = {}", number);
}

// An int32 as C++ source.
std::string enumerator_text(std::int32_t value) {
  return value == std::numeric_limits<std::int32_t>::min() ? "-2147483647 - 1"
                                                           : std::to_string(value);
}

std::set<std::string> names_of(const Struct& from) {
  std::set<std::string> result;
  for (const Field& field : from.fields) result.insert(field.name);
  return result;
}

// With special members that the source file defines, so that the union itself stays an aggregate.
constexpr const char* kArmsApart =
    R"(  struct Arms {{
    Arms();
    Arms(const Arms&);
    Arms(Arms&&) noexcept;
    Arms& operator=(const Arms&);
    Arms& operator=(Arms&&) noexcept;
    ~Arms();
    bool operator==(const Arms& other) const;
    std::variant<{}> held;
  }};
  Arms arms_{{}};
)";

}  // namespace

bool arms_are_apart(const Union& from) {
  constexpr std::size_t kMostInHeader = 8;
  return from.arms.size() > kMostInHeader;
}

Emitter::Emitter(const Model& model, std::string name_space, Origin origin)
    : model_(model),
      names_(std::move(name_space)),
      text_(names_, sizes_),
      origin_(std::move(origin)) {}

std::string Emitter::runtime_include(std::string_view header) const {
  if (origin_.runtime.empty()) return fmt::format("#include \"{}\"\n", header);
  return fmt::format("#include <{}/{}>\n", origin_.runtime, header);
}

std::string Emitter::header() {
  std::string out;
  print(out, "// Made by xdrgen from {}; changes belong there.\n", origin_.specification);
  out += "#pragma once\n\n";
  for (const char* name :
       {"array", "cstdint", "optional", "string", "string_view", "variant", "vector"})
    print(out, "#include <{}>\n", name);
  out += "\n" + runtime_include("xdr/procedure.h") + runtime_include("xdr/types.h");
  print(out, "\nnamespace {} {{\n", names_.name_space());
  constants(out);
  forward_declarations(out);
  for (const Named* named : model_.types) type(out, *named);
  items(out);
  declarations(out);
  procedure_declarations(out);
  print(out, "\n}}  // namespace {}\n", names_.name_space());
  size_constants(out);
  return out;
}

void Emitter::constants(std::string& out) const {
  if (!model_.constants.empty()) out += "\n";
  for (const Constant& constant : model_.constants) {
    if (constant.text) {
      print(out, "inline constexpr std::string_view {} = \"{}\";\n", cpp_name(constant.name),
            *constant.text);
      continue;
    }
    std::string text = constant_text(constant.value);
    text.replace(text.find("NAME"), 4, cpp_name(constant.name));
    print(out, "inline constexpr {};\n", text);
  }
}

// Only what is named before it is defined.
void Emitter::forward_declarations(std::string& out) const {
  std::set<const Named*> seen;
  std::string text;
  for (const Named* named : model_.types) {
    each_field(*named, [&](const Type& type) {
      const Type* at = &type;
      while (at->element != nullptr) at = at->element;
      const bool is_class = at->kind == Kind::Struct || at->kind == Kind::Union;
      if (is_class && at->named != named && seen.insert(at->named).second)
        print(text, "struct {};\n", cpp_name(at->named->name));
    });
    seen.insert(named);
  }
  if (!text.empty()) out += "\n" + text;
}

void Emitter::type(std::string& out, const Named& named) {
  out += "\n";
  if (const auto* from = std::get_if<Enum>(&named.body)) enumeration(out, named, *from);
  if (const auto* from = std::get_if<Struct>(&named.body)) structure(out, named, *from);
  if (const auto* from = std::get_if<Union>(&named.body)) discriminated_union(out, named, *from);
  if (const auto* from = std::get_if<Alias>(&named.body))
    print(out, "using {} = {};\n", cpp_name(named.name), names_.spell(*from->field.type));
  emitted_.insert(&named);
}

void Emitter::enumeration(std::string& out, const Named& named, const Enum& from) const {
  print(out, "enum {} : std::int32_t {{\n", cpp_name(named.name));
  for (const Enumerator& one : from.enumerators)
    print(out, "  {} = {},\n", cpp_name(one.name), enumerator_text(one.value));
  out += "};\n";
}

// Containers of types that are not complete yet must not be given an initialiser inside a class; an
// enum without a zero starts as its first enumerator, for that can be encoded.
std::string Emitter::initialiser(const Type& type, const std::set<std::string>& hidden) const {
  const Type* at = &strip(type);
  if (at->kind == Kind::Enum) {
    const auto& enumerators = std::get<Enum>(at->named->body).enumerators;
    const bool zero = std::ranges::any_of(enumerators, [](const auto& e) { return e.value == 0; });
    return fmt::format("{{{}}}", zero ? "" : names_.constant(enumerators.front().name, hidden));
  }
  while (at->element != nullptr) at = &strip(*at->element);
  return at->named == nullptr || emitted_.contains(at->named) ? "{}" : "";
}

void Emitter::structure(std::string& out, const Named& named, const Struct& from) const {
  const std::set<std::string> hidden = names_of(from);
  if (named.list_node) out += "// A node of a linked list, which is a std::vector of these.\n";
  print(out, "struct {} {{\n", cpp_name(named.name));
  for (const Field& field : from.fields)
    print(out, "  {} {}{};\n", names_.spell(*field.type, hidden), member_name(named, field),
          initialiser(*field.type, hidden));
  print(out, "\n  bool operator==(const {}&) const = default;\n}};\n", cpp_name(named.name));
}

std::set<std::string> Emitter::hidden_names(const Union& from) const {
  std::set<std::string> hidden = {from.discriminant.name};
  for (const Arm& arm : from.arms) hidden.insert(arm.field.name);
  return hidden;
}

void Emitter::discriminated_union(std::string& out, const Named& named, const Union& from) const {
  const std::set<std::string> hidden = hidden_names(from);
  const bool apart = arms_are_apart(from);
  print(out, "struct {} {{\n  {} {}{};\n", cpp_name(named.name),
        names_.spell(*from.discriminant.type, hidden), member_name(named, from.discriminant),
        initialiser(*from.discriminant.type, hidden));
  std::string arms = "std::monostate";
  std::size_t index = 0;
  for (const Arm& arm : from.arms) {
    if (arm.field.type->kind == Kind::Void) continue;
    const std::string type = names_.spell(*arm.field.type, hidden);
    const std::string name = member_name(named, arm.field);
    const std::string& runtime = names_.runtime();
    arms += ", " + type;
    ++index;
    if (apart) {
      print(out, "\n  {0}& {1}();\n  const {0}& {1}() const;\n", type, name);
      continue;
    }
    print(out, "\n  {0}& {1}() {{ return {2}arm_for_writing<{3}>(arms_); }}\n", type, name, runtime,
          index);
    print(out, "  const {0}& {1}() const {{ return {2}arm_held<{3}>(arms_); }}\n", type, name,
          runtime, index);
  }
  print(out, "\n  bool operator==(const {}&) const = default;\n\n", cpp_name(named.name));
  if (apart)
    print(out, kArmsApart, arms);
  else
    print(out, "  std::variant<{}> arms_;\n", arms);
  out += "};\n";
}

void Emitter::items(std::string& out) const {
  if (model_.items.empty()) return;
  out += "\n// What may become a data item of its own.\n";
  out += "namespace item {\n";
  for (std::size_t i = 0; i < model_.items.size(); ++i)
    print(out, "inline constexpr {}ItemId {} = {};\n", names_.runtime(), model_.items[i], i + 1);
  out += "}  // namespace item\n";
}

void Emitter::declarations(std::string& out) const {
  if (!model_.types.empty()) out += "\n";
  for (const Named* named : model_.types) {
    if (std::holds_alternative<Alias>(named->body) && !has_own_codec(*named)) continue;
    print(out, "{};\n[[nodiscard]] {};\n", encode_declaration(*named), decode_declaration(*named));
    if (std::holds_alternative<Enum>(named->body))
      print(out, "std::string_view to_string({} value);\n", cpp_name(named->name));
  }
}

void Emitter::size_constants(std::string& out) {
  std::string text;
  for (const Named* named : model_.types) {
    if (std::holds_alternative<Alias>(named->body)) continue;
    const Size size = sizes_.of(*named);
    const std::string name = fmt::format("::{}::{}", names_.name_space(), cpp_name(named->name));
    if (size.most)
      print(text, "template <>\ninline constexpr std::optional<std::uint32_t> max_size<{}> = {};\n",
            name, *size.most);
    print(text, "template <>\ninline constexpr std::uint32_t min_size<{}> = {};\n", name,
          size.least);
  }
  if (!text.empty())
    print(out, "\nnamespace stag::xdr {{\n\n{}\n}}  // namespace stag::xdr\n", text);
}

}  // namespace xdrgen
