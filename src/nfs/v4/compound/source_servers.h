// Other NFS servers that COPY copies from (RFC 7862 4.6, 15.2): the interface that an embedder
// implements with a client of NFS. nfs/v4 decides what is copied and where to, and for how long
// anything is waited for; the implementation says whom it may ask, and asks.
//
// What such a server sends is untrusted: it may be anybody.
//
// Thread: admits() any, all else the home loop of Nfs4Server::start_callbacks().
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/address.h"
#include "base/bytes.h"
#include "base/cancel.h"
#include "base/result.h"
#include "base/task.h"
#include "nfs/proto/nfs4.h"
#include "vfs/types.h"

namespace stag::nfs::nfs4 {

// Where a server is reached, of the netloc4s of a COPY.
struct SourcePlace {
  Address at;         // numeric
  bool rdma = false;  // RPC-over-RDMA, else TCP
};

// What a client has been given leave to have copied (COPY_NOTIFY).
struct SourceArgs {
  v4::nfs_fh4 file;
  v4::stateid4 stateid;
  vfs::Credentials user;  // of the client's user, as they are here
};

// Statuses are those that COPY answers with: an answer of the source, or why there is none.
class SourceFile {
 public:
  template <class T>
  using Answer = Result<T, v4::nfsstat4>;
  struct Part {
    std::uint32_t count = 0;  // bytes
    bool eof = false;         // the file ends behind them
  };

  virtual ~SourceFile() = default;
  // Of a regular file; WRONG_TYPE.
  virtual Task<Answer<std::uint64_t>> size() = 0;
  // Bytes that one read() can bring; not 0.
  virtual std::uint32_t largest_read() const = 0;
  // At most to.size() bytes, which are not none; fewer are no end of the file.
  virtual Task<Answer<Part>> read(std::uint64_t offset, MutableBytes to) = 0;
  // Gives back what the source keeps for this reader. Awaited before the end.
  virtual Task<void> close() = 0;
};

class SourceServers {
 public:
  virtual ~SourceServers() = default;
  // False: no server is, and a client that wants it is no news. Any thread, as the next one.
  virtual bool any() const { return true; }
  // Whether servers at this numeric address may be asked at all.
  virtual bool admits(std::string_view host) const = 0;
  // `cancel` ends this, and whatever the SourceFile does, also its close(), soon and with any
  // status. Its source outlives the SourceFile.
  virtual Task<SourceFile::Answer<std::unique_ptr<SourceFile>>> open(SourcePlace place,
                                                                     SourceArgs args,
                                                                     CancelToken cancel) = 0;
};

}  // namespace stag::nfs::nfs4
