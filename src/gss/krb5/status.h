// What MIT's status codes mean, as Reasons and sentences. Thread: any.
#pragma once

#include <gssapi/gssapi.h>

#include "gss/mechanism.h"

namespace stag::gss::krb5 {

// The status of a function that failed; `otherwise` where no other Reason says it better.
Error error_of(OM_uint32 major, OM_uint32 minor, Reason otherwise);
// The same of a status that the peer has sent, for which the library has no sentence.
Reason reason_of(OM_uint32 major, OM_uint32 minor, Reason otherwise);
// Whether such a status means Error::repeated.
bool is_repeated(OM_uint32 major, OM_uint32 minor);
// The routine error alone, or COMPLETE or CONTINUE_NEEDED: RFC 2203 appendix A has the library's
// own numbers.
Major major_of(OM_uint32 major);

// Owns a gss_buffer_t that the library has filled.
class GssBuffer {
 public:
  GssBuffer() = default;
  GssBuffer(const GssBuffer&) = delete;
  GssBuffer& operator=(const GssBuffer&) = delete;
  ~GssBuffer();
  gss_buffer_t out() { return &buffer_; }
  Bytes bytes() const { return {static_cast<const std::byte*>(buffer_.value), buffer_.length}; }

 private:
  gss_buffer_desc buffer_ = GSS_C_EMPTY_BUFFER;
};

// A view for arguments of the library, which does not write to them.
inline gss_buffer_desc view_of(Bytes bytes) {
  return {bytes.size(), const_cast<std::byte*>(bytes.data())};
}

}  // namespace stag::gss::krb5
