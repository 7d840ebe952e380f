// Locks of programs of the server's machine, as a test says, and those that the server has against
// them; in place of a kernel.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "nfs/state/range_modes.h"
#include "vfs/local.h"

namespace stag::testing {

struct ProgramLocks {
  using Mode = nfs::state::RangeMode;
  nfs::state::RangeModes of_programs, of_server;
  int open = 0;   // files that the server has open for locks
  int calls = 0;  // of set(): system calls, of a kernel

  bool server_has(std::uint64_t first, std::uint64_t last, Mode mode) const {
    for (const auto& piece : of_server.within({first, last}))
      if (piece.mode != mode) return false;
    return true;
  }
};

class ProgramLocksOfFile final : public vfs::LocalLocks {
 public:
  explicit ProgramLocksOfFile(ProgramLocks& all) : all_(all) { ++all_.open; }
  ~ProgramLocksOfFile() override {
    --all_.open;
    all_.of_server = {};
  }
  vfs::Outcome<std::optional<vfs::LocalLock>> set(vfs::LocalRange range,
                                                  vfs::LockMode mode) override {
    ++all_.calls;
    if (const auto found = conflict(range, mode)) return found;
    all_.of_server.set({range.first, range.last}, static_cast<ProgramLocks::Mode>(mode));
    return std::optional<vfs::LocalLock>();
  }
  std::optional<vfs::LocalLock> conflict(vfs::LocalRange range, vfs::LockMode mode) const override {
    if (mode == vfs::LockMode::None) return std::nullopt;
    for (const auto& piece : all_.of_programs.within({range.first, range.last})) {
      const bool exclusive = piece.mode == ProgramLocks::Mode::Exclusive;
      if (piece.mode == ProgramLocks::Mode::None) continue;
      if (exclusive || mode == vfs::LockMode::Exclusive)
        return vfs::LocalLock{{piece.range.first, piece.range.last}, exclusive};
    }
    return std::nullopt;
  }

 private:
  ProgramLocks& all_;
};

}  // namespace stag::testing
