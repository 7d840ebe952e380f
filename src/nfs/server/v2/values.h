// NFSv2 values to and from those of vfs (RFC 1094 2.3). Version 2 has 32 bits where vfs has 64:
//
//   sizes     end at 2^31-1; a larger file shows that size and cannot be read or written (FBIG)
//   ids       of files and file systems are folded
//   times     have microseconds
//
// A field of all ones in sattr leaves the attribute as it is. Microseconds of 1,000,000 stand for
// the server's own time, a convention of Sun's that clients rely on.
#pragma once

#include <cstdint>
#include <optional>

#include "nfs/export/admission.h"
#include "nfs/proto/nfs2.h"
#include "vfs/vfs.h"

namespace stag::nfs::nfs2 {

inline constexpr std::uint64_t kMaxFileSize = 0x7fffffff;

// Yields statuses of RFC 1094 2.3.1 only; a vfs::Status that has none there becomes the nearest.
v2::nfsstat to_nfsstat(vfs::Status status);
v2::nfsstat to_nfsstat(Refusal refusal);

v2::fattr to_fattr(const vfs::Attributes& attributes);
std::uint32_t to_fileid(std::uint64_t file_id);

// FileTooBig for a size beyond the limit, Invalid for a time that cannot be.
vfs::Outcome<vfs::SetAttributes> from_sattr(const v2::sattr& attributes);

// The kind of object that CREATE makes. RFC 1094 has no MKNOD: clients put the type into the mode
// bits, and the device number where the size would be.
struct NewObject {
  vfs::FileType type = vfs::FileType::Regular;
  vfs::Device device{};
};
// BadType for a directory or a link.
vfs::Outcome<NewObject> to_new_object(const v2::sattr& attributes);

// In blocks that make the counts fit 31 bits.
v2::statfsok to_statfsok(const vfs::Usage& usage);

}  // namespace stag::nfs::nfs2
