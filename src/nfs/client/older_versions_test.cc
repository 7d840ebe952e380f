// Versions 2 and 3 behind the API of all versions: what they do not have.
#include "nfs/client/session/mount.h"
#include "testing/nfs/client_harness.h"

namespace stag::nfs::client {
namespace {

class OlderVersion : public ClientTest, public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  OlderVersion() {
    options_.calls.version = GetParam();
    const auto point = run(mount(channel_, "/data", options_.calls.credentials, {}, GetParam()));
    EXPECT_TRUE(point.ok());
    if (point) mounted_ = std::make_unique<FileSystem>(channel_, point->root, "/data", options_);
  }
  FileSystem& files() { return *mounted_; }

 private:
  std::unique_ptr<FileSystem> mounted_;
};

TEST_P(OlderVersion, says_so_of_operations_that_only_version_4_has) {
  const Handle file = must(files().create(files().root(), "file", {.mode = 0644})).handle;
  std::array<std::byte, 8> bytes{};
  EXPECT_EQ(status(files().seek(file, 0, Content::Data)), Status::NotSupported);
  EXPECT_EQ(status(files().read_plus(file, 0, bytes)), Status::NotSupported);
  EXPECT_EQ(status(files().allocate(file, {0, 1})), Status::NotSupported);
  EXPECT_EQ(status(files().deallocate(file, {0, 1})), Status::NotSupported);
  EXPECT_EQ(status(files().copy_range(file, {0, 1}, file, 1)), Status::NotSupported);
  EXPECT_EQ(status(files().clone_range(file, {0, 1}, file, 1)), Status::NotSupported);
  EXPECT_EQ(status(files().xattr(file, "name")), Status::NotSupported);
  EXPECT_EQ(status(files().set_xattr(file, "name", "value")), Status::NotSupported);
  EXPECT_EQ(status(files().list_xattrs(file)), Status::NotSupported);
  EXPECT_EQ(status(files().remove_xattr(file, "name")), Status::NotSupported);
  EXPECT_EQ(status(files().nfs4_acl(file)), Status::NotSupported);
  EXPECT_EQ(status(files().set_nfs4_acl(file, {})), Status::NotSupported);
  EXPECT_FALSE(files().has_locks());
  EXPECT_EQ(status(files().lock(file, {}, {})), Status::NotSupported);
}

INSTANTIATE_TEST_SUITE_P(Nfs, OlderVersion, ::testing::Values(2u, 3u));

}  // namespace
}  // namespace stag::nfs::client
