// Private data of any length: what is found has sizes that RFC 8797 can say.
#include "input.h"
#include "rpcrdma/private_data.h"

using namespace stag;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto found = rpcrdma::decode_private_data(fuzz::Input(data, size).rest());
  if (!found) return 0;
  STAG_CHECK(found->send_size >= 1024 && found->send_size <= 262144 &&
             found->send_size % 1024 == 0);
  STAG_CHECK(found->receive_size >= 1024 && found->receive_size <= 262144 &&
             found->receive_size % 1024 == 0);
  STAG_CHECK(rpcrdma::decode_private_data(rpcrdma::encode_private_data(*found)) == found);
  return 0;
}
