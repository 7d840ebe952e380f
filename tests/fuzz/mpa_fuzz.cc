// MPA connection set-up frames: decoding never asks for a byte beyond the frame and never accepts a
// frame it called incomplete.
#include "input.h"
#include "iwarp/mpa.h"

using namespace stag;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto kind =
      input.octet() % 2 == 0 ? iwarp::MpaFrameKind::Request : iwarp::MpaFrameKind::Reply;
  const Bytes frame = input.rest();
  Result<std::size_t, Reason> missing = iwarp::bytes_missing(kind, frame);
  Result<iwarp::MpaFrame, Reason> decoded = iwarp::decode_mpa_frame(kind, frame);
  if (decoded.ok() && missing.ok()) STAG_CHECK(*missing == 0);
  return 0;
}
