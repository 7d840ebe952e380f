// The operations (RFC 8881 section 18, RFC 7862 section 15), one or a tight family per file. Each
// is run with the filehandles that its row in the table asks for; objects of the pseudo file system
// reach only those whose row says so.
#pragma once

#include "nfs/v4/compound/compound.h"
#include "nfs/v4/ops/direct_codecs.h"

namespace stag::nfs::nfs4 {

// Filehandles.
v4::PUTROOTFH4res putrootfh(Compound& compound);
v4::PUTPUBFH4res putpubfh(Compound& compound);
Eventual<v4::nfsstat4> putfh(Compound& compound, PutfhArguments& args, xdr::Encoder& results);
v4::GETFH4res getfh(Compound& compound);
v4::SAVEFH4res savefh(Compound& compound);
v4::RESTOREFH4res restorefh(Compound& compound);
Task<v4::LOOKUP4res> lookup(Compound& compound, v4::LOOKUP4args& args);
Task<v4::LOOKUPP4res> lookupp(Compound& compound);
Task<v4::SECINFO4res> secinfo(Compound& compound, v4::SECINFO4args& args);
Task<v4::SECINFO_NO_NAME4res> secinfo_no_name(Compound& compound, v4::SECINFO_NO_NAME4args& style);

// Attributes.
Eventual<v4::nfsstat4> getattr(Compound& compound, GetattrArguments& args, xdr::Encoder& results);
Task<v4::SETATTR4res> setattr(Compound& compound, v4::SETATTR4args& args);
Task<v4::ACCESS4res> access(Compound& compound, v4::ACCESS4args& args);
Task<v4::VERIFY4res> verify(Compound& compound, v4::VERIFY4args& args);
Task<v4::NVERIFY4res> nverify(Compound& compound, v4::NVERIFY4args& args);

// Names.
Task<ReaddirResults> readdir(Compound& compound, v4::READDIR4args& args);
Task<v4::CREATE4res> create(Compound& compound, v4::CREATE4args& args);
Task<v4::REMOVE4res> remove(Compound& compound, v4::REMOVE4args& args);
Task<v4::RENAME4res> rename(Compound& compound, v4::RENAME4args& args);
Task<v4::LINK4res> link(Compound& compound, v4::LINK4args& args);
Task<v4::READLINK4res> readlink(Compound& compound);

// Data.
Eventual<v4::nfsstat4> read(Compound& compound, ReadArguments& args, xdr::Encoder& results);
Eventual<v4::nfsstat4> write(Compound& compound, WriteArguments& args, xdr::Encoder& results);
Task<v4::COMMIT4res> commit(Compound& compound, v4::COMMIT4args& args);

// Ranges of files, of minor version 2.
Task<v4::SEEK4res> seek(Compound& compound, v4::SEEK4args& args);
Task<v4::ALLOCATE4res> allocate(Compound& compound, v4::ALLOCATE4args& args);
Task<v4::DEALLOCATE4res> deallocate(Compound& compound, v4::DEALLOCATE4args& args);
Task<v4::CLONE4res> clone(Compound& compound, v4::CLONE4args& args);
Task<v4::COPY4res> copy(Compound& compound, v4::COPY4args& args);
Task<v4::COPY4res> copy_from_server(Compound& compound, v4::COPY4args& args);
v4::COPY_NOTIFY4res copy_notify(Compound& compound, v4::COPY_NOTIFY4args& args);
v4::OFFLOAD_STATUS4res offload_status(Compound& compound, v4::OFFLOAD_STATUS4args& args);
Task<v4::OFFLOAD_CANCEL4res> offload_cancel(Compound& compound, v4::OFFLOAD_CANCEL4args& args);
Task<v4::READ_PLUS4res> read_plus(Compound& compound, v4::READ_PLUS4args& args);
Task<v4::IO_ADVISE4res> io_advise(Compound& compound, v4::IO_ADVISE4args& args);

// Extended attributes.
Task<v4::GETXATTR4res> getxattr(Compound& compound, v4::GETXATTR4args& args);
Task<v4::SETXATTR4res> setxattr(Compound& compound, v4::SETXATTR4args& args);
Task<v4::LISTXATTRS4res> listxattrs(Compound& compound, v4::LISTXATTRS4args& args);
Task<v4::REMOVEXATTR4res> removexattr(Compound& compound, v4::REMOVEXATTR4args& args);

// Opens and locks.
Task<v4::OPEN4res> open(Compound& compound, v4::OPEN4args& args);
enum class Delegating : bool { Forbidden, Allowed };
Task<v4::OPEN4res> open_file(Compound& compound, v4::OPEN4args& args, Delegating delegating);
v4::DELEGRETURN4res delegreturn(Compound& compound, v4::DELEGRETURN4args& args);
v4::CLOSE4res close(Compound& compound, v4::CLOSE4args& args);
v4::OPEN_DOWNGRADE4res open_downgrade(Compound& compound, v4::OPEN_DOWNGRADE4args& args);
Task<v4::LOCK4res> lock(Compound& compound, v4::LOCK4args& args);
Task<v4::LOCKT4res> lockt(Compound& compound, v4::LOCKT4args& args);
v4::LOCKU4res locku(Compound& compound, v4::LOCKU4args& args);
v4::TEST_STATEID4res test_stateid(Compound& compound, v4::TEST_STATEID4args& args);
v4::FREE_STATEID4res free_stateid(Compound& compound, v4::FREE_STATEID4args& args);

// Version 4.0: clients without sessions, and the operations whose owners number them.
v4::SETCLIENTID4res setclientid(Compound& compound, v4::SETCLIENTID4args& args);
v4::SETCLIENTID_CONFIRM4res setclientid_confirm(Compound& compound,
                                                v4::SETCLIENTID_CONFIRM4args& args);
Task<v4::RENEW4res> renew(Compound& compound, v4::RENEW4args& args);
v4::RELEASE_LOCKOWNER4res release_lockowner(Compound& compound, v4::RELEASE_LOCKOWNER4args& args);
Task<v4::OPEN4res> open_in_turn(Compound& compound, v4::OPEN4args& args);
v4::OPEN_CONFIRM4res open_confirm(Compound& compound, v4::OPEN_CONFIRM4args& args);
v4::OPEN_DOWNGRADE4res open_downgrade_in_turn(Compound& compound, v4::OPEN_DOWNGRADE4args& args);
v4::CLOSE4res close_in_turn(Compound& compound, v4::CLOSE4args& args);
Task<v4::LOCK4res> lock_in_turn(Compound& compound, v4::LOCK4args& args);
v4::LOCKU4res locku_in_turn(Compound& compound, v4::LOCKU4args& args);

// Sessions.
v4::EXCHANGE_ID4res exchange_id(Compound& compound, v4::EXCHANGE_ID4args& args);
v4::CREATE_SESSION4res create_session(Compound& compound, v4::CREATE_SESSION4args& args);
v4::BIND_CONN_TO_SESSION4res bind_conn_to_session(Compound& compound,
                                                  v4::BIND_CONN_TO_SESSION4args& args);
v4::BACKCHANNEL_CTL4res backchannel_ctl(Compound& compound, v4::BACKCHANNEL_CTL4args& args);
v4::DESTROY_SESSION4res destroy_session(Compound& compound, v4::DESTROY_SESSION4args& args);
Task<v4::DESTROY_CLIENTID4res> destroy_clientid(Compound& compound,
                                                v4::DESTROY_CLIENTID4args& args);
Task<v4::RECLAIM_COMPLETE4res> reclaim_complete(Compound& compound,
                                                v4::RECLAIM_COMPLETE4args& args);

}  // namespace stag::nfs::nfs4
