#include <gtest/gtest.h>

#include <vector>

#include "testing/nfs/server_fixture.h"

namespace stag::nfs {
namespace {

using namespace v3;

class Nfs3Data : public testing::NfsServerTest {
 protected:
  READ3res read(const nfs_fh3& file, std::uint64_t offset, std::uint32_t count) {
    return call<NFSPROC3_READ>({file, offset, count});
  }
  static Rope pattern(std::size_t size) {
    Block block = Block::allocate(size);
    for (std::size_t i = 0; i < size; ++i) block.data()[i] = static_cast<std::byte>(i * 7 >> 3);
    return Rope(std::move(block).freeze(size));
  }
};
class Nfs3Commit : public Nfs3Data {};
class Nfs3Read : public Nfs3Data {};
class Nfs3Write : public Nfs3Data {};

TEST_F(Nfs3Read, returns_data_as_written) {
  const nfs_fh3 file = create(root(), "file");
  const auto written = write(file, 0, "hello world", UNSTABLE);
  ASSERT_EQ(written.status, NFS3_OK);
  EXPECT_EQ(written.resok().count, 11u);
  ASSERT_TRUE(written.resok().file_wcc.before.attributes_follow);
  EXPECT_EQ(written.resok().file_wcc.before.attributes().size, 0u);
  EXPECT_EQ(written.resok().file_wcc.after.attributes().size, 11u);
  const auto res = read(file, 6, 100);
  ASSERT_EQ(res.status, NFS3_OK);
  EXPECT_EQ(text(res.resok().data), "world");
  EXPECT_EQ(res.resok().count, 5u);
  EXPECT_TRUE(res.resok().eof);
  EXPECT_EQ(res.resok().file_attributes.attributes().size, 11u);
}

TEST_F(Nfs3Read, ends_where_the_file_ends) {
  const nfs_fh3 file = create(root(), "file");
  EXPECT_TRUE(read(file, 0, 0).resok().eof);
  ASSERT_EQ(write(file, 0, "0123456789").status, NFS3_OK);
  EXPECT_FALSE(read(file, 0, 9).resok().eof);
  EXPECT_TRUE(read(file, 0, 10).resok().eof);
  for (const std::uint64_t offset : {std::uint64_t{10}, std::uint64_t{11}, ~std::uint64_t{0}}) {
    const auto res = read(file, offset, 100);
    ASSERT_EQ(res.status, NFS3_OK) << offset;
    EXPECT_EQ(res.resok().count, 0u);
    EXPECT_TRUE(res.resok().eof);
  }
}

TEST_F(Nfs3Data, travels_by_chunk_both_ways) {
  PROVES("R8267-4-a", "R8267-4-c");
  channel_.reduce = true;
  const nfs_fh3 file = create(root(), "file");
  const Rope data = pattern(100'003);
  const auto written = call<NFSPROC3_WRITE>({file, 5, 100'003, FILE_SYNC, data});
  ASSERT_EQ(written.status, NFS3_OK);
  EXPECT_LT(channel_.last_call.size(), 1000u);
  EXPECT_EQ(written.resok().count, 100'003u);
  const auto res = read(file, 5, 100'003);
  ASSERT_EQ(res.status, NFS3_OK);
  EXPECT_EQ(res.resok().data, data);
}

TEST_F(Nfs3Read, returns_the_bytes_of_the_store_without_a_copy) {
  const nfs_fh3 file = create(root(), "file");
  ASSERT_EQ(call<NFSPROC3_WRITE>({file, 0, 65536, FILE_SYNC, pattern(65536)}).status, NFS3_OK);
  read(file, 0, 65536);
  ASSERT_EQ(channel_.last_reply.items().size(), 1u);
  const Rope first = channel_.last_reply.items()[0].bytes;
  read(file, 0, 65536);
  const Rope second = channel_.last_reply.items()[0].bytes;
  // Both replies refer to the same memory: nothing was copied on the way out of the store.
  EXPECT_EQ(first.pieces()[0].data(), second.pieces()[0].data());
}

TEST_F(Nfs3Read, returns_at_most_rtmax_bytes) {
  const nfs_fh3 file = create(root(), "file");
  sattr3 larger;
  larger.size.set_it = true;
  larger.size.size() = 3 << 20;
  ASSERT_EQ(call<NFSPROC3_SETATTR>({file, larger, {}}).status, NFS3_OK);
  const auto res = read(file, 0, 0xffffffff);
  ASSERT_EQ(res.status, NFS3_OK);
  EXPECT_EQ(res.resok().count, 1u << 20);
  EXPECT_FALSE(res.resok().eof);
}

TEST_F(Nfs3Write, writes_at_most_wtmax_bytes) {
  const nfs_fh3 file = create(root(), "file");
  const std::uint32_t more = (1 << 20) + 4096;
  const auto res = call<NFSPROC3_WRITE>({file, 0, more, UNSTABLE, pattern(more)});
  ASSERT_EQ(res.status, NFS3_OK);
  EXPECT_EQ(res.resok().count, 1u << 20);
  EXPECT_EQ(res.resok().file_wcc.after.attributes().size, 1u << 20);
}

// Received bytes that note when nobody needs them any more.
class Received final : public Storage {
 public:
  explicit Received(std::uint32_t size) : bytes_(size, std::byte{'r'}) {}
  // Once.
  Rope rope() { return Rope(Buffer(this, bytes_)); }
  bool released() const { return released_; }

 private:
  void release() noexcept override { released_ = true; }
  std::vector<std::byte> bytes_;
  bool released_ = false;
};

TEST_F(Nfs3Write, keeps_no_received_bytes_beyond_wtmax) {
  channel_.reduce = true;
  const nfs_fh3 file = create(root(), "file");
  const std::uint32_t more = (1 << 20) + 4096;
  Received received(more);
  const auto res = call<NFSPROC3_WRITE>({file, 0, more, UNSTABLE, received.rope()});
  ASSERT_EQ(res.status, NFS3_OK);
  EXPECT_EQ(res.resok().count, 1u << 20);
  EXPECT_TRUE(received.released());
}

TEST_F(Nfs3Write, refuses_data_that_is_not_as_long_as_its_count) {
  const nfs_fh3 file = create(root(), "file");
  EXPECT_EQ(call<NFSPROC3_WRITE>({file, 0, 5, FILE_SYNC, pattern(4)}).status, NFS3ERR_INVAL);
  EXPECT_EQ(call<NFSPROC3_WRITE>({file, 0, 3, FILE_SYNC, pattern(4)}).status, NFS3ERR_INVAL);
  EXPECT_TRUE(read(file, 0, 10).resok().data.empty());
}

TEST_F(Nfs3Write, changes_nothing_with_no_bytes) {
  const nfs_fh3 file = create(root(), "file");
  const auto before = call<NFSPROC3_GETATTR>({file}).resok().obj_attributes;
  const auto res = write(file, 100, "");
  ASSERT_EQ(res.status, NFS3_OK);
  EXPECT_EQ(res.resok().count, 0u);
  EXPECT_EQ(call<NFSPROC3_GETATTR>({file}).resok().obj_attributes, before);
}

TEST_F(Nfs3Data, is_only_in_regular_files) {
  const auto refused = read(root(), 0, 10);
  EXPECT_EQ(refused.status, NFS3ERR_INVAL);
  EXPECT_TRUE(refused.resfail().file_attributes.attributes_follow);
  EXPECT_EQ(write(root(), 0, "x").status, NFS3ERR_INVAL);
}

TEST_F(Nfs3Write, refuses_data_beyond_the_largest_file_size) {
  const nfs_fh3 file = create(root(), "file");
  const auto res = write(file, ~std::uint64_t{0} - 1, "xyz");
  EXPECT_EQ(res.status, NFS3ERR_FBIG);
  EXPECT_TRUE(res.resfail().file_wcc.after.attributes_follow);
}

TEST_F(Nfs3Data, follows_the_permissions_of_the_mode) {
  const nfs_fh3 file = create(root(), "file", 0600);
  as(1000, 1000);
  EXPECT_EQ(read(file, 0, 10).status, NFS3ERR_ACCES);
  EXPECT_EQ(write(file, 0, "x").status, NFS3ERR_ACCES);
}

TEST_F(Nfs3Write, is_committed_at_least_as_durably_as_asked) {
  const nfs_fh3 file = create(root(), "file");
  for (const stable_how asked : {UNSTABLE, DATA_SYNC, FILE_SYNC}) {
    const auto res = write(file, 0, "x", asked);
    ASSERT_EQ(res.status, NFS3_OK);
    EXPECT_GE(res.resok().committed, asked);
  }
}

TEST_F(Nfs3Commit, returns_the_write_verifier_of_the_WRITEs) {
  const nfs_fh3 file = create(root(), "file");
  const auto written = write(file, 0, "x", UNSTABLE);
  const auto committed = call<NFSPROC3_COMMIT>({file, 0, 0});
  ASSERT_EQ(committed.status, NFS3_OK);
  EXPECT_EQ(committed.resok().verf, written.resok().verf);
  EXPECT_TRUE(committed.resok().file_wcc.after.attributes_follow);
  EXPECT_EQ(call<NFSPROC3_COMMIT>({nfs_fh3{}, 0, 0}).status, NFS3ERR_BADHANDLE);
}

// A restart: the same key and store, another start.
TEST_F(Nfs3Data, survives_a_restart_under_its_handle_and_another_verifier) {
  const nfs_fh3 file = create(root(), "file");
  const auto before = write(file, 0, "kept", UNSTABLE).resok().verf;
  ServerState restarted = ServerState::ephemeral(7);
  restarted.boot_verifier += 1;
  NfsServer second(restarted);
  ASSERT_TRUE(second.add_export("/data", store_, {}).ok());
  rpc::Server server;
  second.add_programs(server);
  testing::LoopbackChannel channel(loop_, server);
  rpc::Client client(channel, ulb::nfs3(), credentials_);
  const auto read = loop_.run(client.call<NFSPROC3_READ>({file, 0, 10}));
  ASSERT_TRUE(read.has_value() && read->ok());
  EXPECT_EQ(text((**read).resok().data), "kept");
  const auto committed = loop_.run(client.call<NFSPROC3_COMMIT>({file, 0, 0}));
  ASSERT_TRUE(committed.has_value() && committed->ok());
  EXPECT_NE((**committed).resok().verf, before);
}

}  // namespace
}  // namespace stag::nfs
