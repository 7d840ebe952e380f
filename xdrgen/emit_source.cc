#include <fmt/format.h>

#include "xdrgen/emitter.h"
#include "xdrgen/print.h"

namespace xdrgen {
namespace {

std::string selector(const Named& named, const Union& from) {
  const std::string name = "value." + member_name(named, from.discriminant);
  return strip(*from.discriminant.type).kind == Kind::Bool ? name + " ? 1 : 0" : name;
}

void labels(std::string& out, const Arm& arm) {
  for (const std::string& label : arm.cases) print(out, "    case {}:\n", cpp_name(label));
  if (arm.is_default) out += "    default:\n";
}

bool has_default(const Union& from) {
  for (const Arm& arm : from.arms)
    if (arm.is_default) return true;
  return false;
}

}  // namespace

std::string Emitter::encode_declaration(const Named& named) const {
  const std::string name =
      std::holds_alternative<Alias>(named.body) ? "encode_" + named.name : "encode";
  return fmt::format("void {}({}Encoder& encoder, const {}& value)", name, names_.runtime(),
                     cpp_name(named.name));
}

std::string Emitter::decode_declaration(const Named& named) const {
  const std::string name =
      std::holds_alternative<Alias>(named.body) ? "decode_" + named.name : "decode";
  return fmt::format("bool {}({}Decoder& decoder, {}& value)", name, names_.runtime(),
                     cpp_name(named.name));
}

std::string Emitter::source() {
  std::string out;
  print(out, "// Made by xdrgen from {}; changes belong there.\n", origin_.specification);
  print(out, "#include \"{}\"\n\n{}", origin_.header, runtime_include("xdr/container.h"));
  print(out, "\nnamespace {} {{\n", names_.name_space());
  for (const Named* named : model_.types) codecs(out, *named);
  procedure_definitions(out);
  print(out, "\n}}  // namespace {}\n", names_.name_space());
  return out;
}

void Emitter::codecs(std::string& out, const Named& named) {
  if (const auto* from = std::get_if<Enum>(&named.body)) enum_codecs(out, named, *from);
  if (const auto* from = std::get_if<Struct>(&named.body)) struct_codecs(out, named, *from);
  if (const auto* from = std::get_if<Union>(&named.body)) {
    union_encode(out, named, *from);
    union_decode(out, named, *from);
  }
  if (const auto* from = std::get_if<Alias>(&named.body); from && has_own_codec(named))
    alias_codecs(out, named, *from);
}

void Emitter::enum_codecs(std::string& out, const Named& named, const Enum& from) const {
  print(out, "\n{} {{ encoder.i32(value); }}\n", encode_declaration(named));
  std::string cases, texts;
  std::set<std::int32_t> seen;
  for (const Enumerator& one : from.enumerators) {
    // Several names may share a number; the first one speaks for it.
    if (!seen.insert(one.value).second) continue;
    print(cases, "    case {}:\n", cpp_name(one.name));
    print(texts, "    case {}: return \"{}\";\n", cpp_name(one.name), one.name);
  }
  print(out, "\n{} {{\n  std::int32_t number = 0;\n", decode_declaration(named));
  out += "  if (!decoder.i32(number)) return false;\n  switch (number) {\n" + cases;
  print(out, "      value = static_cast<{}>(number);\n      return true;\n  }}\n",
        cpp_name(named.name));
  print(out, "  return decoder.fail({}Error::BadEnum);\n}}\n", names_.runtime());
  print(out, "\nstd::string_view to_string({} value) {{\n  switch (value) {{\n{}  }}\n",
        cpp_name(named.name), texts);
  print(out, "  return \"unknown {}\";\n}}\n", named.name);
}

// Types that contain themselves count how deep they are: the stack is as bounded as the peer is
// inventive.
void Emitter::decode_body(std::string& out, const Named& named,
                          const std::string& expression) const {
  print(out, "\n{} {{\n", decode_declaration(named));
  if (named.recursive) {
    print(out, "  if (!decoder.enter() || !({})) return false;\n", expression);
    out += "  decoder.leave();\n  return true;\n}\n";
  } else {
    print(out, "  return {};\n}}\n", expression);
  }
}

void Emitter::struct_codecs(std::string& out, const Named& named, const Struct& from) const {
  print(out, "\n{} {{\n", encode_declaration(named));
  std::string expression;
  for (const Field& field : from.fields) {
    const std::string value = "value." + member_name(named, field);
    print(out, "  {};\n", text_.encode(*field.type, "encoder", value, field.item));
    if (!expression.empty()) expression += " &&\n         ";
    expression += text_.decode(*field.type, "decoder", value, field.item);
  }
  if (from.fields.empty()) {
    out += "  static_cast<void>(encoder), static_cast<void>(value);\n";
    expression = "static_cast<void>(value), decoder.ok()";
  }
  out += "}\n";
  decode_body(out, named, expression);
}

// Encodes the arm that the discriminant selects; its default value when another arm is held.
void Emitter::union_encode(std::string& out, const Named& named, const Union& from) const {
  print(out, "\n{} {{\n", encode_declaration(named));
  print(out, "  {};\n",
        text_.encode(*from.discriminant.type, "encoder",
                     "value." + member_name(named, from.discriminant), {}));
  print(out, "  switch ({}) {{\n", selector(named, from));
  std::size_t index = 0;
  for (const Arm& arm : from.arms) {
    labels(out, arm);
    if (arm.field.type->kind != Kind::Void) {
      const std::string value =
          fmt::format("{}arm_or_default<{}>(value.arms_)", names_.runtime(), ++index);
      print(out, "      {};\n", text_.encode(*arm.field.type, "encoder", value, arm.field.item));
    }
    out += "      return;\n";
  }
  if (!has_default(from))
    print(out, "    default:\n      encoder.fail({}Error::BadDiscriminant);\n", names_.runtime());
  out += "  }\n}\n";
}

void Emitter::union_decode(std::string& out, const Named& named, const Union& from) const {
  const std::string arms = cpp_name(named.name);
  print(out, "\n{} {{\n", decode_declaration(named));
  if (named.recursive) out += "  if (!decoder.enter()) return false;\n";
  print(out, "  if (!{}) return false;\n",
        text_.decode(*from.discriminant.type, "decoder",
                     "value." + member_name(named, from.discriminant), {}));
  print(out, "  switch ({}) {{\n", selector(named, from));
  std::size_t index = 0;
  for (const Arm& arm : from.arms) {
    labels(out, arm);
    if (arm.field.type->kind == Kind::Void) {
      out += "      value.arms_.emplace<0>();\n      break;\n";
      continue;
    }
    const std::string value = fmt::format("value.arms_.emplace<{}>()", ++index);
    print(out, "      if (!{}) return false;\n      break;\n",
          text_.decode(*arm.field.type, "decoder", value, arm.field.item));
  }
  if (!has_default(from))
    print(out, "    default:\n      return decoder.fail({}Error::BadDiscriminant);\n",
          names_.runtime());
  out += "  }\n";
  if (named.recursive) out += "  decoder.leave();\n";
  out += "  return true;\n}\n";
}

void Emitter::alias_codecs(std::string& out, const Named& named, const Alias& from) const {
  print(out, "\n{} {{\n  {};\n}}\n", encode_declaration(named),
        text_.encode(*from.field.type, "encoder", "value", from.field.item));
  print(out, "\n{} {{\n  return {};\n}}\n", decode_declaration(named),
        text_.decode(*from.field.type, "decoder", "value", from.field.item));
}

}  // namespace xdrgen
