// The data structures of RPCSEC_GSS: what is decoded is encoded to the same bytes again, apart from
// padding; the window of sequence numbers accepts no number twice.
#include <algorithm>
#include <vector>

#include "gss/credential.h"
#include "gss/sequence_window.h"
#include "input.h"

using namespace stag;

namespace {

void credential(Bytes body) {
  const auto decoded = gss::decode_credential(body);
  if (!decoded) return;
  std::vector<std::byte> again(
      gss::credential_size(static_cast<std::uint32_t>(decoded->handle.size())));
  gss::encode_credential(*decoded, again);
  const std::size_t fixed = 20 + decoded->handle.size();
  STAG_CHECK(again.size() == body.size() &&
             std::ranges::equal(Bytes(again).first(fixed), body.first(fixed)));
}

void tokens(Bytes body) {
  if (const auto token = gss::decode_init_arg(body)) {
    STAG_CHECK(token->size() <= gss::kMaxToken);
    const Buffer again = gss::encode_init_arg(*token).rope().flatten();
    STAG_CHECK(again.size() == body.size());
  }
  if (const auto results = gss::decode_init_res(body)) {
    const Buffer again = gss::encode_init_res(*results).rope().flatten();
    STAG_CHECK(again.size() == body.size());
  }
}

void window(fuzz::Input input) {
  gss::SequenceWindow window;
  std::vector<std::uint32_t> accepted;
  std::uint32_t number = 0;
  while (!input.empty() && accepted.size() < 4096) {
    const std::uint32_t kind = input.octet(), by = input.octet();
    number = kind < 128   ? number + by
             : kind < 250 ? number - std::min(number, by)
                          : number * 7 + by;
    number &= gss::kMaxSeq - 1;
    if (!window.is_new(number)) continue;
    STAG_CHECK(std::ranges::find(accepted, number) == accepted.end());
    window.accept(number);
    accepted.push_back(number);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t kind = input.octet();
  if (kind % 3 == 0) credential(input.rest());
  if (kind % 3 == 1) tokens(input.rest());
  if (kind % 3 == 2) window(input);
  return 0;
}
