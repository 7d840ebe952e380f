// What clients of version 4 deny to others, versions 2 and 3 are denied, too.
#include <gtest/gtest.h>

#include "nfs/export/server_context.h"
#include "nfs/proto/nfs2.h"
#include "testing/nfs/server_fixture.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs {
namespace {

class NfsGate : public testing::NfsServerTest {
 protected:
  NfsGate() {
    file_ = create(root(), "file");
    const auto opened = nfs_.context().handles.open(file_.data.bytes());
    key_ = {nfs_.exports()->find(opened->export_id)->store, opened->object};
    guard([this](state::ClientId client) { end(client); });
  }
  ~NfsGate() override { nfs_.context().gate->open(); }
  void guard(state::Gate::EndLapsed end_lapsed) {
    nfs_.context().gate->guard(world_.files, std::move(end_lapsed));
  }
  void end(state::ClientId client) {
    const state::LifePtr ended = world_.clients.end(client, true);
    if (ended != nullptr) world_.files.release(*ended);
  }
  state::OpenResult open_denying(std::uint32_t deny) {
    return world_.files.open({key_, bytes_of("owner"), state::kShareRead, deny, false},
                             client_.life);
  }
  void let_lapse() {
    world_.now += 2 * state::testing::World::lease;
    world_.clients.expire(world_.now);
  }
  v3::nfsstat3 read() { return call<v3::NFSPROC3_READ>({file_, 0, 10}).status; }
  v3::nfsstat3 set_size() {
    v3::SETATTR3args args{file_, {}, {}};
    args.new_attributes.size.set_it = true;
    args.new_attributes.size.size() = 3;
    return call<v3::NFSPROC3_SETATTR>(args).status;
  }
  v3::nfsstat3 create_with_size(const std::string& name, std::optional<std::uint64_t> size) {
    v3::CREATE3args args;
    args.where = {root(), name};
    args.how.mode = v3::UNCHECKED;
    args.how.obj_attributes().size.set_it = size.has_value();
    if (size) args.how.obj_attributes().size.size() = *size;
    return call<v3::NFSPROC3_CREATE>(args).status;
  }
  v3::nfsstat3 set_mode() { return call<v3::NFSPROC3_SETATTR>({file_, mode(0600), {}}).status; }

  state::testing::World world_;
  const state::testing::Client client_ = world_.client("client");
  v3::nfs_fh3 file_;
  state::FileKey key_;
};

TEST_F(NfsGate, an_open_that_denies_nothing_refuses_nothing) {
  ASSERT_TRUE(open_denying(0).verdict.granted());
  EXPECT_EQ(read(), v3::NFS3_OK);
  EXPECT_EQ(write(file_, 0, "text").status, v3::NFS3_OK);
}

TEST_F(NfsGate, who_denies_reading_denies_it_to_version_3) {
  const state::OpenResult opened = open_denying(state::kShareRead);
  EXPECT_EQ(read(), v3::NFS3ERR_ACCES);
  EXPECT_EQ(write(file_, 0, "text").status, v3::NFS3_OK);
  world_.files.close(key_, opened.stateid, *client_.life);
  EXPECT_EQ(read(), v3::NFS3_OK);
}

TEST_F(NfsGate, who_denies_writing_denies_WRITE_and_a_change_of_size_to_version_3) {
  open_denying(state::kShareWrite);
  EXPECT_EQ(read(), v3::NFS3_OK);
  EXPECT_EQ(write(file_, 0, "text").status, v3::NFS3ERR_ACCES);
  EXPECT_EQ(set_size(), v3::NFS3ERR_ACCES);
  EXPECT_EQ(set_mode(), v3::NFS3_OK);
}

TEST_F(NfsGate, who_denies_writing_denies_CREATE_that_cuts_the_file) {
  open_denying(state::kShareWrite);
  EXPECT_EQ(create_with_size("file", 0), v3::NFS3ERR_ACCES);
  EXPECT_EQ(create_with_size("file", std::nullopt), v3::NFS3_OK) << "it is only opened";
  EXPECT_EQ(create_with_size("new", 0), v3::NFS3_OK);
  let_lapse();
  EXPECT_EQ(create_with_size("file", 0), v3::NFS3_OK);
}

TEST_F(NfsGate, other_files_are_not_concerned) {
  open_denying(state::kShareBoth);
  const auto other = create(root(), "other");
  EXPECT_EQ(write(other, 0, "text").status, v3::NFS3_OK);
}

TEST_F(NfsGate, binds_version_2_as_well) {
  const auto mount2 = call<mount3::MOUNTPROC1_MNT>("/data");
  const auto found = call<v2::NFSPROC_LOOKUP>({mount2.directory(), "file"});
  ASSERT_EQ(found.status, v2::NFS_OK);
  const v2::fhandle file = found.diropok().file;
  open_denying(state::kShareBoth);
  EXPECT_EQ(call<v2::NFSPROC_READ>({file, 0, 10, 0}).status, v2::NFSERR_ACCES);
  EXPECT_EQ(call<v2::NFSPROC_WRITE>({file, 0, 0, 0, Rope::copy_of(bytes_of("text"))}).status,
            v2::NFSERR_ACCES);
  constexpr std::uint32_t kLeave = 0xffffffff;
  const v2::sattr size{kLeave, kLeave, kLeave, 3, {kLeave, kLeave}, {kLeave, kLeave}};
  EXPECT_EQ(call<v2::NFSPROC_SETATTR>({file, size}).status, v2::NFSERR_ACCES);
  EXPECT_EQ(call<v2::NFSPROC_CREATE>({{mount2.directory(), "file"}, size}).status,
            v2::NFSERR_ACCES);
}

TEST_F(NfsGate, a_client_that_lapsed_makes_way) {
  open_denying(state::kShareBoth);
  let_lapse();
  EXPECT_EQ(read(), v3::NFS3_OK);
  EXPECT_TRUE(client_.life->ended());
}

TEST_F(NfsGate, waits_while_the_end_of_a_lapsed_client_is_written) {
  open_denying(state::kShareBoth);
  let_lapse();
  int asked = 0;
  guard([&](state::ClientId client) {
    if (++asked == 5) end(client);
  });
  EXPECT_EQ(read(), v3::NFS3_OK);
  EXPECT_EQ(asked, 5);
}

TEST_F(NfsGate, asks_for_patience_after_a_second_in_which_nobody_made_way) {
  open_denying(state::kShareBoth);
  let_lapse();
  guard([](state::ClientId) {});
  const TimePoint begin = loop_.now();
  EXPECT_EQ(read(), v3::NFS3ERR_JUKEBOX);
  EXPECT_LE(loop_.now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(write(file_, 0, "text").status, v3::NFS3ERR_JUKEBOX);
}

}  // namespace
}  // namespace stag::nfs
