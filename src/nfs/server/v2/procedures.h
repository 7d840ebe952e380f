// NFS version 2 (RFC 1094) over the same exports, handles and stores as version 3. Its 17
// procedures are coroutines like those of version 3; values.h maps values that version 2 cannot
// express.
//
// All changes are on stable storage when they are answered (RFC 1094 2.2): WRITE is synchronous. A
// file larger than 2^31-1 bytes has attributes, but can be neither read nor written: a client that
// believed the size in its attributes would take a part for the whole.
#pragma once

#include "base/task.h"
#include "nfs/server/v2/request.h"

namespace stag::nfs::nfs2 {

// Program 100003 version 2. `server` outlives it.
rpc::Program program(const ServerContext& server);

Task<v2::attrstat> getattr(Request request, v2::fhandle file);
Task<v2::attrstat> setattr(Request request, v2::sattrargs args);
Task<v2::diropres> lookup(Request request, v2::diropargs args);
Task<v2::readlinkres> readlink(Request request, v2::fhandle link);
Task<v2::readres> read(Request request, v2::readargs args);
Task<v2::attrstat> write(Request request, v2::writeargs args);
Task<v2::statfsres> statfs(Request request, v2::fhandle file);
Task<v2::readdirres> readdir(Request request, v2::readdirargs args);

Task<v2::diropres> create(Request request, v2::createargs args);
Task<v2::diropres> mkdir(Request request, v2::createargs args);
Task<v2::nfsstat> symlink(Request request, v2::symlinkargs args);
Task<v2::nfsstat> link(Request request, v2::linkargs args);
Task<v2::nfsstat> remove(Request request, v2::diropargs args);
Task<v2::nfsstat> rmdir(Request request, v2::diropargs args);
Task<v2::nfsstat> rename(Request request, v2::renameargs args);

}  // namespace stag::nfs::nfs2
