// Many entries, many clients.
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "testing/nfs/faulty_store.h"
#include "testing/nfs/server_fixture.h"
#include "testing/vfs/awaited.h"

namespace stag::nfs {
namespace {

using namespace v3;

class NfsServerCrowd : public testing::NfsServerTest {};

TEST_F(NfsServerCrowd, lists_100000_entries_completely_while_others_come_and_go) {
  const vfs::Credentials who{0, 0, {}};
  const nfs_fh3 dir = mkdir(root(), "large");
  const vfs::Handle inside =
      (**loop_.run(testing::awaited(store_->lookup({loop_, who}, store_->root(), "large"))))
          .node.handle;
  for (int i = 0; i < 100'000; ++i)
    ASSERT_TRUE(loop_
                    .run(testing::awaited(
                        store_->create({loop_, who}, inside, "f" + std::to_string(i), {})))
                    ->ok());

  std::set<std::string> lasting;
  READDIRPLUS3args args{dir, 0, {}, 1 << 20, 65536};
  int page = 0;
  for (bool eof = false; !eof; ++page) {
    const auto res = call<NFSPROC3_READDIRPLUS>(args);
    ASSERT_EQ(res.status, NFS3_OK);
    for (const entryplus3& entry : res.resok().reply.entries) {
      args.cookie = entry.cookie;
      const bool repeated = entry.name[0] == 'f' && !lasting.insert(entry.name).second;
      EXPECT_FALSE(repeated) << entry.name;
    }
    args.cookieverf = res.resok().cookieverf;
    eof = res.resok().reply.eof;
    create(dir, "new" + std::to_string(page));
    if (page == 0) continue;
    ASSERT_EQ(call<NFSPROC3_REMOVE>({{dir, "new" + std::to_string(page - 1)}}).status, NFS3_OK);
  }
  EXPECT_EQ(lasting.size(), 100'000u);
  EXPECT_GT(page, 100);
}

// Notes whose share of its workers is taken.
class Sharing final : public testing::FaultyStore {
 public:
  using FaultyStore::FaultyStore;
  vfs::Operation<vfs::Attributes> attributes(vfs::CallerContext who,
                                             const vfs::Handle& object) override {
    clients.push_back(who.client);
    return FaultyStore::attributes(who, object);
  }
  std::vector<const void*> clients;
};

TEST_F(NfsServerCrowd, shares_the_workers_of_a_store_by_connection) {
  const auto store = std::make_shared<Sharing>(store_);
  ASSERT_TRUE(nfs_.add_export("/sharing", store, {}).ok());
  const nfs_fh3 dir = mounted("/sharing");
  testing::LoopbackChannel other(loop_, server_);
  rpc::Client another(other, ulb::nfs3(), credentials_);
  store->clients.clear();
  call<NFSPROC3_GETATTR>({dir});
  call<NFSPROC3_GETATTR>({dir});
  ASSERT_TRUE(loop_.run(another.call<NFSPROC3_GETATTR>({dir})).has_value());
  ASSERT_EQ(store->clients.size(), 3u);
  EXPECT_NE(store->clients[0], nullptr);
  EXPECT_EQ(store->clients[0], store->clients[1]);
  EXPECT_NE(store->clients[0], store->clients[2]);
}

// One client on a loop and thread of its own: makes, writes, moves and removes in a directory that
// all share.
void work(rpc::Server& server, const nfs_fh3& dir, int number, int rounds) {
  testing::ManualLoop loop;
  testing::LoopbackChannel channel(loop, server, {"192.0.2." + std::to_string(number), 700});
  const auto credentials = rpc::Credentials::sys("crowd", 0, 0);
  rpc::Client nfs(channel, ulb::nfs3(), credentials);
  rpc::Client mount(channel, ulb::mount3(), credentials);
  const std::string name = "client" + std::to_string(number);
  for (int i = 0; i < rounds; ++i) {
    ASSERT_TRUE(loop.run(mount.call<mount3::MOUNTPROC3_MNT>("/data"))->ok());
    CREATE3args create;
    create.where = {dir, name};
    create.how.mode = GUARDED;
    create.how.obj_attributes() = {};
    const auto made = loop.run(nfs.call<NFSPROC3_CREATE>(create));
    ASSERT_EQ((**made).status, NFS3_OK);
    const nfs_fh3 file = (**made).resok().obj.handle();
    const Rope data = Rope::copy_of(bytes_of(name));
    const auto size = static_cast<std::uint32_t>(data.size());
    const auto written = loop.run(nfs.call<NFSPROC3_WRITE>({file, 0, size, UNSTABLE, data}));
    ASSERT_EQ((**written).status, NFS3_OK);
    const auto read = loop.run(nfs.call<NFSPROC3_READ>({file, 0, 100}));
    ASSERT_EQ((**read).resok().data, data);
    ASSERT_EQ((**loop.run(nfs.call<NFSPROC3_RENAME>({{dir, name}, {dir, name + "b"}}))).status,
              NFS3_OK);
    ASSERT_EQ((**loop.run(nfs.call<NFSPROC3_READDIRPLUS>({dir, 0, {}, 8192, 8192}))).status,
              NFS3_OK);
    ASSERT_EQ((**loop.run(nfs.call<NFSPROC3_REMOVE>({{dir, name + "b"}}))).status, NFS3_OK);
    ASSERT_TRUE(loop.run(mount.call<mount3::MOUNTPROC3_UMNTALL>({}))->ok());
  }
}

TEST_F(NfsServerCrowd, serves_clients_on_several_threads_at_once) {
  const nfs_fh3 dir = mkdir(root(), "shared");
  std::vector<std::thread> threads;
  for (int number = 1; number <= 4; ++number)
    threads.emplace_back([&, number] { work(server_, dir, number, 200); });
  for (std::thread& thread : threads) thread.join();
  const auto left = call<NFSPROC3_READDIR>({dir, 0, {}, 4096});
  EXPECT_EQ(left.resok().reply.entries.size(), 2u);
}

}  // namespace
}  // namespace stag::nfs
