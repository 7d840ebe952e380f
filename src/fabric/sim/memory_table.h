// The memory one side of a connection exposes to its peer: who may do what where, under which
// handle.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/buffer.h"
#include "base/reason.h"
#include "base/result.h"
#include "fabric/fabric.h"
#include "fabric/sim/random.h"

namespace stag::fabric {

enum class Right : std::uint8_t { Read, Write };

class MemoryTable {
 public:
  // Handles and offsets are random, offsets with high bits set, so that a peer that takes either
  // for more than an opaque number fails at once.
  explicit MemoryTable(Random& random) : random_(random) {}

  RemoteMemory expose_source(Bytes memory);
  RemoteMemory expose_sink(MutableBytes memory);

  struct Target {
    Bytes source;       // Right::Read
    MutableBytes sink;  // Right::Write; empty when what is written is to be dropped
  };
  // What the peer reaches by this access, or why it may not.
  Result<Target, Reason> access(Right right, std::uint32_t handle, std::uint64_t offset,
                                std::size_t length) const;

  // The peer has written to a sink up to here.
  void fill(std::uint32_t handle, std::uint64_t end);
  // Bytes from the start of a sink up to the end of what the peer has written.
  std::optional<std::size_t> filled(std::uint32_t handle) const;

  bool contains(std::uint32_t handle) const { return entries_.count(handle) != 0; }
  // The memory covered, empty when the handle is unknown or its memory was given back before.
  MutableBytes remove(std::uint32_t handle);
  // Gives the memory back while the handle lives on: a sink drops what arrives, a source answers
  // from a copy. The memory given back; empty as in remove().
  MutableBytes abandon(std::uint32_t handle);
  // Bytes that abandon(handle) would copy.
  std::size_t copy_size(std::uint32_t handle) const;

  std::size_t size() const { return entries_.size(); }
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    Right right = Right::Read;
    bool abandoned = false;
    std::uint64_t offset = 0;
    MutableBytes memory;  // of a source: never written through
    std::size_t length = 0;
    std::size_t filled = 0;  // of a sink
    Buffer copy;             // of an abandoned source
  };
  RemoteMemory expose(Right right, MutableBytes memory);

  Random& random_;
  std::map<std::uint32_t, Entry> entries_;
};

}  // namespace stag::fabric
