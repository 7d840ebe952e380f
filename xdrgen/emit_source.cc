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

// Of structures within structures the text would grow with each level, and double where there are
// two of a kind.
constexpr int kLevelsAtMost = 8;
constexpr std::size_t kIntegersAtMost = 64;

// Appends what `value`, of this type, consists of to `integers` if that is nothing but integers,
// and not too many: of the others, the codec of the type is called.
bool add_integers(const Type& type, const std::string& value, std::vector<std::string>& integers,
                  int levels = kLevelsAtMost) {
  if (levels == 0) return false;
  if (type.kind == Kind::Alias)
    return add_integers(*std::get<Alias>(type.named->body).field.type, value, integers, levels - 1);
  if (type.kind != Kind::Struct) {
    if (type.kind < Kind::Int || type.kind > Kind::UnsignedHyper) return false;
    integers.push_back(value);
    return true;
  }
  const std::size_t before = integers.size();
  for (const Field& field : std::get<Struct>(type.named->body).fields) {
    const std::string member = value + "." + member_name(*type.named, field);
    if (add_integers(*field.type, member, integers, levels - 1) &&
        integers.size() - before <= kIntegersAtMost)
      continue;
    integers.resize(before);
    return false;
  }
  return true;
}

bool has_default(const Union& from) {
  for (const Arm& arm : from.arms)
    if (arm.is_default) return true;
  return false;
}

std::string_view variant_of(const Union& from) {
  return arms_are_apart(from) ? "value.arms_.held" : "value.arms_";
}

constexpr const char* kMembersOfArms = R"(
{0}::Arms::Arms() = default;
{0}::Arms::Arms(const Arms&) = default;
{0}::Arms::Arms(Arms&&) noexcept = default;
{0}::Arms& {0}::Arms::operator=(const Arms&) = default;
{0}::Arms& {0}::Arms::operator=(Arms&&) noexcept = default;
{0}::Arms::~Arms() = default;
bool {0}::Arms::operator==(const Arms& other) const {{ return held == other.held; }}
)";

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
    if (arms_are_apart(*from)) union_members(out, named, *from);
    union_encode(out, named, *from);
    union_decode(out, named, *from);
  }
  if (const auto* from = std::get_if<Alias>(&named.body); from && has_own_codec(named))
    alias_codecs(out, named, *from);
}

void Emitter::enum_codecs(std::string& out, const Named& named, const Enum& from) const {
  print(out, "\n{} {{ encoder.i32(value); }}\n", encode_declaration(named));
  const std::set<std::string> hidden = {"number"};  // By the variable of the decoder.
  std::string cases, texts;
  std::set<std::int32_t> seen;
  for (const Enumerator& one : from.enumerators) {
    // Several names may share a number; the first one speaks for it.
    if (!seen.insert(one.value).second) continue;
    print(cases, "    case {}:\n", names_.constant(one.name, hidden));
    print(texts, "    case {}: return \"{}\";\n", cpp_name(one.name), one.name);
  }
  print(out, "\n{} {{\n  std::int32_t number = 0;\n", decode_declaration(named));
  out += "  if (!decoder.i32(number)) return false;\n  switch (number) {\n" + cases;
  print(out, "      value = static_cast<{}>(number);\n      return true;\n  }}\n",
        names_.spell(named, hidden));
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
  const auto add = [&](const std::string& encode, const std::string& decode) {
    print(out, "  {};\n", encode);
    expression += (expression.empty() ? "" : " &&\n         ") + decode;
  };
  // Integers side by side are one access to the stream.
  std::vector<std::string> integers;
  const auto add_run = [&] {
    if (integers.empty()) return;
    const std::string run = fmt::format("coder.integers({})", fmt::join(integers, ", "));
    add("en" + run, "de" + run);
    integers.clear();
  };
  for (const Field& field : from.fields) {
    const std::string value = "value." + member_name(named, field);
    if (add_integers(*field.type, value, integers)) continue;
    add_run();
    add(text_.encode(*field.type, "encoder", value, field.item),
        text_.decode(*field.type, "decoder", value, field.item));
  }
  add_run();
  if (from.fields.empty()) {
    out += "  static_cast<void>(encoder), static_cast<void>(value);\n";
    expression = "static_cast<void>(value), decoder.ok()";
  }
  out += "}\n";
  decode_body(out, named, expression);
}

void Emitter::union_members(std::string& out, const Named& named, const Union& from) const {
  const std::set<std::string> hidden = hidden_names(from);
  const std::string name = cpp_name(named.name);
  print(out, kMembersOfArms, name);
  std::size_t index = 0;
  for (const Arm& arm : from.arms) {
    if (arm.field.type->kind == Kind::Void) continue;
    const std::string type = names_.spell(*arm.field.type, hidden);
    const std::string member = member_name(named, arm.field);
    const std::string& runtime = names_.runtime();
    print(out, "{0}& {1}::{2}() {{ return {3}arm_for_writing<{4}>(arms_.held); }}\n", type, name,
          member, runtime, ++index);
    print(out, "const {0}& {1}::{2}() const {{ return {3}arm_held<{4}>(arms_.held); }}\n", type,
          name, member, runtime, index);
  }
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
          fmt::format("{}arm_or_default<{}>({})", names_.runtime(), ++index, variant_of(from));
      print(out, "      {};\n", text_.encode(*arm.field.type, "encoder", value, arm.field.item));
    }
    out += "      return;\n";
  }
  if (!has_default(from))
    print(out, "    default:\n      encoder.fail({}Error::BadDiscriminant);\n", names_.runtime());
  out += "  }\n}\n";
}

void Emitter::union_decode(std::string& out, const Named& named, const Union& from) const {
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
      print(out, "      {}.emplace<0>();\n      break;\n", variant_of(from));
      continue;
    }
    const std::string value = fmt::format("{}.emplace<{}>()", variant_of(from), ++index);
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
