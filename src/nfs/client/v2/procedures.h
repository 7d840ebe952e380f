// NFS version 2 (RFC 1094) for a client that thinks in version 3: each function does what the
// version 3 procedure of its arguments would do, with the procedures of version 2.
//
//   READDIRPLUS    NFS3ERR_NOTSUPP: the caller lists names and looks them up
//   ACCESS         judged here by mode bits, owner and the caller's own AUTH_SYS credential
//   CREATE         GUARDED and EXCLUSIVE look first whether the name is free; who takes it in
//                  between shares the file
//   SETATTR        a guard is compared before; a time that is to be the server's beside one that is
//                  not takes two calls
//   WRITE, COMMIT  every WRITE is stable, so there is nothing to commit
//   FSINFO, PATHCONF, FSSTAT  what STATFS tells, else what the protocol allows
//
// At most 8192 bytes move in one call, whatever is asked for. Sizes and offsets end at 2^32-1;
// beyond is NFS3ERR_FBIG. Attributes that version 2 does not bring along are absent.
#pragma once

#include "nfs/client/protocol/error.h"
#include "nfs/proto/nfs3.h"
#include "rpc/client.h"

namespace stag::nfs::client::nfs2 {

// How to call. `client` has the binding of version 2; it, `credentials` and what the rest refers to
// outlive the Tasks. A sink in `options` is memory for the data of READ.
struct Context {
  rpc::Client& client;
  const rpc::Credentials& credentials;
  rpc::CallOptions options;
  Doing doing;
};

// The arguments outlive the Task.
Task<Outcome<v3::GETATTR3resok>> perform(Context to, const v3::GETATTR3args& args);
Task<Outcome<v3::SETATTR3resok>> perform(Context to, const v3::SETATTR3args& args);
Task<Outcome<v3::LOOKUP3resok>> perform(Context to, const v3::LOOKUP3args& args);
Task<Outcome<v3::ACCESS3resok>> perform(Context to, const v3::ACCESS3args& args);
Task<Outcome<v3::READLINK3resok>> perform(Context to, const v3::READLINK3args& args);
Task<Outcome<v3::READ3resok>> perform(Context to, const v3::READ3args& args);
Task<Outcome<v3::WRITE3resok>> perform(Context to, const v3::WRITE3args& args);
Task<Outcome<v3::CREATE3resok>> perform(Context to, const v3::CREATE3args& args);
Task<Outcome<v3::MKDIR3resok>> perform(Context to, const v3::MKDIR3args& args);
Task<Outcome<v3::SYMLINK3resok>> perform(Context to, const v3::SYMLINK3args& args);
Task<Outcome<v3::MKNOD3resok>> perform(Context to, const v3::MKNOD3args& args);
Task<Outcome<v3::REMOVE3resok>> perform(Context to, const v3::REMOVE3args& args);
Task<Outcome<v3::RMDIR3resok>> perform(Context to, const v3::RMDIR3args& args);
Task<Outcome<v3::RENAME3resok>> perform(Context to, const v3::RENAME3args& args);
Task<Outcome<v3::LINK3resok>> perform(Context to, const v3::LINK3args& args);
Task<Outcome<v3::READDIR3resok>> perform(Context to, const v3::READDIR3args& args);
Task<Outcome<v3::READDIRPLUS3resok>> perform(Context to, const v3::READDIRPLUS3args& args);
Task<Outcome<v3::FSSTAT3resok>> perform(Context to, const v3::FSSTAT3args& args);
Task<Outcome<v3::FSINFO3resok>> perform(Context to, const v3::FSINFO3args& args);
Task<Outcome<v3::PATHCONF3resok>> perform(Context to, const v3::PATHCONF3args& args);
Task<Outcome<v3::COMMIT3resok>> perform(Context to, const v3::COMMIT3args& args);

}  // namespace stag::nfs::client::nfs2
