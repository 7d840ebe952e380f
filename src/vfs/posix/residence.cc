#include "vfs/posix/residence.h"

#include <linux/magic.h>

namespace stag::vfs::posix {
namespace {

// Not in every release of the system's headers.
constexpr std::uint32_t kXfs = 0x58465342;

}  // namespace

Residence residence_of(std::int64_t type) {
  // The kernel's numbers have 32 bits, also where the field is wider and signed.
  switch (static_cast<std::uint32_t>(type)) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
      return Residence::Memory;
    case EXT4_SUPER_MAGIC:  // ext2 and ext3 too
    case kXfs:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
      return Residence::Disk;
    default:
      return Residence::Elsewhere;
  }
}

}  // namespace stag::vfs::posix
