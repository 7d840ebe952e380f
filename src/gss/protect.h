// The services integrity and privacy as transforms of arguments and results (RFC 2203 sections
// 5.3.2.2, 5.3.2.3 and 5.3.3.2): rpc_gss_integ_data and rpc_gss_priv_data around rpc_gss_data_t,
// which is the sequence number of the Call and the plain bytes.
//
// Thread: that of the Context. Errors: the major status of the mechanism; DEFECTIVE_TOKEN where the
// bytes are not what the service sends.
#pragma once

#include <cstdint>

#include "base/buffer.h"
#include "base/result.h"
#include "gss/credential.h"
#include "gss/mechanism.h"
#include "xdr/stream.h"

namespace stag::gss {

// How much longer a message is with `service` than without it, beside the verifier.
constexpr std::uint32_t overhead_of(Service service, const Sizes& sizes) {
  if (service == Service::none) return 0;
  constexpr std::uint32_t kWords = 12, kPad = 3;  // seq_num and at most two lengths
  return kWords + kPad + (service == Service::integrity ? sizes.mic_max : sizes.wrap_overhead);
}

// With integrity the result refers to the bytes of `plain`; with privacy they are copied once. The
// Service is not `none`.
Result<xdr::Stream, Major> protect(Context& context, Service service, std::uint32_t seq_num,
                                   const xdr::Stream& plain);

// The plain bytes. With integrity they are a part of `data`; with privacy they are decrypted in
// place where nobody else holds `data`. `data` owns its bytes, or they outlive the result. Fails
// when the sequence number inside is not `seq_num`.
Result<Buffer, Major> unprotect(Context& context, Service service, std::uint32_t seq_num,
                                Buffer data);

}  // namespace stag::gss
