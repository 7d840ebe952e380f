// An NFS server on a memory store, called in-process through whole RPC messages.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs3.h"
#include "nfs/server/server.h"
#include "nfs/ulb/nfs2.h"
#include "nfs/ulb/nfs3.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "testing/loopback_channel.h"
#include "testing/manual_loop.h"
#include "testing/proves.h"
#include "vfs/memory/memory.h"

namespace stag::testing {

class NfsServerTest : public ::testing::Test {
 protected:
  // Serves `store` as /data (every user as is) and, with the options given, as /odd.
  explicit NfsServerTest(nfs::ExportOptions odd = {}) {
    nfs::ExportOptions open;
    open.root_squash = false;
    STAG_CHECK(nfs_.add_export("/data", store_, open).ok());
    STAG_CHECK(nfs_.add_export("/odd", store_, odd).ok());
    nfs_.add_programs(server_);
    as(0, 0);
  }

  void as(std::uint32_t uid, std::uint32_t gid, std::initializer_list<std::uint32_t> gids = {}) {
    credentials_ = rpc::Credentials::sys("tests", uid, gid, std::span(gids.begin(), gids.size()));
  }
  void as_nobody_known() { credentials_ = rpc::Credentials(); }

  template <class P>
  typename P::Results call(const typename P::Args& args) {
    auto result = loop_.run(client<P>().template call<P>(args));
    STAG_CHECK(result.has_value());
    if (!*result) {
      ADD_FAILURE() << result->error().message();
      return {};
    }
    return **result;
  }

  // Starts a Call that need not end; the results, once they are there.
  template <class P>
  std::shared_ptr<std::optional<typename P::Results>> start(const typename P::Args& args) {
    auto results = std::make_shared<std::optional<typename P::Results>>();
    detach(keep<P>(client<P>(), args, results));
    loop_.drain();
    return results;
  }

  nfs::v3::nfs_fh3 mounted(const std::string& path) {
    const auto res = call<nfs::mount3::MOUNTPROC3_MNT>(path);
    nfs::v3::nfs_fh3 handle;
    if (res.fhs_status != nfs::mount3::MNT3_OK)
      ADD_FAILURE() << path << ": mount status " << res.fhs_status;
    else
      STAG_CHECK(handle.data.assign(res.mountinfo().fhandle.bytes()));
    return handle;
  }
  nfs::v3::nfs_fh3 root() { return mounted("/data"); }

  static nfs::v3::sattr3 mode(std::uint32_t bits) {
    nfs::v3::sattr3 attributes;
    attributes.mode.set_it = true;
    attributes.mode.mode() = bits;
    return attributes;
  }
  nfs::v3::nfs_fh3 create(const nfs::v3::nfs_fh3& dir, const std::string& name,
                          std::uint32_t bits = 0644) {
    nfs::v3::CREATE3args args;
    args.where = {dir, name};
    args.how.mode = nfs::v3::GUARDED;
    args.how.obj_attributes() = mode(bits);
    const auto res = call<nfs::v3::NFSPROC3_CREATE>(args);
    return made(res.status, res, name);
  }
  nfs::v3::nfs_fh3 mkdir(const nfs::v3::nfs_fh3& dir, const std::string& name,
                         std::uint32_t bits = 0755) {
    const auto res = call<nfs::v3::NFSPROC3_MKDIR>({{dir, name}, mode(bits)});
    return made(res.status, res, name);
  }
  nfs::v3::WRITE3res write(const nfs::v3::nfs_fh3& file, std::uint64_t offset,
                           std::string_view text, nfs::v3::stable_how stable = nfs::v3::FILE_SYNC) {
    return call<nfs::v3::NFSPROC3_WRITE>({file, offset, static_cast<std::uint32_t>(text.size()),
                                          stable, Rope::copy_of(bytes_of(text))});
  }
  static std::string text(const Rope& rope) {
    const Buffer flat = rope.flatten();
    return std::string(text_of(flat.bytes()));
  }

  ManualLoop loop_;
  std::shared_ptr<vfs::MemoryFileSystem> store_ = std::make_shared<vfs::MemoryFileSystem>();
  nfs::NfsServer nfs_{nfs::ServerState::ephemeral(7)};
  rpc::Server server_;
  LoopbackChannel channel_{loop_, server_};
  rpc::Credentials credentials_;

 private:
  template <class P>
  rpc::Client client() {
    return rpc::Client(channel_, binding_of(P::program, P::version), credentials_);
  }
  template <class P>
  static Task<void> keep(rpc::Client client, typename P::Args args,
                         std::shared_ptr<std::optional<typename P::Results>> to) {
    const auto result = co_await client.template call<P>(args);
    if (result) to->emplace(*result);
  }
  static rpc::Binding binding_of(std::uint32_t program, std::uint32_t version) {
    if (program != nfs::v3::NFS_PROGRAM) return nfs::ulb::mount3();
    return version == nfs::v3::NFS_V3 ? nfs::ulb::nfs3() : nfs::ulb::nfs2();
  }
  template <class Res>
  static nfs::v3::nfs_fh3 made(nfs::v3::nfsstat3 status, const Res& res, const std::string& name) {
    if (status == nfs::v3::NFS3_OK && res.resok().obj.handle_follows)
      return res.resok().obj.handle();
    ADD_FAILURE() << "making " << name << ": status " << status;
    return {};
  }
};

}  // namespace stag::testing
