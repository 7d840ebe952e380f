#include "gss/credential.h"

#include "xdr/decoder.h"
#include "xdr/encoder.h"

namespace stag::gss {
namespace {

bool known(Service service) {
  return service >= Service::none && service <= Service::privacy;
}

}  // namespace

oncrpc::AuthFlavor pseudo_flavor(Service service) {
  switch (service) {
    case Service::none:
      break;
    case Service::integrity:
      return oncrpc::AuthFlavor::KRB5I;
    case Service::privacy:
      return oncrpc::AuthFlavor::KRB5P;
  }
  return oncrpc::AuthFlavor::KRB5;
}

std::optional<Credential> decode_credential(Bytes body) {
  xdr::Decoder from(Buffer::borrow(body));
  Credential to;
  std::uint32_t procedure = 0, service = 0;
  if (!from.integers(to.version, procedure, to.seq_num, service) ||
      !from.inline_opaque(to.handle, kMaxHandle) || !from.finish().ok())
    return std::nullopt;
  to.procedure = static_cast<Procedure>(procedure);
  to.service = static_cast<Service>(service);
  if (to.procedure > Procedure::DESTROY) return std::nullopt;
  if (!to.creation() && !known(to.service)) return std::nullopt;
  return to;
}

void encode_credential(const Credential& credential, MutableBytes to) {
  STAG_CHECK(to.size() >= credential_size(static_cast<std::uint32_t>(credential.handle.size())));
  std::byte* at = to.data();
  const auto word = [&at](std::uint32_t value) {
    store_be(at, value);
    at += 4;
  };
  word(credential.version);
  word(static_cast<std::uint32_t>(credential.procedure));
  word(credential.seq_num);
  word(static_cast<std::uint32_t>(credential.service));
  word(static_cast<std::uint32_t>(credential.handle.size()));
  at = std::copy(credential.handle.begin(), credential.handle.end(), at);
  std::fill_n(at, xdr_pad(credential.handle.size()), std::byte{0});
}

std::optional<Bytes> decode_init_arg(Bytes arguments) {
  xdr::Decoder from(Buffer::borrow(arguments));
  Bytes token;
  if (!from.inline_opaque(token, kMaxToken) || !from.finish().ok()) return std::nullopt;
  return token;
}

xdr::Stream encode_init_arg(Bytes token) {
  xdr::Encoder to({}, token.size() + 8);
  to.opaque(xdr::kNoItem, token, kMaxToken);
  return std::move(to).finish();
}

std::optional<InitRes> decode_init_res(Bytes results) {
  xdr::Decoder from(Buffer::borrow(results));
  InitRes to;
  std::uint32_t major = 0;
  if (!from.inline_opaque(to.handle, kMaxHandle) || !from.integers(major, to.minor, to.window) ||
      !from.inline_opaque(to.token, kMaxToken) || !from.finish().ok())
    return std::nullopt;
  to.major = static_cast<Major>(major);
  return to;
}

xdr::Stream encode_init_res(const InitRes& results) {
  xdr::Encoder to({}, results.handle.size() + results.token.size() + 32);
  to.opaque(xdr::kNoItem, results.handle, kMaxHandle);
  to.u32s(results.major, results.minor, results.window);
  to.opaque(xdr::kNoItem, results.token, kMaxToken);
  return std::move(to).finish();
}

}  // namespace stag::gss
