// JsonList: an array of objects on standard output, written object by object, for lists that need
// not fit into memory. It looks as Json::text() of the whole would.
#pragma once

#include "cli/support/json.h"

namespace stag::cli {

class JsonList {
 public:
  void add(const Json& object);
  // After the last one.
  void end();

 private:
  bool empty_ = true;
};

}  // namespace stag::cli
