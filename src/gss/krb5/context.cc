#include "gss/krb5/context.h"

#include <gssapi/gssapi_ext.h>

#include <array>

#include "base/inline_vector.h"
#include "gss/krb5/status.h"

namespace stag::gss::krb5 {
namespace {

using Iov = InlineVector<gss_iov_buffer_desc, 6>;

gss_iov_buffer_desc part(OM_uint32 type, Bytes bytes = {}) {
  return {type, view_of(bytes)};
}

Iov data_of(Pieces message) {
  Iov iov;
  for (const Bytes piece : message) iov.push_back(part(GSS_IOV_BUFFER_TYPE_DATA, piece));
  return iov;
}

int count(const Iov& iov) {
  return static_cast<int>(iov.size());
}

// gssproxy's plug-in has no codes of messages in pieces.
bool is_unavailable(OM_uint32 major) {
  return GSS_ROUTINE_ERROR(major) == GSS_S_UNAVAILABLE;
}

Buffer in_one_piece(Pieces message) {
  if (message.size() == 1) return Buffer::borrow(message.front());
  std::size_t size = 0;
  for (const Bytes piece : message) size += piece.size();
  Block block = Block::allocate(size);
  std::byte* at = block.data();
  for (const Bytes piece : message) at = std::copy(piece.begin(), piece.end(), at);
  return std::move(block).freeze(size);
}

OM_uint32 get_mic_of_one(gss_ctx_id_t context, Pieces message, Mic& to) {
  const Buffer whole = in_one_piece(message);
  gss_buffer_desc view = view_of(whole.bytes());
  GssBuffer mic;
  OM_uint32 minor = 0;
  const OM_uint32 major = gss_get_mic(&minor, context, GSS_C_QOP_DEFAULT, &view, mic.out());
  if (GSS_ERROR(major)) return major;
  return to.assign(mic.bytes()) ? major : GSS_S_FAILURE;
}

OM_uint32 verify_mic_of_one(gss_ctx_id_t context, Pieces message, Bytes mic) {
  const Buffer whole = in_one_piece(message);
  gss_buffer_desc view = view_of(whole.bytes()), mic_view = view_of(mic);
  OM_uint32 minor = 0;
  return gss_verify_mic(&minor, context, &view, &mic_view, nullptr);
}

}  // namespace

Krb5Context::~Krb5Context() {
  OM_uint32 minor = 0;
  if (context_ != GSS_C_NO_CONTEXT) gss_delete_sec_context(&minor, &context_, GSS_C_NO_BUFFER);
}

Major Krb5Context::get_mic(Pieces message, Mic& to) {
  std::array<std::byte, kMaxMic> token;
  Iov iov = data_of(message);
  iov.push_back(part(GSS_IOV_BUFFER_TYPE_MIC_TOKEN, token));
  OM_uint32 minor = 0;
  const OM_uint32 major =
      gss_get_mic_iov(&minor, context_, GSS_C_QOP_DEFAULT, iov.data(), count(iov));
  if (is_unavailable(major)) return major_of(get_mic_of_one(context_, message, to));
  if (GSS_ERROR(major)) return major_of(major);
  const std::size_t length = iov.back().buffer.length;
  return to.assign(Bytes(token).first(length)) ? Major::COMPLETE : Major::FAILURE;
}

Major Krb5Context::verify_mic(Pieces message, Bytes mic) {
  Iov iov = data_of(message);
  iov.push_back(part(GSS_IOV_BUFFER_TYPE_MIC_TOKEN, mic));
  OM_uint32 minor = 0;
  gss_qop_t qop = GSS_C_QOP_DEFAULT;
  const OM_uint32 major = gss_verify_mic_iov(&minor, context_, &qop, iov.data(), count(iov));
  return major_of(is_unavailable(major) ? verify_mic_of_one(context_, message, mic) : major);
}

// The message is copied to its place between what the mechanism puts around it, and encrypted
// there: the four parts follow each other as gss_wrap() would have them.
Result<Buffer, Major> Krb5Context::wrap(Pieces message) {
  std::size_t size = 0;
  for (const Bytes piece : message) size += piece.size();
  std::array iov{part(GSS_IOV_BUFFER_TYPE_HEADER), part(GSS_IOV_BUFFER_TYPE_DATA),
                 part(GSS_IOV_BUFFER_TYPE_PADDING), part(GSS_IOV_BUFFER_TYPE_TRAILER)};
  iov[1].buffer.length = size;
  OM_uint32 minor = 0;
  int confidential = 0;
  OM_uint32 major = gss_wrap_iov_length(&minor, context_, 1, GSS_C_QOP_DEFAULT, &confidential,
                                        iov.data(), iov.size());
  if (GSS_ERROR(major)) return Failure{major_of(major)};
  std::size_t whole = 0;
  for (const gss_iov_buffer_desc& each : iov) whole += each.buffer.length;
  Block block = Block::allocate(whole);
  std::byte* at = block.data();
  for (gss_iov_buffer_desc& each : iov) {
    each.buffer.value = at;
    at += each.buffer.length;
  }
  at = static_cast<std::byte*>(iov[1].buffer.value);
  for (const Bytes piece : message) at = std::copy(piece.begin(), piece.end(), at);
  major =
      gss_wrap_iov(&minor, context_, 1, GSS_C_QOP_DEFAULT, &confidential, iov.data(), iov.size());
  if (GSS_ERROR(major)) return Failure{major_of(major)};
  std::size_t made = 0;
  for (const gss_iov_buffer_desc& each : iov) made += each.buffer.length;
  // Nothing may travel that is not confidential, nor parts with gaps between them.
  if (confidential == 0 || made != whole) return Failure{Major::FAILURE};
  return std::move(block).freeze(whole);
}

Result<Buffer, Major> Krb5Context::unwrap(Buffer sealed) {
  MutableBytes token = sealed.exclusive();
  if (token.empty()) {
    Block copy = Block::allocate(sealed.size());
    std::copy(sealed.bytes().begin(), sealed.bytes().end(), copy.data());
    sealed = std::move(copy).freeze(sealed.size());
    token = sealed.exclusive();
  }
  std::array iov{part(GSS_IOV_BUFFER_TYPE_STREAM, token), part(GSS_IOV_BUFFER_TYPE_DATA)};
  OM_uint32 minor = 0;
  int confidential = 0;
  gss_qop_t qop = GSS_C_QOP_DEFAULT;
  const OM_uint32 major =
      gss_unwrap_iov(&minor, context_, &confidential, &qop, iov.data(), iov.size());
  if (GSS_ERROR(major)) return Failure{major_of(major)};
  // RFC 2203 5.3.2.3: conf_req_flag is TRUE.
  if (confidential == 0) return Failure{Major::BAD_MIC};
  const auto* const plain = static_cast<const std::byte*>(iov[1].buffer.value);
  const std::size_t offset = static_cast<std::size_t>(plain - sealed.data());
  if (offset > sealed.size() || iov[1].buffer.length > sealed.size() - offset)
    return Failure{Major::FAILURE};
  return sealed.slice(offset, iov[1].buffer.length);
}

}  // namespace stag::gss::krb5
