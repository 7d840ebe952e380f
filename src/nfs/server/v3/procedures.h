// The 21 procedures of NFSv3 behind NULL (RFC 1813 3.3), one or a tight family per file. Each
// resolves the file handles of its arguments, asks the store and makes the results; attributes and
// wcc_data go with errors too where the store still gives them.
//
// All run on the loop of the connection. The Request's Call outlives the Task. Those that are
// called most are no coroutines where the store answers at once.
#pragma once

#include "base/eventual.h"
#include "nfs/proto/nfs3.h"
#include "nfs/server/v3/request.h"

namespace stag::nfs::nfs3 {

// Program 100003 version 3. `server` outlives it.
rpc::Program program(const ServerContext& server);

Eventual<v3::GETATTR3res> getattr(Running<v3::NFSPROC3_GETATTR>& call);
Task<v3::SETATTR3res> setattr(Request request, v3::SETATTR3args args);
Task<v3::ACCESS3res> access(Request request, v3::ACCESS3args args);

Task<v3::LOOKUP3res> lookup(Request request, v3::LOOKUP3args args);
Task<v3::READLINK3res> readlink(Request request, v3::READLINK3args args);

// The data of a READ is the store's own, by reference. That of a WRITE is handed over to the store.
Eventual<v3::READ3res> read(Running<v3::NFSPROC3_READ>& call);
Eventual<v3::WRITE3res> write(Running<v3::NFSPROC3_WRITE>& call);
Task<v3::COMMIT3res> commit(Request request, v3::COMMIT3args args);

Task<v3::CREATE3res> create(Request request, v3::CREATE3args args);
Task<v3::MKDIR3res> mkdir(Request request, v3::MKDIR3args args);
Task<v3::SYMLINK3res> symlink(Request request, v3::SYMLINK3args args);
Task<v3::MKNOD3res> mknod(Request request, v3::MKNOD3args args);

Task<v3::REMOVE3res> remove(Request request, v3::REMOVE3args args);
Task<v3::RMDIR3res> rmdir(Request request, v3::RMDIR3args args);
Task<v3::RENAME3res> rename(Request request, v3::RENAME3args args);
Task<v3::LINK3res> link(Request request, v3::LINK3args args);

Task<v3::READDIR3res> readdir(Request request, v3::READDIR3args args);
Task<v3::READDIRPLUS3res> readdirplus(Request request, v3::READDIRPLUS3args args);

Task<v3::FSSTAT3res> fsstat(Request request, v3::FSSTAT3args args);
Task<v3::FSINFO3res> fsinfo(Request request, v3::FSINFO3args args);
Task<v3::PATHCONF3res> pathconf(Request request, v3::PATHCONF3args args);

}  // namespace stag::nfs::nfs3
