// The operations that are measured, one at a time.
#pragma once

#include <cstdint>

#include "base/eventual.h"
#include "bench/load/nfs41_file.h"
#include "nfs/client/file_system.h"

namespace stag::bench {

enum class Operation : std::uint8_t { Null, Getattr, Read, Write };

// Of worlds that hold client and server both: a file and memory for it, worked on by so many
// operations at a time, each of kBlock bytes here and there.
class Workload {
 public:
  static constexpr std::size_t kBlock = 4096;
  static constexpr std::size_t kBlocks = 512;

  // Makes the file in the root of `files`, which outlives this. False: it could not.
  Task<bool> open(nfs::client::FileSystem& files);
  // From now on GETATTR, READ and WRITE are those of NFS version 4.1, over the same connection. The
  // root of `files` is that of the server. False: it could not.
  Task<bool> use_nfs4();
  // On the loop of the files. False when an operation failed.
  Task<bool> run(Operation operation, std::uint64_t count, unsigned depth);

 private:
  Task<void> worker(Operation operation, unsigned index);
  Eventual<bool> once(Operation operation, MutableBytes block);
  Eventual<bool> once_by_nfs4(Operation operation, std::uint64_t at, MutableBytes block);

  nfs::client::FileSystem* files_ = nullptr;
  nfs::client::Handle file_;
  std::optional<Nfs41File> nfs4_file_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kBlocks * kBlock);
  std::uint64_t left_ = 0, next_ = 0;
  bool good_ = true;
};

}  // namespace stag::bench
