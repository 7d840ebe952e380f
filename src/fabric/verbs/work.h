// One work request of a send queue, and what comes back when it has completed.
#pragma once

#include <array>

#include "base/rope.h"
#include "fabric/fabric.h"
#include "fabric/verbs/block_pool.h"

namespace stag::fabric {

// SGEs of a request, at most; more pieces are copied together.
inline constexpr std::uint32_t kMostPieces = 6;

enum class WorkKind : std::uint8_t { Send, Write, Read, Bind, Invalidate, Marker };

struct Work {
  WorkKind kind = WorkKind::Marker;
  bool inlined = false;
  std::uint8_t pieces = 0;
  Token token = kNoToken;
  std::uint32_t key = 0;  // Send: to invalidate, if `invalidates`; Bind, Invalidate: the window's
  bool invalidates = false;
  RemoteMemory remote;                        // Write, Read
  std::array<ibv_sge, kMostPieces> memory{};  // the first `pieces`
  std::array<RegisteredBlock*, kMostPieces> blocks{};
  ibv_mr* region = nullptr;  // registered for this request only
  Rope source;               // kept until the device has read it
  MutableBytes sink;         // Read: where a block's bytes go
  // Bind
  ibv_mw* window = nullptr;
  ibv_mw_bind_info binding{};

  void add(std::byte* data, std::size_t size, std::uint32_t local_key) {
    memory[pieces++] = {reinterpret_cast<std::uintptr_t>(data), static_cast<std::uint32_t>(size),
                        local_key};
  }
};

}  // namespace stag::fabric
