#include <fmt/format.h>

#include "xdrgen/emitter.h"
#include "xdrgen/print.h"

namespace xdrgen {
namespace {

std::string size_text(const Size& size) {
  return size.most ? std::to_string(*size.most) : "std::nullopt";
}

}  // namespace

// Every version has a namespace for its procedures, since several versions of a program often
// repeat their names; being inline, it need not be named where a procedure's name is unique.
void Emitter::procedure_declarations(std::string& out) {
  for (const Program& program : model_.programs) {
    for (const Version& version : program.versions) {
      print(out, "\n// {} {}, {} {}.\n", program.name, program.number, version.name,
            version.number);
      print(out, "inline namespace {}_procedures {{\n", version.scope);
      for (const Procedure& procedure : version.procedures)
        procedure_declaration(out, program, version, procedure);
      print(out, "\n}}  // namespace {}_procedures\n", version.scope);
    }
  }
}

void Emitter::procedure_declaration(std::string& out, const Program& program,
                                    const Version& version, const Procedure& procedure) {
  const std::set<std::string> hidden = {"Args",          "Results",          "program",
                                        "version",       "number",           "name",
                                        "max_args_size", "max_results_size", "encode_args",
                                        "decode_args",   "encode_results",   "decode_results"};
  const std::string& runtime = names_.runtime();
  print(out, "\nstruct {} {{\n", cpp_name(procedure.type));
  print(out, "  using Args = {};\n", names_.spell(*procedure.arguments, hidden));
  print(out, "  using Results = {};\n", names_.spell(*procedure.results, hidden));
  print(out, "  static constexpr std::uint32_t program = {};\n", program.number);
  print(out, "  static constexpr std::uint32_t version = {};\n", version.number);
  print(out, "  static constexpr std::uint32_t number = {};\n", procedure.number);
  print(out, "  static constexpr std::string_view name = \"{}\";\n", procedure.name);
  print(out, "  static constexpr std::optional<std::uint32_t> max_args_size = {};\n",
        size_text(sizes_.of(*procedure.arguments)));
  print(out, "  static constexpr std::optional<std::uint32_t> max_results_size = {};\n",
        size_text(sizes_.of(*procedure.results)));
  for (const char* what : {"args", "results"}) {
    const char* type = what[0] == 'a' ? "Args" : "Results";
    print(out, "  static void encode_{0}({1}Encoder& encoder, const {2}& value);\n", what, runtime,
          type);
    print(out, "  [[nodiscard]] static bool decode_{0}({1}Decoder& decoder, {2}& value);\n", what,
          runtime, type);
  }
  out += "};\n";
}

void Emitter::procedure_definitions(std::string& out) const {
  for (const Program& program : model_.programs) {
    for (const Version& version : program.versions) {
      print(out, "\ninline namespace {}_procedures {{\n", version.scope);
      for (const Procedure& procedure : version.procedures) procedure_definition(out, procedure);
      print(out, "\n}}  // namespace {}_procedures\n", version.scope);
    }
  }
}

void Emitter::procedure_definition(std::string& out, const Procedure& procedure) const {
  const std::string name = cpp_name(procedure.type);
  const std::string& runtime = names_.runtime();
  for (const bool args : {true, false}) {
    const Type& type = args ? *procedure.arguments : *procedure.results;
    const char* what = args ? "args" : "results";
    const char* alias = args ? "Args" : "Results";
    // A typedef with codecs of its own has its own item, too.
    const bool own = type.kind == Kind::Alias && has_own_codec(*type.named);
    const std::string encode = own ? fmt::format("{}::encode_{}(encoder, value)",
                                                 "::" + names_.name_space(), type.named->name)
                                   : text_.encode(type, "encoder", "value", {});
    const std::string decode = own ? fmt::format("{}::decode_{}(decoder, value)",
                                                 "::" + names_.name_space(), type.named->name)
                                   : text_.decode(type, "decoder", "value", {});
    print(out, "\nvoid {}::encode_{}({}Encoder& encoder, const {}& value) {{ {}; }}\n", name, what,
          runtime, alias, encode);
    print(out, "bool {}::decode_{}({}Decoder& decoder, {}& value) {{ return {}; }}\n", name, what,
          runtime, alias, decode);
  }
}

}  // namespace xdrgen
