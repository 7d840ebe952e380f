// A store that takes its time: Calls under way together, and what becomes of them when their export
// or their connection goes meanwhile.
#include <gtest/gtest.h>

#include "fabric/sim/sim_fabric.h"
#include "nfs/export/server_context.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "testing/nfs/server_fixture.h"
#include "testing/vfs/awaited.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs {
namespace {

using namespace v3;
using vfs::testing::Called;
using vfs::testing::HeldSteps;
using vfs::testing::LaterSteps;
using vfs::testing::Point;
using vfs::testing::SteppedStore;

ExportOptions everybody_as_is() {
  ExportOptions open;
  open.root_squash = false;
  return open;
}

class NfsServerSlowStore : public testing::NfsServerTest {
 protected:
  NfsServerSlowStore() {
    const nfs_fh3 dir = root();
    for (const char* name : {"a", "b", "c"})
      write(create(dir, name), 0, std::string("text of ") + name);
    EXPECT_TRUE(nfs_.add_export("/slow", slow_, everybody_as_is()).ok());
    dir_ = handle_in("/slow", slow_->root());
    for (const char* name : {"a", "b", "c"})
      files_.push_back(call<NFSPROC3_LOOKUP>({{dir, name}}).resok().object);
    for (nfs_fh3& file : files_) file = handle_in("/slow", opened(file));
  }
  ~NfsServerSlowStore() override { held_->release_all(); }

  vfs::Handle opened(const nfs_fh3& handle) const {
    return nfs_.context().handles.open(handle.data.bytes())->object;
  }
  nfs_fh3 handle_in(std::string_view path, const vfs::Handle& object) const {
    nfs_fh3 handle;
    for (const Export& served : nfs_.exports()->all())
      if (served.path() == path)
        STAG_CHECK(handle.data.assign(nfs_.context().handles.seal(served.id, object).bytes()));
    return handle;
  }
  void release(std::size_t index) {
    held_->release(index);
    loop_.drain();
  }

  std::shared_ptr<HeldSteps> held_ = std::make_shared<HeldSteps>();
  std::shared_ptr<SteppedStore> slow_ = std::make_shared<SteppedStore>(store_, held_);
  nfs_fh3 dir_;
  std::vector<nfs_fh3> files_;
};

TEST_F(NfsServerSlowStore, answers_calls_under_way_together_each_with_its_own_in_any_order) {
  const auto a = start<NFSPROC3_READ>({files_[0], 0, 100});
  const auto b = start<NFSPROC3_READ>({files_[1], 0, 100});
  const auto attributes = start<NFSPROC3_GETATTR>({files_[2]});
  const auto listing = start<NFSPROC3_READDIR>({dir_, 0, {}, 4096});
  ASSERT_EQ(held_->waiting.size(), 4u);
  release(3);
  ASSERT_TRUE(listing->has_value());
  EXPECT_EQ((*listing)->resok().reply.entries.size(), 5u);
  EXPECT_FALSE(a->has_value() || b->has_value() || attributes->has_value());
  release(1);
  ASSERT_TRUE(b->has_value());
  EXPECT_EQ(text((*b)->resok().data), "text of b");
  release(1);
  ASSERT_TRUE(attributes->has_value());
  EXPECT_EQ((*attributes)->resok().obj_attributes.size, 9u);
  EXPECT_FALSE(a->has_value());
  release(0);
  ASSERT_TRUE(a->has_value());
  EXPECT_EQ(text((*a)->resok().data), "text of a");
}

TEST_F(NfsServerSlowStore, does_not_hinder_calls_to_another_export) {
  const auto waiting = start<NFSPROC3_READ>({files_[0], 0, 100});
  EXPECT_EQ(write(create(root(), "quick"), 0, "x").status, NFS3_OK);
  EXPECT_FALSE(waiting->has_value());
}

TEST_F(NfsServerSlowStore, a_file_that_goes_under_a_call_that_waits_is_stale) {
  const auto reading = start<NFSPROC3_READ>({files_[0], 0, 100});
  ASSERT_EQ(call<NFSPROC3_REMOVE>({{root(), "a"}}).status, NFS3_OK);
  release(0);
  // What goes with the error is asked for, too, and waits, too.
  EXPECT_FALSE(reading->has_value());
  release(0);
  ASSERT_TRUE(reading->has_value());
  EXPECT_EQ((*reading)->status, NFS3ERR_STALE);
  EXPECT_FALSE((*reading)->resfail().file_attributes.attributes_follow);
}

// RFC 1813 3.3.7: data that was lost while it was written must not look safe under the verifier of
// what came after.
TEST_F(NfsServerSlowStore, a_write_has_the_verifier_of_when_it_began_and_a_commit_that_of_its_end) {
  const auto before = slow_->write_verifier_epoch();
  const auto written =
      start<NFSPROC3_WRITE>({files_[0], 0, 1, UNSTABLE, Rope::copy_of(bytes_of("x"))});
  const auto committed = start<NFSPROC3_COMMIT>({files_[0], 0, 0});
  slow_->lost = before + 1;
  while (!held_->waiting.empty()) release(0);
  ASSERT_TRUE(written->has_value() && committed->has_value());
  EXPECT_NE((*written)->resok().verf, (*committed)->resok().verf);
  EXPECT_EQ(load_be<std::uint64_t>((*committed)->resok().verf.data()),
            nfs_.context().write_verifier(*slow_));
}

TEST_F(NfsServerSlowStore, calls_of_an_export_that_goes_meanwhile_end_as_they_began) {
  const auto reading = start<NFSPROC3_READ>({files_[0], 0, 100});
  const auto making = start<NFSPROC3_MKDIR>({{dir_, "d"}, {}});
  ASSERT_TRUE(nfs_.replace_exports({{"/data", store_, everybody_as_is()}}).ok());
  const auto later = start<NFSPROC3_READ>({files_[1], 0, 100});
  ASSERT_TRUE(later->has_value()) << "the store is not asked";
  EXPECT_EQ((*later)->status, NFS3ERR_STALE);
  while (!held_->waiting.empty()) release(0);
  ASSERT_TRUE(reading->has_value() && making->has_value());
  EXPECT_EQ(text((*reading)->resok().data), "text of a");
  ASSERT_EQ((*making)->status, NFS3_OK);
  EXPECT_EQ(call<NFSPROC3_GETATTR>({(*making)->resok().obj.handle()}).status, NFS3ERR_STALE);
}

TEST_F(NfsServerSlowStore, a_replaced_store_lives_as_long_as_the_calls_that_it_has) {
  const std::weak_ptr<SteppedStore> alive = slow_;
  const auto reading = start<NFSPROC3_READ>({files_[0], 0, 100});
  const auto another = std::make_shared<vfs::MemoryFileSystem>();
  ASSERT_TRUE(nfs_.replace_exports({{"/slow", another, everybody_as_is()}}).ok());
  slow_.reset();
  EXPECT_FALSE(alive.expired());
  release(0);
  ASSERT_TRUE(reading->has_value());
  EXPECT_EQ(text((*reading)->resok().data), "text of a");
  EXPECT_EQ(call<NFSPROC3_GETATTR>({mounted("/slow")}).status, NFS3_OK);
  EXPECT_TRUE(alive.expired()) << "the next Call takes the new exports";
  EXPECT_EQ(call<NFSPROC3_GETATTR>({files_[0]}).status, NFS3ERR_STALE);
}

// The disk of another export that is removed could not be unmounted.
TEST_F(NfsServerSlowStore, a_call_that_waits_keeps_no_other_store) {
  auto disk = std::make_shared<vfs::MemoryFileSystem>();
  const std::weak_ptr<vfs::FileSystem> removed = disk;
  ASSERT_TRUE(nfs_.add_export("/disk", std::move(disk), everybody_as_is()).ok());
  ASSERT_EQ(call<NFSPROC3_GETATTR>({mounted("/disk")}).status, NFS3_OK);
  const auto reading = start<NFSPROC3_READ>({files_[0], 0, 100});
  ASSERT_TRUE(nfs_.replace_exports({{"/slow", slow_, everybody_as_is()}}).ok());
  EXPECT_TRUE(removed.expired());
  release(0);
  EXPECT_EQ(text((*reading)->resok().data), "text of a");
}

TEST_F(NfsServerSlowStore, options_that_change_hold_for_the_calls_that_come_then) {
  const auto making = start<NFSPROC3_MKDIR>({{dir_, "d"}, {}});
  ExportOptions read_only = everybody_as_is();
  read_only.read_only = true;
  ASSERT_TRUE(nfs_.replace_exports({{"/slow", slow_, read_only}}).ok());
  const auto later = start<NFSPROC3_MKDIR>({{dir_, "e"}, {}});
  while (!held_->waiting.empty()) release(0);
  EXPECT_EQ((*making)->status, NFS3_OK);
  EXPECT_EQ((*later)->status, NFS3ERR_ROFS);
}

// Everything that answers later than at once answers the same.
TEST_F(NfsServerSlowStore, every_procedure_waits_for_it) {
  const auto later =
      std::make_shared<SteppedStore>(store_, std::make_shared<LaterSteps>(std::vector{3, 0, 1}));
  ASSERT_TRUE(nfs_.add_export("/later", later, everybody_as_is()).ok());
  const nfs_fh3 dir = mkdir(mounted("/later"), "work");
  const nfs_fh3 file = create(dir, "file");
  EXPECT_EQ(write(file, 0, "12345").resok().count, 5u);
  EXPECT_EQ(call<NFSPROC3_COMMIT>({file, 0, 0}).status, NFS3_OK);
  EXPECT_EQ(text(call<NFSPROC3_READ>({file, 1, 3}).resok().data), "234");
  EXPECT_EQ(call<NFSPROC3_SETATTR>({file, mode(0600), {}}).status, NFS3_OK);
  EXPECT_EQ(call<NFSPROC3_GETATTR>({file}).resok().obj_attributes.mode, 0600u);
  EXPECT_EQ(call<NFSPROC3_ACCESS>({file, ACCESS3_READ}).resok().access, ACCESS3_READ);
  EXPECT_EQ(call<NFSPROC3_SYMLINK>({{dir, "s"}, {{}, "t"}}).status, NFS3_OK);
  const nfs_fh3 link = call<NFSPROC3_LOOKUP>({{dir, "s"}}).resok().object;
  EXPECT_EQ(call<NFSPROC3_READLINK>({link}).resok().data, "t");
  EXPECT_EQ(call<NFSPROC3_LINK>({file, {dir, "again"}}).status, NFS3_OK);
  EXPECT_EQ(call<NFSPROC3_RENAME>({{dir, "again"}, {dir, "s"}}).status, NFS3_OK);
  EXPECT_EQ(call<NFSPROC3_READDIRPLUS>({dir, 0, {}, 4096, 8192}).resok().reply.entries.size(), 4u);
  EXPECT_EQ(call<NFSPROC3_REMOVE>({{dir, "s"}}).status, NFS3_OK);
  EXPECT_EQ(call<NFSPROC3_REMOVE>({{dir, "file"}}).status, NFS3_OK);
  EXPECT_EQ(call<NFSPROC3_RMDIR>({{mounted("/later"), "work"}}).status, NFS3_OK);
  EXPECT_EQ(call<NFSPROC3_FSSTAT>({mounted("/later")}).status, NFS3_OK);
  EXPECT_EQ(call<NFSPROC3_FSINFO>({mounted("/later")}).status, NFS3_OK);
  EXPECT_EQ(call<NFSPROC3_PATHCONF>({mounted("/later")}).status, NFS3_OK);
}

// A client over RPC-over-RDMA whose connection is lost while the store works for it.
class NfsServerLostConnection : public ::testing::Test {
 protected:
  NfsServerLostConnection() {
    STAG_CHECK(nfs_.add_export("/slow", slow_, everybody_as_is()).ok());
    nfs_.add_nfs(programs_);
    const auto at = server_.listen(network_, {"server", 20049});
    STAG_CHECK(at.ok());
    rpc::rdma::ChannelOptions options;
    options.seed = 1;
    channel_.emplace(network_, *at, options);
    STAG_CHECK(loop_.run(channel_->connect({})).ok());
    const Export& served = nfs_.exports()->all().front();
    STAG_CHECK(root_.data.assign(nfs_.context().handles.seal(served.id, slow_->root()).bytes()));
  }
  ~NfsServerLostConnection() override {
    held_->release_all();
    loop_.run(closed(*channel_));
    loop_.run(closed(server_));
  }

  template <class T>
  static Task<Ok> closed(T& object) {
    co_await object.close();
    co_return Ok{};
  }
  template <class P>
  std::shared_ptr<std::optional<rpc::CallResult<typename P::Results>>> start(
      const typename P::Args& args) {
    auto result = std::make_shared<std::optional<rpc::CallResult<typename P::Results>>>();
    detach(keep<P>(rpc::Client(*channel_, ulb::nfs3(), credentials_), args, result));
    return result;
  }
  template <class P>
  static Task<void> keep(rpc::Client client, typename P::Args args,
                         std::shared_ptr<std::optional<rpc::CallResult<typename P::Results>>> to) {
    to->emplace(co_await client.template call<P>(args));
  }
  bool run_until_held(std::size_t operations) {
    return loop_.run_until([&] { return held_->waiting.size() == operations; });
  }

  fabric::SimLoop loop_;
  fabric::SimFabric network_{loop_};
  std::shared_ptr<HeldSteps> held_ = std::make_shared<HeldSteps>([](Point point) {
    return point.operation == Called::Mkdir && point.when == Point::When::Begin;
  });
  std::shared_ptr<SteppedStore> slow_ =
      std::make_shared<SteppedStore>(std::make_shared<vfs::MemoryFileSystem>(), held_);
  NfsServer nfs_{ServerState::ephemeral(1)};
  rpc::Server programs_;
  rpc::rdma::Server server_{programs_};
  std::optional<rpc::rdma::Channel> channel_;
  const rpc::Credentials credentials_ = rpc::Credentials::sys("tests", 0, 0);
  nfs_fh3 root_;
};

TEST_F(NfsServerLostConnection, lets_the_repeated_call_wait_for_the_first_and_answers_it) {
  const auto made = start<NFSPROC3_MKDIR>({{root_, "d"}, {}});
  ASSERT_TRUE(run_until_held(1));
  network_.lose_connections();
  loop_.run_for(std::chrono::seconds(5));
  EXPECT_FALSE(made->has_value());
  EXPECT_EQ(held_->waiting.size(), 1u) << "the store is asked once";
  held_->release(0);
  ASSERT_TRUE(loop_.run_until([&] { return made->has_value(); }));
  ASSERT_TRUE((*made)->ok());
  EXPECT_EQ((**made)->status, NFS3_OK) << "not EXIST";
}

TEST_F(NfsServerLostConnection, does_not_stop_the_calls_that_it_carried) {
  const auto made = start<NFSPROC3_MKDIR>({{root_, "d"}, {}});
  ASSERT_TRUE(run_until_held(1));
  loop_.run(closed(*channel_));
  ASSERT_TRUE(loop_.run_until([&] { return made->has_value(); }));
  EXPECT_FALSE((*made)->ok());
  loop_.run_for(std::chrono::seconds(5));
  EXPECT_EQ(network_.open_connections(), 0u);
  held_->release(0);
  loop_.run_for(std::chrono::seconds(1));
  EXPECT_EQ(programs_.active_calls(), 0u);
  const vfs::Credentials who{0, 0, {}};
  const vfs::Handle top = slow_->root();
  const auto found = loop_.run(testing::awaited(slow_->lookup({loop_, who}, top, "d")));
  EXPECT_TRUE(found.ok());
}

}  // namespace
}  // namespace stag::nfs
