#include "nfs/server/v2/procedures.h"

#include "base/reason.h"
#include "nfs/ulb/nfs2.h"

namespace stag::nfs::nfs2 {

namespace {

template <class P, auto procedure>
Task<Result<typename P::Results, rpc::CallRefusal>> run(const ServerContext& server,
                                                        Cookies& cookies, rpc::CallContext& call,
                                                        typename P::Args args) {
  Deferral deferral;
  typename P::Results results =
      co_await procedure(Request(server, cookies, call, deferral), std::move(args));
  co_return deferral.answer(std::move(results));
}

template <class P, auto procedure>
void add(rpc::Program& program, const ServerContext& server,
         const std::shared_ptr<Cookies>& cookies) {
  program.add<P>([&server, cookies](rpc::CallContext& call, typename P::Args args) {
    return run<P, procedure>(server, *cookies, call, std::move(args));
  });
}

}  // namespace

rpc::Program program(const ServerContext& server) {
  rpc::Program nfs(v2::NFS_PROGRAM, v2::NFS_VERSION, ulb::nfs2());
  const auto cookies = std::make_shared<Cookies>();
  add<v2::NFSPROC_GETATTR, getattr>(nfs, server, cookies);
  add<v2::NFSPROC_SETATTR, setattr>(nfs, server, cookies);
  add<v2::NFSPROC_LOOKUP, lookup>(nfs, server, cookies);
  add<v2::NFSPROC_READLINK, readlink>(nfs, server, cookies);
  add<v2::NFSPROC_READ, read>(nfs, server, cookies);
  add<v2::NFSPROC_WRITE, write>(nfs, server, cookies);
  add<v2::NFSPROC_CREATE, create>(nfs, server, cookies);
  add<v2::NFSPROC_REMOVE, remove>(nfs, server, cookies);
  add<v2::NFSPROC_RENAME, rename>(nfs, server, cookies);
  add<v2::NFSPROC_LINK, link>(nfs, server, cookies);
  add<v2::NFSPROC_SYMLINK, symlink>(nfs, server, cookies);
  add<v2::NFSPROC_MKDIR, mkdir>(nfs, server, cookies);
  add<v2::NFSPROC_RMDIR, rmdir>(nfs, server, cookies);
  add<v2::NFSPROC_READDIR, readdir>(nfs, server, cookies);
  add<v2::NFSPROC_STATFS, statfs>(nfs, server, cookies);
  // RFC 1094 2.2.4, 2.2.8: obsolete, and never used; they do nothing.
  nfs.add<v2::NFSPROC_ROOT>(
      [](rpc::CallContext&, xdr::Void) -> Task<xdr::Void> { co_return xdr::Void{}; });
  nfs.add<v2::NFSPROC_WRITECACHE>(
      [](rpc::CallContext&, xdr::Void) -> Task<xdr::Void> { co_return xdr::Void{}; });
  return nfs;
}

Result<v2::fhandle, v2::nfsstat> Request::handle_of(const ExportObject& relative,
                                                    const vfs::Handle& object) const {
  const auto sealed = server().handles.seal2(relative.export_->id, object);
  if (sealed) return *sealed;
  trace(Reason::NfsHandleTooLong, relative.export_->path());
  return Failure{v2::NFSERR_IO};
}

v2::diropres Request::found(const ExportObject& relative, const vfs::Node& node) const {
  const auto handle = handle_of(relative, node.handle);
  if (!handle) return failed<v2::diropres>(handle.error());
  v2::diropres res;
  res.diropok() = {*handle, to_fattr(node.attributes)};
  return res;
}

}  // namespace stag::nfs::nfs2
