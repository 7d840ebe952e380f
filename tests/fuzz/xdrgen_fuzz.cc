// The XDR compiler: any text gives code or a complaint.
#include <string_view>

#include "xdrgen/compile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  xdrgen::Options options;
  options.name_space = "fuzz";
  static_cast<void>(xdrgen::compile({reinterpret_cast<const char*>(data), size}, options));
  return 0;
}
