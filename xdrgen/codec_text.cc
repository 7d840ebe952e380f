#include "xdrgen/codec_text.h"

#include <fmt/format.h>

namespace xdrgen {
namespace {

// The Encoder's or Decoder's member for a type, when it has one.
std::string_view member(Kind kind) {
  switch (kind) {
    case Kind::Int:
      return "i32";
    case Kind::UnsignedInt:
      return "u32";
    case Kind::Hyper:
      return "i64";
    case Kind::UnsignedHyper:
      return "u64";
    case Kind::Float:
      return "f32";
    case Kind::Double:
      return "f64";
    case Kind::Bool:
      return "boolean";
    case Kind::Quadruple:
    case Kind::FixedOpaque:
      return "fixed_opaque";
    default:
      return {};
  }
}

bool is_container(const Type& type) {
  return type.element != nullptr;
}

}  // namespace

bool has_own_codec(const Named& named) {
  const auto* alias = std::get_if<Alias>(&named.body);
  if (alias == nullptr) return false;
  const Kind kind = alias->field.type->kind;
  return kind >= Kind::FixedOpaque;
}

std::string CodecText::item_name(std::string_view item) const {
  return item.empty() ? names_.runtime() + "kNoItem" : fmt::format("item::{}", item);
}

// Of a container that is an item as a whole.
std::string CodecText::item_argument(const Type& container, std::string_view item) const {
  return container.eligible ? item_name(item) + ", " : std::string();
}

std::string CodecText::bound_argument(const Type& type) const {
  return type.bound_text.empty() ? std::string() : ", " + names_.bound(type);
}

std::string CodecText::bound_or_unbounded(const Type& type) const {
  return type.bound_text.empty() ? names_.runtime() + "kUnbounded" : names_.bound(type);
}

std::string CodecText::encode(const Type& type, std::string_view coder, std::string_view value,
                              std::string_view item) const {
  if (is_container(type)) return encode_container(type, coder, value, item);
  if (const std::string_view name = member(type.kind); !name.empty())
    return fmt::format("{}.{}({})", coder, name, value);
  switch (type.kind) {
    case Kind::Opaque:
    case Kind::String:
      return fmt::format("{}.{}({}, {}{})", coder, type.kind == Kind::String ? "string" : "opaque",
                         item_name(item), value, bound_argument(type));
    case Kind::BoundedOpaque:
      return fmt::format("{}encode_bounded({}, {})", names_.runtime(), coder, value);
    case Kind::Enum:
      return fmt::format("{}.i32({})", coder, value);
    case Kind::Alias: {
      const Type& inside = *std::get<Alias>(type.named->body).field.type;
      if (is_container(inside))
        return fmt::format("encode_{}({}, {})", type.named->name, coder, value);
      return encode(inside, coder, value, item);
    }
    default:
      return fmt::format("encode({}, {})", coder, value);
  }
}

std::string CodecText::encode_container(const Type& type, std::string_view coder,
                                        std::string_view value, std::string_view item) const {
  const std::string& runtime = names_.runtime();
  const std::string id = item_argument(type, item);
  const std::string one =
      fmt::format("\n      []({}Encoder& inner, const auto& element) {{ {}; }}", runtime,
                  encode(*type.element, "inner", "element", type.eligible ? "" : item));
  switch (type.kind) {
    case Kind::Array:
      return fmt::format("{}encode_array({}, {},{})", runtime, coder, value, one);
    case Kind::Vector:
      return fmt::format("{}encode_vector({}, {}{}, {},{})", runtime, coder, id, value,
                         bound_or_unbounded(type), one);
    case Kind::Optional:
      return fmt::format("{}encode_optional({}, {}{},{})", runtime, coder, id, value, one);
    default:
      return fmt::format("{}encode_list({}, {}{},{})", runtime, coder, id, value, one);
  }
}

std::string CodecText::decode(const Type& type, std::string_view coder, std::string_view value,
                              std::string_view item) const {
  if (is_container(type)) return decode_container(type, coder, value, item);
  if (const std::string_view name = member(type.kind); !name.empty())
    return fmt::format("{}.{}({})", coder, name, value);
  switch (type.kind) {
    case Kind::Opaque:
    case Kind::String:
      return fmt::format("{}.{}({}, {}{})", coder, type.kind == Kind::String ? "string" : "opaque",
                         item_name(item), value, bound_argument(type));
    case Kind::BoundedOpaque:
      return fmt::format("{}decode_bounded({}, {})", names_.runtime(), coder, value);
    case Kind::Alias: {
      const Type& inside = *std::get<Alias>(type.named->body).field.type;
      if (is_container(inside))
        return fmt::format("decode_{}({}, {})", type.named->name, coder, value);
      return decode(inside, coder, value, item);
    }
    default:
      return fmt::format("decode({}, {})", coder, value);
  }
}

std::string CodecText::decode_container(const Type& type, std::string_view coder,
                                        std::string_view value, std::string_view item) const {
  const std::string& runtime = names_.runtime();
  const std::string id = item_argument(type, item);
  const std::string one =
      fmt::format("\n      []({}Decoder& inner, auto& element) {{ return {}; }}", runtime,
                  decode(*type.element, "inner", "element", type.eligible ? "" : item));
  switch (type.kind) {
    case Kind::Array:
      return fmt::format("{}decode_array({}, {},{})", runtime, coder, value, one);
    case Kind::Vector:
      return fmt::format("{}decode_vector({}, {}{}, {}, {},{})", runtime, coder, id, value,
                         bound_or_unbounded(type), sizes_.of(*type.element).least, one);
    case Kind::Optional:
      return fmt::format("{}decode_optional({}, {}{},{})", runtime, coder, id, value, one);
    default:
      return fmt::format("{}decode_list({}, {}{},{})", runtime, coder, id, value, one);
  }
}

}  // namespace xdrgen
