// Why something that a server keeps over a restart could not be read or written.
#pragma once

#include <string>

namespace stag::nfs {

struct StateError {
  std::string message;  // a sentence for the operator: what failed, at which path, and why
};

}  // namespace stag::nfs
