// Values of NFS version 2 (RFC 1094 2.3) to and from the client's own.
#pragma once

#include "nfs/client/protocol/error.h"
#include "nfs/client/protocol/types.h"
#include "nfs/proto/nfs2.h"

namespace stag::nfs::client::nfs2 {

inline constexpr std::uint32_t kKeep = 0xffffffff;  // RFC 1094 2.3.6
inline constexpr v2::timeval kKeepTime{kKeep, kKeep};
// Microseconds that stand for the server's own time, a convention of Sun's.
inline constexpr std::uint32_t kServerTime = 1'000'000;

Status to_status(std::uint32_t status);
Attributes to_attributes(const v2::fattr& attributes);
Handle to_handle(const v2::fhandle& handle);
v2::timeval to_timeval(const Time& time);
// As a device number stands in `rdev`, and in `size` when a device is made.
std::uint32_t to_rdev(const Device& device);

Outcome<v2::fhandle> to_fhandle(OperationContext context, const Handle& handle);
Outcome<v2::diropargs> to_diropargs(OperationContext context, const Handle& directory,
                                    std::string_view name);
// Times that are the server's become kKeepTime. FileTooBig.
Outcome<v2::sattr> to_sattr(OperationContext context, const SetAttributes& attributes);

}  // namespace stag::nfs::client::nfs2
