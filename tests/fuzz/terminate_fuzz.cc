// Terminate messages, in the order of RFC 5040 and in siw's.
#include "input.h"
#include "iwarp/terminate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stag::fuzz::Input input(data, size);
  static_cast<void>(stag::iwarp::decode_terminate(input.rest()));
  return 0;
}
