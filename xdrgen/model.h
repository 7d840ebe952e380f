// A specification that has been checked: every name looked up, every bound a number, every rule of
// RFC 4506 that the grammar alone does not enforce kept. What the emitters read.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "xdrgen/ast.h"

namespace xdrgen {

inline constexpr std::uint32_t kUnbounded = std::numeric_limits<std::uint32_t>::max();
// Up to here a variable-length opaque lives inside its value; above, it is a data item with an id.
inline constexpr std::uint32_t kBoundedOpaqueMax = 256;

struct Named;

enum class Kind {
  Void,
  Int,
  UnsignedInt,
  Hyper,
  UnsignedHyper,
  Float,
  Double,
  Quadruple,
  Bool,
  Enum,
  Struct,
  Union,
  Alias,  // named
  FixedOpaque,
  BoundedOpaque,
  Opaque,
  String,  // bound: bytes
  Array,
  Vector,  // element, bound: elements
  Optional,
  List,  // element
};

struct Type {
  Kind kind = Kind::Void;
  Named* named = nullptr;
  const Type* element = nullptr;
  std::uint32_t bound = kUnbounded;
  bool eligible = false;   // A Vector, Optional or List that may become a data item as a whole.
  std::string bound_text;  // The bound as the specification has it: a number or a constant's name.
};

struct Field {
  std::string name;
  Type* type = nullptr;
  std::string item;  // Its constant in the namespace `item`, when it is a data item.
  Location where;
};

struct Enumerator {
  std::string name;
  std::int32_t value;
};
struct Enum {
  std::vector<Enumerator> enumerators;
};
struct Struct {
  std::vector<Field> fields;
};
struct Arm {
  std::vector<std::string> cases;  // As C++ case labels.
  bool is_default = false;
  Field field;  // Of kind Void when the arm is.
};
struct Union {
  Field discriminant;
  std::vector<Arm> arms;
};
struct Alias {
  Field field;
};

struct Named {
  std::string name;
  Location where;
  std::variant<Enum, Struct, Union, Alias> body;
  // Set by analyse():
  bool recursive = false;  // Contains itself: its decoder counts levels.
  bool list_node =
      false;  // The list idiom: its last member is left out, pointers to it are vectors.
};

struct Constant {
  std::string name;
  ast::Integer value = 0;
  std::optional<std::string> text;  // Instead of the value.
};

struct Procedure {
  std::string name;
  std::string type;  // What it is called in C++.
  std::uint32_t number;
  Type* arguments;
  Type* results;
};
struct Version {
  std::string name;
  std::string scope;  // What the namespace of its procedures is called after.
  std::uint32_t number;
  std::vector<Procedure> procedures;
};
struct Program {
  std::string name;
  std::uint32_t number;
  std::vector<Version> versions;
};

struct Model {
  std::vector<Constant> constants;
  std::vector<Named*> types;  // After analyse(): each after those it contains by value.
  std::vector<Program> programs;
  std::vector<std::string> items;  // Item k + 1 is called items[k].

  std::deque<Type> type_store;
  std::deque<Named> named_store;
};

// Looks up and checks. Complains at the first mistake.
std::unique_ptr<Model> resolve(const ast::Specification& specification);

// Finds recursion and lists and orders the types. Complains when a type contains itself by value.
void analyse(Model& model);

// Whether an optional is a Box: its value contains itself. Known after analyse().
bool is_boxed(const Type& optional);

// Calls `visit` for the type of every field, discriminant and arm, or of what a typedef names.
using TypeVisitor = std::function<void(const Type&)>;
void each_field(const Named& named, const TypeVisitor& visit);

// The type behind any number of plain typedefs.
const Type& strip(const Type& type);

}  // namespace xdrgen
