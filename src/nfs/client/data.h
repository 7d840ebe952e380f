// The caller's side of a bulk transfer: where FileSystem::read_file() puts the bytes of a file and
// where write_file() takes them from. Both are called on the FileSystem's loop, one call at a time
// and in order of the offsets, while several operations are in flight to the server; what blocks is
// for the implementation to offload.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/task.h"
#include "nfs/client/protocol/error.h"

namespace stag::nfs::client {

class DataSink {
 public:
  // Takes `data`, valid until the Task ends. Not empty; `offset` goes on where the last call ended.
  virtual Task<Outcome<Ok>> write(std::uint64_t offset, Bytes data) = 0;
  // Memory of the sink for the `length` bytes from `offset`, to be filled before write() is called
  // with (some of) it: an RDMA server then writes straight into it. Empty: the transfer uses memory
  // of its own. Valid until the transfer ends.
  virtual MutableBytes room(std::uint64_t offset, std::uint32_t length);

 protected:
  ~DataSink() = default;
};

class DataSource {
 public:
  struct Piece {
    std::uint64_t hole = 0;  // zeros in front of `data` that need not be written
    Bytes data{};            // empty: the end
  };
  // The data from `offset` on: read into `room`, or lent from memory that stays as it is until the
  // transfer ends. Fewer than room.size() bytes when a hole or the end follows, or whenever that is
  // easier. Goes back to the first offset when the server has lost unstable data and everything is
  // written again.
  virtual Task<Outcome<Piece>> read(std::uint64_t offset, MutableBytes room) = 0;

 protected:
  ~DataSource() = default;
};

// Memory as either side.
class MemorySink final : public DataSink {
 public:
  // `memory` stands for the bytes of the file from `start` on.
  explicit MemorySink(MutableBytes memory, std::uint64_t start = 0)
      : memory_(memory), start_(start) {}
  Task<Outcome<Ok>> write(std::uint64_t offset, Bytes data) override;
  MutableBytes room(std::uint64_t offset, std::uint32_t length) override;

 private:
  MutableBytes memory_;
  std::uint64_t start_;
};

class MemorySource final : public DataSource {
 public:
  explicit MemorySource(Bytes memory, std::uint64_t start = 0) : memory_(memory), start_(start) {}
  Task<Outcome<Piece>> read(std::uint64_t offset, MutableBytes room) override;

 private:
  Bytes memory_;
  std::uint64_t start_;
};

}  // namespace stag::nfs::client
