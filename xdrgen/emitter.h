// Writes the header and the source file for a model.
#pragma once

#include "xdrgen/codec_text.h"

namespace xdrgen {

struct Origin {
  std::string specification;  // File name for the comment at the top.
  std::string header;         // How the source file includes the header.
  std::string runtime;        // Folder of the installed runtime's headers; empty: Stag's own tree.
};

// Whether all that a union does with its arms is compiled once, in the source file: a std::variant
// of dozens of types, copied, moved and compared in each file that includes the header, is most of
// what such a file costs to compile.
bool arms_are_apart(const Union& from);

class Emitter {
 public:
  Emitter(const Model& model, std::string name_space, Origin origin);

  std::string header();
  std::string source();

 private:
  // emit_header.cc
  std::string runtime_include(std::string_view header) const;
  void constants(std::string& out) const;
  void forward_declarations(std::string& out) const;
  void type(std::string& out, const Named& named);
  void enumeration(std::string& out, const Named& named, const Enum& from) const;
  void structure(std::string& out, const Named& named, const Struct& from) const;
  void discriminated_union(std::string& out, const Named& named, const Union& from) const;
  std::set<std::string> hidden_names(const Union& from) const;
  void items(std::string& out) const;
  void declarations(std::string& out) const;
  void size_constants(std::string& out);
  std::string initialiser(const Type& type, const std::set<std::string>& hidden) const;

  // emit_source.cc
  void codecs(std::string& out, const Named& named);
  void enum_codecs(std::string& out, const Named& named, const Enum& from) const;
  void struct_codecs(std::string& out, const Named& named, const Struct& from) const;
  void union_members(std::string& out, const Named& named, const Union& from) const;
  void union_encode(std::string& out, const Named& named, const Union& from) const;
  void union_decode(std::string& out, const Named& named, const Union& from) const;
  void alias_codecs(std::string& out, const Named& named, const Alias& from) const;
  void decode_body(std::string& out, const Named& named, const std::string& expression) const;
  std::string encode_declaration(const Named& named) const;
  std::string decode_declaration(const Named& named) const;

  // emit_procedures.cc
  void procedure_declarations(std::string& out);
  void procedure_declaration(std::string& out, const Program& program, const Version& version,
                             const Procedure& procedure);
  void procedure_definitions(std::string& out) const;
  void procedure_definition(std::string& out, const Procedure& procedure) const;

  const Model& model_;
  TypeNames names_;
  Sizes sizes_;
  CodecText text_;
  Origin origin_;
  std::set<const Named*> emitted_;
};

}  // namespace xdrgen
