// How many bytes the encodings of a type take.
#pragma once

#include "xdrgen/model.h"

namespace xdrgen {

struct Size {
  std::uint32_t least = 0;                // At most 2^32 - 1, whatever the type says.
  std::optional<std::uint32_t> most = 0;  // nullopt: not bounded below 2^32.
};

class Sizes {
 public:
  Size of(const Type& type);
  Size of(const Named& named);

 private:
  Size compute(const Named& named);

  std::map<const Named*, Size> known_;
};

}  // namespace xdrgen
