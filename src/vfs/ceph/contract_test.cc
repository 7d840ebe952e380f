#include "testing/vfs/contract.h"

#include <map>
#include <string>

#include "testing/vfs/ceph_backend.h"

namespace stag::vfs::testing {
namespace {

BackendFactory ceph_with(const char* name, bool durable_names) {
  return {name, [durable_names] { return std::make_unique<CephBackend>(durable_names); }};
}

std::vector<BackendFactory> ceph_stores() {
  if (ceph_configuration() == nullptr) return {};
  return {ceph_with("ceph", false), ceph_with("durable", true)};
}

TEST(CephContract, is_kept_on_a_cluster) {
  if (ceph_configuration() == nullptr)
    GTEST_SKIP() << "there is no cluster here: tests/ceph/run starts one";
  EXPECT_FALSE(ceph_stores().empty());
}

class FileIds final : public DirectorySink {
 public:
  bool entry(const DirectoryEntry& entry) override {
    of.emplace(entry.name, entry.file_id);
    return true;
  }
  std::map<std::string, std::uint64_t> of;
};

TEST(CephSnapshots, have_one_file_id_for_an_object_wherever_it_is_told) {
  if (ceph_configuration() == nullptr) GTEST_SKIP() << "there is no cluster here";
  CephBackend backend(false);
  FileSystem& fs = backend.fs();
  InlineLoop loop;
  const Credentials root{0, 0, {}};
  const CallerContext as{loop, root};
  const auto found = [&](const Handle& directory, std::string_view name) {
    return finish(loop, fs.lookup(as, directory, name))->node;
  };
  ASSERT_TRUE(finish(loop, fs.mkdir(as, fs.root(), "inner", mode_of(0755))).ok());
  const Node snapshots = found(fs.root(), ".snap");
  EXPECT_NE(snapshots.attributes.file_id, finish(loop, fs.attributes(as, fs.root()))->file_id);
  ASSERT_TRUE(finish(loop, fs.mkdir(as, snapshots.handle, "one", mode_of(0755))).ok());
  const Node one = found(snapshots.handle, "one");
  for (const bool with_nodes : {false, true}) {
    FileIds listed;
    ListFrom from;
    from.with_nodes = with_nodes;
    ASSERT_TRUE(finish(loop, fs.list(as, one.handle, from, listed)).ok());
    EXPECT_EQ(listed.of.at("."), one.attributes.file_id);
    EXPECT_EQ(listed.of.at("inner"), found(one.handle, "inner").attributes.file_id);
  }
  EXPECT_NE(found(one.handle, "inner").attributes.file_id,
            found(fs.root(), "inner").attributes.file_id);
}

}  // namespace

STAG_VFS_CONTRACT_MAY_BE_IDLE();
STAG_VFS_CONTRACT(Ceph, ::testing::ValuesIn(ceph_stores()));

}  // namespace stag::vfs::testing
