#include "nfs/server/v3/procedures.h"
#include "nfs/ulb/nfs3.h"

namespace stag::nfs::nfs3 {

namespace {

// A procedure as a handler of the program.
template <class P, auto procedure>
void add(rpc::Program& program, const ServerContext& server) {
  program.add<P>([&server](rpc::CallContext& call, typename P::Args args) {
    return procedure(Request(server, call, P::number), std::move(args));
  });
}

// One whose arguments name the object it is about by `handle`, and that can mostly answer at once.
template <class P, auto procedure, auto handle>
void add_prompt(rpc::Program& program, const ServerContext& server,
                Request::Security security = Request::Security::Checked) {
  program.add<P>([&server, security](rpc::CallContext& call, typename P::Args&& args) {
    return procedure(call.keep<Running<P>>(server, call, std::move(args), handle, security));
  });
}

void add_object_procedures(rpc::Program& program, const ServerContext& server) {
  add_prompt<v3::NFSPROC3_GETATTR, getattr, &v3::GETATTR3args::object>(program, server,
                                                                       Request::Security::Mounting);
  add<v3::NFSPROC3_SETATTR, setattr>(program, server);
  add<v3::NFSPROC3_ACCESS, access>(program, server);
  add<v3::NFSPROC3_READLINK, readlink>(program, server);
  add_prompt<v3::NFSPROC3_READ, read, &v3::READ3args::file>(program, server);
  add_prompt<v3::NFSPROC3_WRITE, write, &v3::WRITE3args::file>(program, server);
  add<v3::NFSPROC3_COMMIT, commit>(program, server);
  add<v3::NFSPROC3_FSSTAT, fsstat>(program, server);
  add<v3::NFSPROC3_FSINFO, fsinfo>(program, server);
  add<v3::NFSPROC3_PATHCONF, pathconf>(program, server);
}

void add_directory_procedures(rpc::Program& program, const ServerContext& server) {
  add<v3::NFSPROC3_LOOKUP, lookup>(program, server);
  add<v3::NFSPROC3_CREATE, create>(program, server);
  add<v3::NFSPROC3_MKDIR, mkdir>(program, server);
  add<v3::NFSPROC3_SYMLINK, symlink>(program, server);
  add<v3::NFSPROC3_MKNOD, mknod>(program, server);
  add<v3::NFSPROC3_REMOVE, remove>(program, server);
  add<v3::NFSPROC3_RMDIR, rmdir>(program, server);
  add<v3::NFSPROC3_RENAME, rename>(program, server);
  add<v3::NFSPROC3_LINK, link>(program, server);
  add<v3::NFSPROC3_READDIR, readdir>(program, server);
  add<v3::NFSPROC3_READDIRPLUS, readdirplus>(program, server);
}

}  // namespace

rpc::Program program(const ServerContext& server) {
  rpc::Program nfs(v3::NFS_PROGRAM, v3::NFS_V3, ulb::nfs3());
  add_object_procedures(nfs, server);
  add_directory_procedures(nfs, server);
  return nfs;
}

}  // namespace stag::nfs::nfs3
