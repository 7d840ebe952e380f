#include "iwarp/ddp.h"

namespace stag::iwarp {
namespace {

constexpr std::uint16_t kTaggedBit = 0x8000;
constexpr std::uint16_t kLastBit = 0x4000;

std::uint16_t control_word(const Control& control) {
  return static_cast<std::uint16_t>((control.tagged ? kTaggedBit : 0) |
                                    (control.last ? kLastBit : 0) | (control.ddp_version & 3) << 8 |
                                    (control.rdmap_version & 3) << 6 | (control.opcode & 15));
}

}  // namespace

Control decode_control(const std::byte* ulpdu) {
  const auto word = load_be<std::uint16_t>(ulpdu);
  Control control;
  control.tagged = (word & kTaggedBit) != 0;
  control.last = (word & kLastBit) != 0;
  control.ddp_version = (word >> 8) & 3;
  control.rdmap_version = (word >> 6) & 3;
  control.opcode = word & 15;
  return control;
}

TaggedHeader decode_tagged(const std::byte* ulpdu) {
  return {decode_control(ulpdu), load_be<std::uint32_t>(ulpdu + 2),
          load_be<std::uint64_t>(ulpdu + 6)};
}

UntaggedHeader decode_untagged(const std::byte* ulpdu) {
  return {decode_control(ulpdu), load_be<std::uint32_t>(ulpdu + 2),
          load_be<std::uint32_t>(ulpdu + 6), load_be<std::uint32_t>(ulpdu + 10),
          load_be<std::uint32_t>(ulpdu + 14)};
}

void encode_tagged(const TaggedHeader& header, std::byte* to) {
  store_be(to, control_word(header.control));
  store_be(to + 2, header.stag);
  store_be(to + 6, header.offset);
}

void encode_untagged(const UntaggedHeader& header, std::byte* to) {
  store_be(to, control_word(header.control));
  store_be(to + 2, header.invalidate);
  store_be(to + 6, header.queue);
  store_be(to + 10, header.sequence);
  store_be(to + 14, header.offset);
}

}  // namespace stag::iwarp
