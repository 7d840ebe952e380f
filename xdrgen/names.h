// How names and types of a specification are spelt in C++.
#pragma once

#include <set>

#include "xdrgen/model.h"

namespace xdrgen {

// The name itself; with an underscore appended where C++, its macros or generated code have other
// plans with it.
std::string cpp_name(std::string_view name);

// The name of a member; C++ keeps the name of the type itself for constructors.
std::string member_name(const Named& outer, const Field& field);

// Spells types for one output namespace.
class TypeNames {
 public:
  explicit TypeNames(std::string name_space);

  const std::string& name_space() const { return name_space_; }
  // "xdr::" inside namespace stag, "stag::xdr::" elsewhere.
  const std::string& runtime() const { return runtime_; }

  // `hidden`: names that mean something else where the type is written; those are spelt in full.
  std::string spell(const Type& type, const std::set<std::string>& hidden = {}) const;
  std::string spell(const Named& named, const std::set<std::string>& hidden = {}) const;
  // The name of a constant or enumerator.
  std::string constant(const std::string& name, const std::set<std::string>& hidden = {}) const;
  std::string bound(const Type& type, const std::set<std::string>& hidden = {}) const;

 private:
  std::string name_space_;
  std::string runtime_;
};

}  // namespace xdrgen
