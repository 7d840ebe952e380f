// The C++ that writes or reads one value of a type.
#pragma once

#include "xdrgen/names.h"
#include "xdrgen/size.h"

namespace xdrgen {

class CodecText {
 public:
  CodecText(const TypeNames& names, Sizes& sizes) : names_(names), sizes_(sizes) {}

  // A call expression that encodes `value` with the Encoder `coder`. `item`: name of the item
  // constant, or empty.
  std::string encode(const Type& type, std::string_view coder, std::string_view value,
                     std::string_view item) const;
  // A bool expression that decodes into `value`.
  std::string decode(const Type& type, std::string_view coder, std::string_view value,
                     std::string_view item) const;

 private:
  std::string encode_container(const Type& type, std::string_view coder, std::string_view value,
                               std::string_view item) const;
  std::string decode_container(const Type& type, std::string_view coder, std::string_view value,
                               std::string_view item) const;
  std::string item_name(std::string_view item) const;
  std::string item_argument(const Type& container, std::string_view item) const;
  std::string bound_argument(const Type& type) const;
  std::string bound_or_unbounded(const Type& type) const;

  const TypeNames& names_;
  Sizes& sizes_;
};

// Whether a typedef has codecs of its own, encode_<name> and decode_<name>: it stands for no type
// that has some already.
bool has_own_codec(const Named& named);

}  // namespace xdrgen
