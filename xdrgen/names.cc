#include "xdrgen/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace xdrgen {
namespace {

constexpr std::array<std::string_view, 103> kKeywords = {
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return",
    "co_yield", "compl", "concept", "const", "const_cast", "consteval", "constexpr", "constinit",
    "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
    "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
    "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
    "requires", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast",
    "struct", "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef",
    "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t",
    "while", "xor", "xor_eq",
    // Macros of standard headers.
    "errno", "stdin", "stdout", "stderr", "NULL", "EOF", "TRUE", "FALSE", "assert", "linux",
    "unix"};

// Names generated code uses itself.
constexpr std::array<std::string_view, 12> kOurs = {"std",    "stag",   "xdr",     "item",
                                                    "encode", "decode", "encoder", "decoder",
                                                    "value",  "inner",  "element", "to_string"};

}  // namespace

std::string cpp_name(std::string_view name) {
  std::string result(name);
  const bool taken = std::ranges::find(kKeywords, name) != kKeywords.end() ||
                     std::ranges::find(kOurs, name) != kOurs.end();
  if (taken) result += '_';
  return result;
}

std::string member_name(const Named& outer, const Field& field) {
  return field.name == outer.name ? outer.name + "_" : cpp_name(field.name);
}

TypeNames::TypeNames(std::string name_space) : name_space_(std::move(name_space)) {
  const bool inside = name_space_ == "stag" || name_space_.starts_with("stag::");
  runtime_ = inside ? "xdr::" : "stag::xdr::";
}

std::string TypeNames::bound(const Type& type) const {
  const bool number =
      !type.bound_text.empty() && type.bound_text[0] >= '0' && type.bound_text[0] <= '9';
  return number ? type.bound_text : cpp_name(type.bound_text);
}

std::string TypeNames::spell(const Named& named, const std::set<std::string>& hidden) const {
  const std::string name = cpp_name(named.name);
  return hidden.contains(named.name) ? fmt::format("::{}::{}", name_space_, name) : name;
}

std::string TypeNames::spell(const Type& type, const std::set<std::string>& hidden) const {
  const auto element = [&] { return spell(*type.element, hidden); };
  switch (type.kind) {
    case Kind::Void:
      return runtime_ + "Void";
    case Kind::Int:
      return "std::int32_t";
    case Kind::UnsignedInt:
      return "std::uint32_t";
    case Kind::Hyper:
      return "std::int64_t";
    case Kind::UnsignedHyper:
      return "std::uint64_t";
    case Kind::Float:
      return "float";
    case Kind::Double:
      return "double";
    case Kind::Quadruple:
      return runtime_ + "Quadruple";
    case Kind::Bool:
      return "bool";
    case Kind::Enum:
    case Kind::Struct:
    case Kind::Union:
    case Kind::Alias:
      return spell(*type.named, hidden);
    case Kind::FixedOpaque:
      return fmt::format("std::array<std::byte, {}>", bound(type));
    case Kind::BoundedOpaque:
      return fmt::format("{}BoundedOpaque<{}>", runtime_, bound(type));
    case Kind::Opaque:
      return runtime_ + "Opaque";
    case Kind::String:
      return "std::string";
    case Kind::Array:
      return fmt::format("std::array<{}, {}>", element(), bound(type));
    case Kind::Vector:
    case Kind::List:
      return fmt::format("std::vector<{}>", element());
    case Kind::Optional:
      return fmt::format("{}<{}>", is_boxed(type) ? runtime_ + "Box" : "std::optional", element());
  }
  return {};
}

}  // namespace xdrgen
