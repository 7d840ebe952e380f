// Values whose arrays, optionals and opaques came in chunks, of any content, at any position.
#include "input.h"
#include "rpc/message.h"
#include "xdr/container.h"

using namespace stag;

namespace {

constexpr xdr::ItemId kRows = 1, kNote = 2, kData = 3, kList = 4;
constexpr std::array<xdr::ItemId, 4> kEligible{kRows, kNote, kData, kList};

struct Value {
  std::vector<std::vector<std::uint32_t>> rows;
  std::optional<std::string> note;
  Rope data;
  std::vector<std::uint64_t> list;
};

constexpr auto kRow = [](auto& coder, auto& row) {
  if constexpr (std::is_same_v<decltype(coder), xdr::Encoder&>)
    xdr::encode_vector(coder, row, xdr::kUnbounded,
                       [](xdr::Encoder& inner, const std::uint32_t& word) { inner.u32(word); });
  else
    return xdr::decode_vector(
        coder, row, xdr::kUnbounded, 4,
        [](xdr::Decoder& inner, std::uint32_t& word) { return inner.u32(word); });
};

bool decode(xdr::Decoder& decoder, Value& to) {
  return xdr::decode_vector(decoder, kRows, to.rows, 100, 4, kRow) &&
         xdr::decode_optional(decoder, kNote, to.note,
                              [](xdr::Decoder& inner, std::string& text) {
                                return inner.string(xdr::kNoItem, text);
                              }) &&
         decoder.opaque(kData, to.data) &&
         xdr::decode_list(decoder, kList, to.list,
                          [](xdr::Decoder& inner, std::uint64_t& id) { return inner.u64(id); });
}

void encode(xdr::Encoder& encoder, const Value& from) {
  xdr::encode_vector(encoder, kRows, from.rows, 100, kRow);
  xdr::encode_optional(encoder, kNote, from.note, [](xdr::Encoder& inner, const std::string& text) {
    inner.string(xdr::kNoItem, text);
  });
  encoder.opaque(kData, from.data);
  xdr::encode_list(encoder, kList, from.list,
                   [](xdr::Encoder& inner, const std::uint64_t& id) { inner.u64(id); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  rpc::ReducedItems items;
  items.allow(kEligible);
  for (std::uint8_t chunks = input.octet() % 4; chunks > 0; --chunks) {
    const std::uint8_t where = input.octet();
    const Bytes bytes = input.take(input.octet());
    if (where % 2 == 0)
      items.add(where * 2u, Rope::copy_of(bytes));
    else
      items.add_written(Rope::copy_of(bytes), where / 2 % 5);
  }
  xdr::Decoder decoder(Buffer::copy_of(input.rest()), &items);
  Value value;
  if (!decode(decoder, value)) return 0;
  // Where the decoder stands is where the stream would end if nothing had moved.
  xdr::Encoder encoder(kEligible);
  encode(encoder, value);
  STAG_CHECK(std::move(encoder).finish().size() == decoder.position());
  return 0;
}
