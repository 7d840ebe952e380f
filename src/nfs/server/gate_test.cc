// What clients of version 4 deny to others, versions 2 and 3 are denied, too.
#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "nfs/export/server_context.h"
#include "nfs/proto/nfs2.h"
#include "nfs/proto/nfsacl.h"
#include "rpc/connection.h"
#include "testing/nfs/server_fixture.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs {
namespace {

class NfsGate : public testing::NfsServerTest {
 protected:
  static constexpr Duration kMakesWayWithin = std::chrono::seconds(100);
  NfsGate() {
    file_ = create(root(), "file");
    key_ = key_of(file_);
    guard([this](state::ClientId client) { end(client); });
  }
  ~NfsGate() override { nfs_.context().gate->open(); }
  state::FileKey key_of(const v3::nfs_fh3& file) {
    const auto opened = nfs_.context().handles.open(file.data.bytes());
    return {nfs_.exports()->find(opened->export_id)->store, opened->object};
  }
  void guard(state::Gate::EndLapsed end_lapsed) {
    nfs_.context().gate->guard(world_.files, std::move(end_lapsed), {}, kMakesWayWithin);
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

TEST_F(NfsGate, a_share_that_denies_reading_denies_READ_of_version_3) {
  const state::OpenResult opened = open_denying(state::kShareRead);
  EXPECT_EQ(read(), v3::NFS3ERR_ACCES);
  EXPECT_EQ(write(file_, 0, "text").status, v3::NFS3_OK);
  world_.files.close(key_, opened.stateid, *client_.life);
  EXPECT_EQ(read(), v3::NFS3_OK);
}

TEST_F(NfsGate, a_share_that_denies_writing_denies_WRITE_and_a_change_of_size_by_version_3) {
  open_denying(state::kShareWrite);
  EXPECT_EQ(read(), v3::NFS3_OK);
  EXPECT_EQ(write(file_, 0, "text").status, v3::NFS3ERR_ACCES);
  EXPECT_EQ(set_size(), v3::NFS3ERR_ACCES);
  EXPECT_EQ(set_mode(), v3::NFS3_OK);
}

TEST_F(NfsGate, a_share_that_denies_writing_denies_a_CREATE_that_truncates) {
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

TEST_F(NfsGate, a_client_that_lapsed_is_not_ended_by_who_may_not_touch_its_file) {
  ASSERT_EQ(set_mode(), v3::NFS3_OK);
  open_denying(state::kShareBoth);
  let_lapse();
  as(4242, 4242);
  EXPECT_EQ(read(), v3::NFS3ERR_ACCES);
  EXPECT_EQ(write(file_, 0, "text").status, v3::NFS3ERR_ACCES);
  EXPECT_EQ(set_size(), v3::NFS3ERR_ACCES);
  EXPECT_EQ(create_with_size("file", 0), v3::NFS3ERR_ACCES);
  EXPECT_FALSE(client_.life->ended());
  as(0, 0);
  EXPECT_EQ(read(), v3::NFS3_OK);
  EXPECT_TRUE(client_.life->ended()) << "somebody wanted it";
}

// RFC 8881 10.4: what conflicts with a delegation waits until it is given back.
class NfsGateDelegations : public NfsGate {
 protected:
  NfsGateDelegations() {
    world_.files.on_recall([this](const state::Recall& recall) {
      recalled_.push_back(recall.stateid);
      if (gives_back_) give_back(recall.file, recall.stateid);
    });
  }
  void give_back(const state::FileKey& file, const state::Stateid& stateid) {
    EXPECT_EQ(world_.files.return_delegation(file, stateid, *client_.life), state::Status::Ok);
  }
  state::Stateid delegate(const v3::nfs_fh3& file,
                          state::DelegationType type = state::DelegationType::Read) {
    const auto made = world_.files.delegate({key_of(file), type, {}}, client_.life);
    EXPECT_EQ(made.status, state::Status::Ok);
    return made.stateid;
  }
  v3::nfsstat3 rename(const std::string& from, const std::string& to) {
    return call<v3::NFSPROC3_RENAME>({{root(), from}, {root(), to}}).status;
  }
  static nfsacl::secattr acls() {
    using namespace nfsacl;
    const std::vector<aclent> list{
        {ACL_USER_OBJ, 0, 6}, {ACL_GROUP_OBJ, 0, 4}, {ACL_CLASS_OBJ, 0, 4}, {ACL_OTHER_OBJ, 0, 0}};
    return {NFS_ACL | NFS_ACLCNT, 4, list, 0, {}};
  }
  v3::nfsstat3 set_acl(const v3::nfs_fh3& file) {
    return static_cast<v3::nfsstat3>(call<nfsacl::ACLPROC3_SETACL>({file.data, acls()}).status);
  }
  v3::nfsstat3 set_times(const v3::nfs_fh3& file) {
    v3::SETATTR3args args{file, {}, {}};
    args.new_attributes.mtime.set_it = v3::SET_TO_SERVER_TIME;
    return call<v3::NFSPROC3_SETATTR>(args).status;
  }

  template <class Status>
  using Changes = std::vector<std::pair<const char*, std::function<Status()>>>;
  // Each of them is refused with `later` and recalls the delegation of `file` once, and is done
  // after that was given back.
  template <class Status>
  void expect_recalls(const Changes<Status>& changes, const v3::nfs_fh3& file, Status later) {
    for (const auto& [name, change] : changes) {
      recalled_.clear();
      const state::Stateid delegation = delegate(file);
      EXPECT_EQ(change(), later) << name;
      EXPECT_EQ(recalled_, std::vector{delegation}) << name;
      give_back(key_of(file), delegation);
      EXPECT_EQ(change(), Status{}) << name;
    }
  }

  std::vector<state::Stateid> recalled_;
  bool gives_back_ = false;
};

TEST_F(NfsGateDelegations, are_recalled_by_a_change_of_attributes_by_version_3) {
  expect_recalls<v3::nfsstat3>(
      {
          {"SETATTR of the mode", [&] { return set_mode(); }},
          {"SETATTR of a time", [&] { return set_times(file_); }},
          {"SETATTR of the size", [&] { return set_size(); }},
          {"SETACL", [&] { return set_acl(file_); }},
          {"LINK",
           [&] {
             return call<v3::NFSPROC3_LINK>({file_, {root(), "link"}}).status;
           }},
      },
      file_, v3::NFS3ERR_JUKEBOX);
}

TEST_F(NfsGateDelegations, are_recalled_by_whatever_takes_a_name_away_by_version_3) {
  create(root(), "other");
  expect_recalls<v3::nfsstat3>({{"RENAME of it", [&] { return rename("file", "new"); }},
                                {"RENAME over it", [&] { return rename("other", "new"); }}},
                               file_, v3::NFS3ERR_JUKEBOX);
  const v3::nfs_fh3 removed = create(root(), "removed");
  expect_recalls<v3::nfsstat3>({{"REMOVE",
                                 [&] {
                                   return call<v3::NFSPROC3_REMOVE>({{root(), "removed"}}).status;
                                 }}},
                               removed, v3::NFS3ERR_JUKEBOX);
}

// The root of the export is sticky.
TEST_F(NfsGateDelegations, are_not_recalled_by_who_may_not_touch_the_file) {
  ASSERT_EQ(set_mode(), v3::NFS3_OK);
  const v3::nfs_fh3 folder = mkdir(root(), "folder", 0755);
  as(4242, 4242);
  create(root(), "his");
  delegate(file_, state::DelegationType::Write);
  const TimePoint begin = loop_.now();
  EXPECT_EQ(read(), v3::NFS3ERR_ACCES);
  EXPECT_EQ(write(file_, 0, "text").status, v3::NFS3ERR_ACCES);
  EXPECT_EQ(set_size(), v3::NFS3ERR_ACCES);
  EXPECT_EQ(set_mode(), v3::NFS3ERR_PERM);
  EXPECT_EQ(set_times(file_), v3::NFS3ERR_ACCES);
  EXPECT_EQ(set_acl(file_), v3::NFS3ERR_PERM);
  EXPECT_EQ(create_with_size("file", 0), v3::NFS3ERR_ACCES);
  EXPECT_EQ(call<v3::NFSPROC3_LINK>({file_, {folder, "link"}}).status, v3::NFS3ERR_ACCES);
  EXPECT_EQ(call<v3::NFSPROC3_REMOVE>({{root(), "file"}}).status, v3::NFS3ERR_PERM);
  EXPECT_EQ(rename("file", "new"), v3::NFS3ERR_PERM);
  EXPECT_EQ(rename("his", "file"), v3::NFS3ERR_PERM);
  EXPECT_EQ(call<v3::NFSPROC3_SETATTR>({file_, {}, {}}).status, v3::NFS3_OK) << "of nothing";
  EXPECT_TRUE(recalled_.empty());
  EXPECT_EQ(loop_.now(), begin) << "nobody waits";
}

TEST_F(NfsGateDelegations, are_nothing_to_names_and_files_that_nobody_holds) {
  delegate(file_);
  const v3::nfs_fh3 other = create(root(), "other");
  EXPECT_EQ(set_times(other), v3::NFS3_OK);
  EXPECT_EQ(rename("other", "more"), v3::NFS3_OK);
  EXPECT_EQ(rename("not there", "nowhere"), v3::NFS3ERR_NOENT);
  EXPECT_EQ(call<v3::NFSPROC3_REMOVE>({{root(), "not there"}}).status, v3::NFS3ERR_NOENT);
  EXPECT_EQ(call<v3::NFSPROC3_REMOVE>({{root(), "more"}}).status, v3::NFS3_OK);
}

TEST_F(NfsGateDelegations, refuse_nothing_when_they_are_given_back_in_time) {
  gives_back_ = true;
  for (const char* name : {"new", "file"}) {
    delegate(file_);
    EXPECT_EQ(rename(name == std::string("new") ? "file" : "new", name), v3::NFS3_OK);
  }
  delegate(file_);
  EXPECT_EQ(call<v3::NFSPROC3_REMOVE>({{root(), "file"}}).status, v3::NFS3_OK);
  EXPECT_EQ(recalled_.size(), 3u);
}

// RFC 1094 has no status for "later": who does not make way within a second is waited for, as long
// as the connection is there that the answer goes to.
class NfsGateVersion2 : public NfsGateDelegations {
 protected:
  NfsGateVersion2() {
    connect();
    top_ = call<mount3::MOUNTPROC1_MNT>("/data").directory();
    file2_ = call<v2::NFSPROC_LOOKUP>({top_, "file"}).diropok().file;
  }
  void connect() { channel_.origin().connection = std::make_shared<rpc::Connection>(); }
  static v2::sattr mode2(std::uint32_t bits) {
    constexpr std::uint32_t kLeave = 0xffffffff;
    return {bits, kLeave, kLeave, kLeave, {kLeave, kLeave}, {kLeave, kLeave}};
  }
  auto start_to_set_mode() { return start<v2::NFSPROC_SETATTR>({file2_, mode2(0600)}); }
  template <class P>
  typename P::Results expect_to_wait(const typename P::Args& args) {
    const state::Stateid delegation = delegate(file_);
    const auto results = start<P>(args);
    loop_.pass(kMakesWayWithin - std::chrono::seconds(1));
    EXPECT_FALSE(results->has_value()) << "procedure " << P::number;
    give_back(key_, delegation);
    loop_.pass(std::chrono::milliseconds(200));
    EXPECT_TRUE(results->has_value()) << "procedure " << P::number;
    return results->value_or(typename P::Results{});
  }

  v2::fhandle top_, file2_;
};

TEST_F(NfsGateVersion2, waits_until_delegations_are_given_back) {
  EXPECT_EQ(expect_to_wait<v2::NFSPROC_SETATTR>({file2_, mode2(0600)}).status, v2::NFS_OK);
  EXPECT_EQ(
      expect_to_wait<v2::NFSPROC_WRITE>({file2_, 0, 0, 0, Rope::copy_of(bytes_of("text"))}).status,
      v2::NFS_OK);
  EXPECT_EQ(expect_to_wait<v2::NFSPROC_LINK>({file2_, {top_, "link"}}), v2::NFS_OK);
  EXPECT_EQ(expect_to_wait<v2::NFSPROC_RENAME>({{top_, "file"}, {top_, "new"}}), v2::NFS_OK);
  EXPECT_EQ(expect_to_wait<v2::NFSPROC_REMOVE>({top_, "link"}), v2::NFS_OK);
  EXPECT_EQ(expect_to_wait<nfsacl::ACLPROC2_SETACL>({file2_, acls()}).status, v2::NFS_OK);
}

// Its statuses are those of NFSv3, but Linux's client hands JUKEBOX to the program.
TEST_F(NfsGateVersion2, waits_as_version_3_of_NFSACL_does) {
  EXPECT_EQ(expect_to_wait<nfsacl::ACLPROC3_SETACL>({file_.data, acls()}).status, v3::NFS3_OK);
  delegate(file_);
  const auto setting = start<nfsacl::ACLPROC3_SETACL>({file_.data, acls()});
  loop_.pass(std::chrono::seconds(10));
  channel_.origin().connection->end();
  loop_.drain();
  EXPECT_EQ(server_.active_calls(), 0u);
  EXPECT_FALSE(setting->has_value()) << "sent again, it runs";
}

TEST_F(NfsGateVersion2, waits_no_longer_than_anybody_may_be_in_the_way) {
  const state::Stateid delegation = delegate(file_);
  const TimePoint begin = loop_.now();
  EXPECT_EQ(call<v2::NFSPROC_SETATTR>({file2_, mode2(0600)}).status, v2::NFSERR_IO);
  EXPECT_GE(loop_.now() - begin, kMakesWayWithin);
  EXPECT_LE(loop_.now() - begin, kMakesWayWithin + std::chrono::seconds(2));
  EXPECT_EQ(recalled_, std::vector{delegation});
}

TEST_F(NfsGateVersion2, has_few_calls_of_a_connection_wait_and_does_the_others) {
  const v3::nfs_fh3 other = create(root(), "other");
  const state::Stateid delegation = delegate(file_);
  std::vector<decltype(start_to_set_mode())> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(start_to_set_mode());
  loop_.pass(std::chrono::seconds(2));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ASSERT_EQ(calls[i]->has_value(), i >= 8) << i;
    if (i >= 8) {
      EXPECT_EQ((*calls[i])->status, v2::NFSERR_IO);
    }
  }
  EXPECT_EQ(call<v2::NFSPROC_LOOKUP>({top_, "other"}).status, v2::NFS_OK);
  EXPECT_EQ(write(other, 0, "text").status, v3::NFS3_OK);
  give_back(key_, delegation);
  loop_.pass(std::chrono::milliseconds(200));
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(calls[i]->has_value()) << i;
    EXPECT_EQ((*calls[i])->status, v2::NFS_OK);
  }
  EXPECT_EQ(expect_to_wait<v2::NFSPROC_SETATTR>({file2_, mode2(0600)}).status, v2::NFS_OK);
}

TEST_F(NfsGateVersion2, waits_for_nothing_when_its_connection_is_gone_and_answers_nothing) {
  const state::Stateid delegation = delegate(file_);
  const auto removing = start<v2::NFSPROC_REMOVE>({top_, "file"});
  loop_.pass(std::chrono::seconds(10));
  EXPECT_EQ(server_.active_calls(), 1u);
  channel_.origin().connection->end();
  loop_.drain();
  EXPECT_EQ(server_.active_calls(), 0u);
  EXPECT_FALSE(removing->has_value()) << "sent again, it runs";
  connect();
  const auto again = start<v2::NFSPROC_REMOVE>({top_, "file"});
  give_back(key_, delegation);
  loop_.pass(std::chrono::seconds(1));
  ASSERT_TRUE(again->has_value());
  EXPECT_EQ(**again, v2::NFS_OK);
}

TEST_F(NfsGateVersion2, keeps_no_server_from_its_end) {
  delegate(file_);
  const auto removing = start<v2::NFSPROC_REMOVE>({top_, "file"});
  loop_.pass(std::chrono::seconds(1));
  EXPECT_EQ(server_.active_calls(), 1u);
  nfs_.context().deferred->end();
  loop_.pass(std::chrono::seconds(1));
  EXPECT_EQ(server_.active_calls(), 0u);
  EXPECT_FALSE(removing->has_value()) << "whoever comes next answers it";
}

TEST_F(NfsGateVersion2, waits_for_the_end_of_a_client_that_lapsed) {
  open_denying(state::kShareBoth);
  let_lapse();
  guard([&](state::ClientId client) {
    if (loop_.now() > TimePoint(std::chrono::hours(1)) + std::chrono::seconds(50)) end(client);
  });
  EXPECT_EQ(call<v2::NFSPROC_READ>({file2_, 0, 10, 0}).status, v2::NFS_OK);
  EXPECT_TRUE(client_.life->ended());
}

// Where nobody could say that it has gone.
TEST_F(NfsGateDelegations, are_recalled_by_version_2_without_a_connection) {
  const auto mount2 = call<mount3::MOUNTPROC1_MNT>("/data");
  const v2::fhandle top = mount2.directory();
  const v2::fhandle file = call<v2::NFSPROC_LOOKUP>({top, "file"}).diropok().file;
  constexpr std::uint32_t kLeave = 0xffffffff;
  const v2::sattr mode{0600, kLeave, kLeave, kLeave, {kLeave, kLeave}, {kLeave, kLeave}};
  create(root(), "other");
  expect_recalls<v2::nfsstat>(
      {
          {"SETATTR",
           [&] {
             return call<v2::NFSPROC_SETATTR>({file, mode}).status;
           }},
          {"LINK",
           [&] {
             return call<v2::NFSPROC_LINK>({file, {top, "link"}});
           }},
          {"RENAME of it",
           [&] {
             return call<v2::NFSPROC_RENAME>({{top, "file"}, {top, "new"}});
           }},
          {"RENAME over it",
           [&] {
             return call<v2::NFSPROC_RENAME>({{top, "other"}, {top, "new"}});
           }},
          {"REMOVE",
           [&] {
             return call<v2::NFSPROC_REMOVE>({top, "link"});
           }},
      },
      file_, v2::NFSERR_IO);
}

}  // namespace
}  // namespace stag::nfs
