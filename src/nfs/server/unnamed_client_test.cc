// Calls of NFSv3 by a client whose name is being looked up.
#include <functional>
#include <vector>

#include "rpc/connection.h"
#include "testing/held_executor.h"
#include "testing/nfs/one_name.h"
#include "testing/nfs/server_fixture.h"

namespace stag::nfs {
namespace {

class NfsUnnamedClient : public testing::NfsServerTest {
 protected:
  NfsUnnamedClient() : top_(root()), file_(create(top_, "file")) {
    ExportOptions open;
    open.root_squash = false;
    STAG_CHECK(
        nfs_.replace_exports({{"/data", store_, open, {testing::rule_by_name(open, worker_)}}})
            .ok());
    channel_.origin().peer = {"192.0.2.1", 700};
    channel_.origin().connection = std::make_shared<rpc::Connection>();
  }
  using Status = std::optional<v3::nfsstat3>;
  using Started = std::function<Status()>;
  template <class P>
  Started begin(const typename P::Args& args) {
    return [results = start<P>(args)] { return *results ? Status((*results)->status) : Status(); };
  }
  std::vector<Started> begin_all() {
    using namespace v3;
    CREATE3args to_create;
    to_create.where = {top_, "new"};
    return {
        begin<NFSPROC3_GETATTR>({file_}),
        begin<NFSPROC3_READ>({file_, 0, 10}),
        begin<NFSPROC3_WRITE>({file_, 0, 4, FILE_SYNC, Rope::copy_of(bytes_of("text"))}),
        begin<NFSPROC3_SETATTR>({file_, mode(0600), {}}),
        begin<NFSPROC3_ACCESS>({file_, ACCESS3_READ}),
        begin<NFSPROC3_COMMIT>({file_, 0, 0}),
        begin<NFSPROC3_LOOKUP>({{top_, "file"}}),
        begin<NFSPROC3_CREATE>(to_create),
        begin<NFSPROC3_MKDIR>({{top_, "dir"}, mode(0700)}),
        begin<NFSPROC3_SYMLINK>({{top_, "symlink"}, {mode(0777), "file"}}),
        begin<NFSPROC3_LINK>({file_, {top_, "link"}}),
        begin<NFSPROC3_RENAME>({{top_, "link"}, {top_, "link2"}}),
        begin<NFSPROC3_REMOVE>({{top_, "link2"}}),
        begin<NFSPROC3_RMDIR>({{top_, "dir"}}),
        begin<NFSPROC3_READDIR>({top_, 0, {}, 4096}),
        begin<NFSPROC3_READDIRPLUS>({top_, 0, {}, 4096, 4096}),
        begin<NFSPROC3_FSSTAT>({top_}),
        begin<NFSPROC3_FSINFO>({top_}),
        begin<NFSPROC3_PATHCONF>({top_}),
    };
  }
  static void expect(const std::vector<Started>& calls, Status status) {
    for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i](), status) << i;
  }

  std::shared_ptr<testing::HeldExecutor> worker_ = std::make_shared<testing::HeldExecutor>();
  v3::nfs_fh3 top_, file_;
};

TEST_F(NfsUnnamedClient, waits_for_a_name_that_comes_soon) {
  const std::vector<Started> calls = begin_all();
  loop_.pass(std::chrono::milliseconds(10));
  expect(calls, {});
  EXPECT_EQ(worker_->held.size(), 1u);
  worker_->run_all();
  loop_.pass(std::chrono::milliseconds(10));
  expect(calls, v3::NFS3_OK);
}

TEST_F(NfsUnnamedClient, is_told_to_come_back_when_a_second_has_brought_no_name) {
  const std::vector<Started> calls = begin_all();
  loop_.pass(std::chrono::milliseconds(999));
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_FALSE(calls[i]()) << i;
  loop_.pass(std::chrono::milliseconds(1));
  expect(calls, v3::NFS3ERR_JUKEBOX);
  EXPECT_EQ(server_.active_calls(), 0u);
  worker_->give_all_back();
}

TEST_F(NfsUnnamedClient, has_a_bounded_number_of_calls_wait) {
  std::vector<Started> calls;
  for (int i = 0; i < 65; ++i) calls.push_back(begin<v3::NFSPROC3_GETATTR>({file_}));
  EXPECT_EQ(calls.back()(), v3::NFS3ERR_JUKEBOX);
  calls.pop_back();
  expect(calls, {});
  worker_->run_all();
  loop_.pass(std::chrono::milliseconds(10));
  expect(calls, v3::NFS3_OK);
  channel_.origin().peer.host = "192.0.2.2";
  EXPECT_FALSE(begin<v3::NFSPROC3_GETATTR>({file_})()) << "their places are free";
  worker_->give_all_back();
  loop_.pass(std::chrono::seconds(1));
}

}  // namespace
}  // namespace stag::nfs
