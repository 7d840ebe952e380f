#include "gss/protect.h"

#include <array>

#include "base/inline_vector.h"
#include "xdr/decoder.h"
#include "xdr/encoder.h"

namespace stag::gss {
namespace {

// rpc_gss_data_t, in pieces.
struct PlainData {
  PlainData(std::uint32_t seq_num, const xdr::Stream& plain) : bytes(plain.rope()) {
    store_be(number.data(), seq_num);
    pieces.push_back(number);
    for (const Buffer& piece : bytes.pieces()) pieces.push_back(piece.bytes());
  }
  Pieces all() const { return {pieces.begin(), pieces.size()}; }

  std::array<std::byte, 4> number;
  Rope bytes;
  InlineVector<Bytes, 4> pieces;
};

// RFC 8166 8.2.2.3: no item of a transformed message may be reduced, so none is marked.
xdr::Stream without_marks(const xdr::Stream& stream) {
  xdr::Stream::Items items;
  for (const xdr::Item& item : stream.items()) {
    if (item.in_head) continue;
    items.push_back(item);
    items.back().id = xdr::kNoItem;
  }
  return xdr::Stream(Buffer(stream.head()), stream.size(), std::move(items), 0, stream.ok());
}

// RFC 2203 5.3.3.1: the sequence number inside is that of the credential.
Result<Buffer, Major> without_number(const Buffer& data, std::uint32_t seq_num) {
  if (data.size() < 4 || load_be<std::uint32_t>(data.data()) != seq_num)
    return Failure{Major::DEFECTIVE_TOKEN};
  return data.slice(4, data.size() - 4);
}

Result<Buffer, Major> verified(Context& context, std::uint32_t seq_num, const Buffer& data) {
  xdr::Decoder from(Buffer::borrow(data.bytes()));
  Bytes body, checksum;
  if (!from.inline_opaque(body, xdr::kUnbounded) || !from.inline_opaque(checksum, kMaxMic) ||
      !from.finish().ok() || body.size() % 4 != 0)
    return Failure{Major::DEFECTIVE_TOKEN};
  if (const Major major = context.verify_mic(Pieces(&body, 1), checksum); major != Major::COMPLETE)
    return Failure{major};
  return without_number(data.slice(4, body.size()), seq_num);
}

Result<Buffer, Major> decrypted(Context& context, std::uint32_t seq_num, Buffer data) {
  xdr::Decoder from(Buffer::borrow(data.bytes()));
  Bytes sealed;
  if (!from.inline_opaque(sealed, xdr::kUnbounded) || !from.finish().ok())
    return Failure{Major::DEFECTIVE_TOKEN};
  Buffer body = data.slice(4, sealed.size());
  data = {};  // so that `body` may be the only holder
  const Result<Buffer, Major> plain = context.unwrap(std::move(body));
  if (!plain) return plain;
  if (plain->size() % 4 != 0) return Failure{Major::DEFECTIVE_TOKEN};
  return without_number(*plain, seq_num);
}

}  // namespace

Result<xdr::Stream, Major> protect(Context& context, Service service, std::uint32_t seq_num,
                                   const xdr::Stream& plain) {
  const PlainData data(seq_num, plain);
  xdr::Encoder to({}, plain.head().size() + kMaxMic + 64);
  if (service == Service::privacy) {
    Result<Buffer, Major> sealed = context.wrap(data.all());
    if (!sealed) return Failure{sealed.error()};
    to.opaque(xdr::kNoItem, Rope(*std::move(sealed)));
    return std::move(to).finish();
  }
  Mic checksum;
  if (const Major major = context.get_mic(data.all(), checksum); major != Major::COMPLETE)
    return Failure{major};
  to.u32s(4 + plain.size(), seq_num);
  to.append(without_marks(plain));
  to.opaque(xdr::kNoItem, checksum.bytes());
  return std::move(to).finish();
}

Result<Buffer, Major> unprotect(Context& context, Service service, std::uint32_t seq_num,
                                Buffer data) {
  return service == Service::privacy ? decrypted(context, seq_num, std::move(data))
                                     : verified(context, seq_num, data);
}

}  // namespace stag::gss
