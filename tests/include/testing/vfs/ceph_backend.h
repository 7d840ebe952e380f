// vfs/ceph under test: a store on a directory of its own in the cluster that $STAG_CEPH_CONF leads
// to, which tests/ceph/run starts.
#pragma once

#include <unistd.h>

#include <cstdlib>

#include "testing/vfs/fixture.h"
#include "vfs/ceph/ceph.h"

namespace stag::vfs::testing {

// Null where there is no cluster to test with.
inline const char* ceph_configuration() {
  return std::getenv("STAG_CEPH_CONF");
}

class CephBackend final : public Backend {
 public:
  explicit CephBackend(bool durable_names) {
    options_.configuration = ceph_configuration();
    options_.durable_names = durable_names;
    options_.open_files = 8;
    make_directory();
    fs_ = opened(options_);
  }
  FileSystem& fs() override { return *fs_; }
  Properties properties() const override {
    Properties properties;
    properties.clones = false;
    properties.copies = false;
    properties.knows_holes = false;
    properties.large_directory = 3'000;
    return properties;
  }
  void restart() override {
    fs_.reset();
    fs_ = opened(options_);
  }
  // Another gateway to the same directory.
  std::unique_ptr<CephFileSystem> another() const { return opened(options_); }

 private:
  static std::unique_ptr<CephFileSystem> opened(const CephFileSystem::Options& options) {
    auto found = CephFileSystem::open(options);
    if (!found) ADD_FAILURE() << found.error();
    STAG_CHECK(found.ok());
    return *std::move(found);
  }
  // Processes share the cluster.
  void make_directory() {
    static int count = 0;
    const std::string name = std::to_string(::getpid()) + "-" + std::to_string(++count);
    const auto top = opened(options_);
    InlineLoop loop;
    const Credentials root{0, 0, {}};
    const CallerContext caller{loop, root};
    const auto made = finish(loop, top->mkdir(caller, top->root(), name, mode_of(01777)));
    STAG_CHECK(made.ok());
    options_.root = "/" + name;
  }

  CephFileSystem::Options options_;
  std::unique_ptr<CephFileSystem> fs_;
};

}  // namespace stag::vfs::testing
