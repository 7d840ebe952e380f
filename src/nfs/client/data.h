// DataSink and DataSource: the caller's side of a bulk transfer. FileSystem::read_file() passes the
// bytes of a file to a DataSink; write_file() takes them from a DataSource.
//
// Thread: the FileSystem's loop, one call at a time, in the order of the offsets, while several
// operations are in flight to the server. An implementation offloads what blocks. Ownership: the
// object outlives the transfer. Errors: an Error of Kind::Local ends the transfer.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/task.h"
#include "nfs/client/protocol/error.h"

namespace stag::nfs::client {

class DataSink {
 public:
  // Takes the bytes `data`, which are not empty and are valid until the Task ends. `offset` is
  // where the last call ended.
  virtual Task<Outcome<Ok>> write(std::uint64_t offset, Bytes data) = 0;
  // Memory of the sink for the `length` bytes from `offset` on, valid until the transfer ends: an
  // RDMA server writes straight into it, and write() is then called with that memory. Empty, as by
  // default: the transfer uses memory of its own.
  virtual MutableBytes buffer(std::uint64_t offset, std::uint32_t length);

 protected:
  ~DataSink() = default;
};

class DataSource {
 public:
  struct Piece {
    std::uint64_t hole = 0;  // bytes of zeros in front of `data` that need not be written
    Bytes data{};            // empty: the end of the data
  };
  // The data from byte `offset` on: read into `buffer`, or lent from memory that stays unchanged
  // until the transfer ends. Any number of bytes up to buffer.size(). `offset` returns to the first
  // one when the server has lost unstable data and everything is written again.
  virtual Task<Outcome<Piece>> read(std::uint64_t offset, MutableBytes buffer) = 0;

 protected:
  ~DataSource() = default;
};

// A DataSink and a DataSource in memory, which the caller owns.
class MemorySink final : public DataSink {
 public:
  // `memory` receives the bytes of the file from byte `start` on; data beyond its end is an Error.
  explicit MemorySink(MutableBytes memory, std::uint64_t start = 0)
      : memory_(memory), start_(start) {}
  Task<Outcome<Ok>> write(std::uint64_t offset, Bytes data) override;
  MutableBytes buffer(std::uint64_t offset, std::uint32_t length) override;

 private:
  MutableBytes memory_;
  std::uint64_t start_;
};

class MemorySource final : public DataSource {
 public:
  explicit MemorySource(Bytes memory, std::uint64_t start = 0) : memory_(memory), start_(start) {}
  Task<Outcome<Piece>> read(std::uint64_t offset, MutableBytes buffer) override;

 private:
  Bytes memory_;
  std::uint64_t start_;
};

}  // namespace stag::nfs::client
