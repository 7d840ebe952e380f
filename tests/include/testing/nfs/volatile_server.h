// A server of NFS version 3 with one file, which keeps unstable data in memory and loses it when it
// restarts.
#pragma once

#include <algorithm>
#include <string>

#include "testing/nfs/client_harness.h"

namespace stag::testing {

struct VolatileServer {
  explicit VolatileServer(nfs::client::FileSystemOptions options = {}) : scripted(options) {
    namespace v3 = nfs::v3;
    scripted.on<v3::NFSPROC3_WRITE>(
        [this](const v3::WRITE3args& args, v3::WRITE3res& res) { write(args, res); });
    scripted.server.add<v3::NFSPROC3_COMMIT>(
        [this](rpc::CallContext&, v3::COMMIT3args args) { return committed(std::move(args)); });
    scripted.on<v3::NFSPROC3_SETATTR>([this](const v3::SETATTR3args& args, v3::SETATTR3res& res) {
      if (args.new_attributes.size.set_it) disk.resize(args.new_attributes.size.size());
      res.resok() = {};
    });
  }

  void write(const nfs::v3::WRITE3args& args, nfs::v3::WRITE3res& res) {
    if (++writes == restart_at_write) restart();
    if (writes == refused_write) {
      res.status = nfs::v3::NFS3ERR_DQUOT;
      res.resfail() = {};
      return;
    }
    if (args.stable == nfs::v3::UNSTABLE) ++unstable;
    const std::uint32_t count = std::min(args.count, most);
    memory.resize(std::max<std::size_t>(memory.size(), args.offset + count));
    args.data.slice(0, count).copy_to(nfs::client::writable(memory).subspan(args.offset, count));
    const nfs::v3::stable_how stable = always_stable ? nfs::v3::FILE_SYNC : args.stable;
    if (stable != nfs::v3::UNSTABLE) disk = memory;
    res.resok().count = count;
    res.resok().committed = stable;
    res.resok().verf = verifier();
  }
  // Later, so that calls overlap.
  Task<nfs::v3::COMMIT3res> committed(nfs::v3::COMMIT3args args) {
    const auto file = nfs::client::Handle::from(args.file.data.bytes());
    const Duration takes = file && *file == hung ? kHangs : std::chrono::milliseconds(1);
    co_await sleep_for(scripted.loop, takes);
    nfs::v3::COMMIT3res res{};
    commit(args, res);
    co_return res;
  }
  void commit(const nfs::v3::COMMIT3args& args, nfs::v3::COMMIT3res& res) {
    ++commits;
    EXPECT_EQ(args.offset, 0u);
    EXPECT_EQ(args.count, 0u);
    if (restarts_before_commit-- > 0) restart();
    if (disk_fails) {
      res.status = nfs::v3::NFS3ERR_IO;
      res.resfail() = {};
      return;
    }
    disk = memory;
    res.resok().verf = verifier();
  }
  void restart() {
    ++starts;
    memory = disk;
  }
  nfs::client::Verifier verifier() const {
    nfs::client::Verifier verifier{};
    verifier[7] = static_cast<std::byte>(starts);
    return verifier;
  }

  static constexpr Duration kHangs = std::chrono::hours(1);

  nfs::client::Scripted scripted;
  std::string disk;    // what survives
  std::string memory;  // what READ would see
  int writes = 0, unstable = 0, commits = 0, starts = 1;
  int restart_at_write = 0, refused_write = 0;
  int restarts_before_commit = 0;  // so many COMMITs find that it has restarted
  std::uint32_t most = 1u << 20;   // bytes that one WRITE takes
  bool disk_fails = false, always_stable = false;
  nfs::client::Handle hung;  // of the file whose COMMITs take so long
};

}  // namespace stag::testing
