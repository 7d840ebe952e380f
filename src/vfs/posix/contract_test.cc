#include "testing/vfs/contract.h"

#include "testing/vfs/posix_backend.h"

namespace stag::vfs::testing {
namespace {

using posix::AtOnce;
using posix::HandleKind;

BackendFactory posix_on(const char* name, const PosixKind& kind) {
  return {name, [kind] { return std::make_unique<PosixBackend>(kind); },
          [kind](std::uint64_t bytes) -> std::unique_ptr<Backend> {
            auto small = std::make_unique<PosixBackend>(kind, bytes);
            if (!small->is_small()) return nullptr;
            return small;
          }};
}

// On a disk and in memory, at once and by workers, with the handles of the kernel (where it lets
// us) and with those of the table.
std::vector<BackendFactory> posix_stores() {
  std::error_code none;
  const char* memory = std::filesystem::is_directory(kMemory, none) ? kMemory : kDisk;
  const auto automatic = HandleKind::Automatic;
  return {posix_on("disk", {kDisk, automatic, AtOnce::Always, false, 10'000}),
          posix_on("disk_offloaded", {kDisk, automatic, AtOnce::Never, false, 1'000}),
          posix_on("memory", {memory, automatic, AtOnce::Always, false, 100'000}),
          posix_on("memory_offloaded", {memory, automatic, AtOnce::Never, true}),
          posix_on("memory_table", {memory, HandleKind::Table, AtOnce::Always})};
}

}  // namespace

STAG_VFS_CONTRACT(Posix, ::testing::ValuesIn(posix_stores()));

}  // namespace stag::vfs::testing
