// What versions 2 and 3 change, while it is in progress: clients of version 4 get no share
// reservation and no delegation that it breaks.
#include <vector>

#include "nfs/export/server_context.h"
#include "nfs/proto/nfs2.h"
#include "nfs/proto/nfsacl.h"
#include "testing/nfs/server_fixture.h"
#include "testing/nfs/state_world.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs {
namespace {

using vfs::testing::Called;
using vfs::testing::Point;

class NfsChangesInProgress : public testing::NfsServerTest {
 protected:
  NfsChangesInProgress() {
    ExportOptions open;
    open.root_squash = false;
    EXPECT_TRUE(
        nfs_.add_export("/slow", std::make_shared<vfs::testing::SteppedStore>(store_, held_), open)
            .ok());
    nfs_.context().gate->guard(world_.files, [](state::ClientId) {});
    top_ = mounted("/slow");
    file_ = create(top_, "file");
    const auto opened = nfs_.context().handles.open(file_.data.bytes());
    key_ = {nfs_.exports()->find(opened->export_id)->store, opened->object};
  }
  ~NfsChangesInProgress() override {
    end_all();
    nfs_.context().gate->open();
  }
  static bool changes(Called called) {
    return called == Called::Write || called == Called::SetAttributes || called == Called::Link ||
           called == Called::SetAcls;
  }
  void end_all() {
    held_->release_all();
    loop_.drain();
  }
  state::Status deny_writing() {
    const state::OpenResult opened = world_.files.open(
        {key_, bytes_of("owner"), state::kShareRead, state::kShareWrite, false}, client_.life);
    if (opened.verdict.granted()) world_.files.close(key_, opened.stateid, *client_.life);
    return opened.verdict.status;
  }
  state::Status delegate() {
    const auto made = world_.files.delegate({key_, state::DelegationType::Read, {}}, client_.life);
    if (made.status == state::Status::Ok)
      world_.files.return_delegation(key_, made.stateid, *client_.life);
    return made.status;
  }
  template <class P>
  void expect_seen(const typename P::Args& args, state::Status denial = state::Status::Delay) {
    holds_ = true;
    const auto results = this->start<P>(args);
    holds_ = false;
    ASSERT_EQ(held_->waiting.size(), 1u) << P::name;
    EXPECT_EQ(deny_writing(), denial) << P::name;
    EXPECT_EQ(delegate(), state::Status::Denied) << P::name;
    end_all();
    EXPECT_TRUE(results->has_value()) << P::name;
    EXPECT_EQ(deny_writing(), state::Status::Ok) << P::name;
    EXPECT_EQ(delegate(), state::Status::Ok) << P::name;
  }

  bool holds_ = false;
  const std::shared_ptr<vfs::testing::HeldSteps> held_ =
      std::make_shared<vfs::testing::HeldSteps>([this](Point point) {
        return holds_ && point.when == Point::When::Begin && changes(point.operation);
      });
  state::testing::World world_;
  const state::testing::Client client_ = world_.client("client");
  v3::nfs_fh3 top_, file_;
  state::FileKey key_;
};

TEST_F(NfsChangesInProgress, keep_others_from_denying_and_from_delegations_in_version_3) {
  v3::SETATTR3args size{file_, {}, {}};
  size.new_attributes.size.set_it = true;
  size.new_attributes.size.size() = 3;
  expect_seen<v3::NFSPROC3_WRITE>({file_, 0, 4, v3::FILE_SYNC, Rope::copy_of(bytes_of("NEW!"))});
  expect_seen<v3::NFSPROC3_SETATTR>(size);
  // What a share reservation is not about (RFC 8881 9.7).
  expect_seen<v3::NFSPROC3_SETATTR>({file_, mode(0600), {}}, state::Status::Ok);
  expect_seen<v3::NFSPROC3_LINK>({file_, {top_, "link"}}, state::Status::Ok);
  using namespace nfsacl;
  const std::vector<aclent> list{
      {ACL_USER_OBJ, 0, 6}, {ACL_GROUP_OBJ, 0, 4}, {ACL_CLASS_OBJ, 0, 4}, {ACL_OTHER_OBJ, 0, 0}};
  expect_seen<ACLPROC3_SETACL>({file_.data, {NFS_ACL | NFS_ACLCNT, 4, list, 0, {}}},
                               state::Status::Ok);
}

TEST_F(NfsChangesInProgress, keep_others_from_denying_and_from_delegations_in_version_2) {
  const v2::fhandle top = call<mount3::MOUNTPROC1_MNT>("/slow").directory();
  const v2::fhandle file = call<v2::NFSPROC_LOOKUP>({top, "file"}).diropok().file;
  constexpr std::uint32_t kLeave = 0xffffffff;
  const v2::sattr size{kLeave, kLeave, kLeave, 3, {kLeave, kLeave}, {kLeave, kLeave}};
  expect_seen<v2::NFSPROC_WRITE>({file, 0, 0, 0, Rope::copy_of(bytes_of("NEW!"))});
  expect_seen<v2::NFSPROC_SETATTR>({file, size});
  expect_seen<v2::NFSPROC_LINK>({file, {top, "link"}}, state::Status::Ok);
}

TEST_F(NfsChangesInProgress, are_seen_too_where_something_else_is_guarded) {
  const state::OpenResult other = world_.open(client_, 5, state::kShareRead, state::kShareWrite);
  ASSERT_TRUE(other.verdict.granted());
  expect_seen<v3::NFSPROC3_WRITE>({file_, 0, 4, v3::FILE_SYNC, Rope::copy_of(bytes_of("NEW!"))});
}

TEST_F(NfsChangesInProgress, wait_for_who_has_stopped_them) {
  {
    const state::StoppedChanges stopped = world_.files.stop_changes(key_);
    const auto written =
        start<v3::NFSPROC3_WRITE>({file_, 0, 4, v3::FILE_SYNC, Rope::copy_of(bytes_of("NEW!"))});
    EXPECT_FALSE(written->has_value());
    loop_.pass(std::chrono::seconds(2));
    ASSERT_TRUE(written->has_value());
    EXPECT_EQ((*written)->status, v3::NFS3ERR_JUKEBOX) << "that takes too long";
  }
  std::optional<state::StoppedChanges> stopped = world_.files.stop_changes(key_);
  const auto written =
      start<v3::NFSPROC3_WRITE>({file_, 0, 4, v3::FILE_SYNC, Rope::copy_of(bytes_of("NEW!"))});
  EXPECT_FALSE(written->has_value());
  stopped.reset();
  loop_.pass(std::chrono::milliseconds(500));
  ASSERT_TRUE(written->has_value());
  EXPECT_EQ((*written)->status, v3::NFS3_OK);
}

TEST_F(NfsChangesInProgress, are_in_nobodys_way_who_denies_nothing) {
  holds_ = true;
  start<v3::NFSPROC3_WRITE>({file_, 0, 4, v3::FILE_SYNC, Rope::copy_of(bytes_of("NEW!"))});
  EXPECT_TRUE(
      world_.files.open({key_, bytes_of("owner"), state::kShareRead, 0, false}, client_.life)
          .verdict.granted());
}

}  // namespace
}  // namespace stag::nfs
