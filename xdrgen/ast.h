// What the parser makes of the text: the definitions of one specification, names not yet looked up.
// Anonymous structs, unions and enums inside declarations have become definitions of their own,
// named <outer>_<field>.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "xdrgen/location.h"

namespace xdrgen::ast {

// Wide enough for every constant of a signed or unsigned 64-bit type.
__extension__ typedef __int128 Integer;

// A literal, or the name of a constant or enumerator.
struct Value {
  std::optional<Integer> literal;
  std::string name;
  Location where;
};

enum class Builtin {
  Void,
  Int,
  UnsignedInt,
  Hyper,
  UnsignedHyper,
  Float,
  Double,
  Quadruple,
  Bool,
  Opaque,
  String
};

struct TypeName {
  std::variant<Builtin, std::string> what = Builtin::Void;
  Location where;
};

enum class Shape { Plain, Fixed, Variable, Pointer };

struct Declaration {
  TypeName type;
  Shape shape = Shape::Plain;
  std::optional<Value> bound;
  std::string name;
  Location where;
};

struct Enumerator {
  std::string name;
  std::optional<Value> value;  // nullopt: one more than the one before, as rpcgen has it.
  Location where;
};
struct Enum {
  std::vector<Enumerator> enumerators;
};
struct Struct {
  std::vector<Declaration> fields;
};
struct Arm {
  std::vector<Value> cases;
  bool is_default = false;
  Declaration field;
};
struct Union {
  Declaration discriminant;
  std::vector<Arm> arms;
};
struct Typedef {
  Declaration declaration;
};
struct Constant {
  Value value;
  std::optional<std::string> text;  // rpcgen's string constants, instead of a value.
};

struct Definition {
  std::string name;
  Location where;
  std::variant<Enum, Struct, Union, Typedef, Constant> body;
};

// RFC 5531 12.
struct Procedure {
  std::string name;
  Location where;
  TypeName results;
  std::vector<TypeName> arguments;  // Empty for void.
  Value number;
};
struct Version {
  std::string name;
  Location where;
  std::vector<Procedure> procedures;
  Value number;
};
struct Program {
  std::string name;
  Location where;
  std::vector<Version> versions;
  Value number;
};

// A name after '%// eligible:', which makes an array or optional an item.
struct Mark {
  std::string name;  // Of the item: a typedef's, or <struct or union>_<field>.
  Location where;
};

struct Specification {
  std::vector<Definition> definitions;
  std::vector<Program> programs;
  std::vector<Mark> eligible;
};

}  // namespace xdrgen::ast
