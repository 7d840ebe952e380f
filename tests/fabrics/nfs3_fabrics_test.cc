// NFSv3, client and server, on RPC-over-RDMA on every fabric.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "base/task_group.h"
#include "nfs/client/file_system.h"
#include "nfs/server/server.h"
#include "nfs/server/v3/request.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "testing/all_fabrics.h"
#include "testing/pattern.h"
#include "vfs/memory/memory.h"

namespace stag::testing {
namespace {

using namespace nfs::client;

std::vector<std::byte> filled(std::size_t size) {
  std::vector<std::byte> bytes(size);
  fill_pattern(bytes, static_cast<std::uint32_t>(size));
  return bytes;
}

class Nfs3 : public ::testing::TestWithParam<FabricFactory> {
 protected:
  Nfs3() {
    nfs::ExportOptions everybody;
    everybody.root_squash = false;
    STAG_CHECK(nfs_.add_export("/data", std::make_shared<vfs::MemoryFileSystem>(), everybody).ok());
    nfs_.add_nfs(programs_);
    const auto at = server_.listen(harness_->fabric(), harness_->any_address());
    STAG_CHECK(at.ok());
    channel_.emplace(harness_->fabric(), *at, rpc::rdma::ChannelOptions{});
    FileSystemOptions options;
    options.calls.credentials = rpc::Credentials::sys("tests", 0, 0);
    files_.emplace(*channel_, root(), "/data", options);
  }
  ~Nfs3() override {
    expect_nothing_exposed();
    harness_->run(closed(*channel_));
    harness_->run(closed(server_));
  }

  template <class T>
  static Task<Ok> closed(T& object) {
    co_await object.close();
    co_return Ok{};
  }
  Handle root() const {
    const auto exports = nfs_.exports();
    const nfs::Export& data = exports->all().front();
    return *Handle::from(nfs_.context().handles.seal(data.id, data.file_system().root()).bytes());
  }
  template <class T>
  T must(Task<Outcome<T>> task) {
    auto outcome = harness_->run(std::move(task));
    STAG_CHECK(outcome.has_value());
    if (!*outcome) ADD_FAILURE() << outcome->error().sentence;
    return *outcome ? std::move(**outcome) : T{};
  }
  // No call is in progress, so no peer has access to anything.
  void expect_nothing_exposed() {
    auto* verbs = dynamic_cast<VerbsHarness*>(harness_.get());
    if (verbs == nullptr || verbs->open_regions()) return;
    EXPECT_EQ(verbs->stub().remote_handles(), 0u);
  }

  const std::unique_ptr<FabricHarness> harness_ = GetParam().make();
  nfs::NfsServer nfs_{nfs::ServerState::ephemeral(1)};
  rpc::Server programs_;
  rpc::rdma::Server server_{programs_};
  std::optional<rpc::rdma::Channel> channel_;
  std::optional<FileSystem> files_;
};

INSTANTIATE_TEST_SUITE_P(On, Nfs3, ::testing::ValuesIn(all_fabrics_for_calls()), fabric_name);

TEST_P(Nfs3, reads_what_it_has_written_whatever_the_length) {
  for (const std::size_t size :
       {0u, 1u, 4095u, 4096u, 16000u, 16385u, 65536u, 300001u, (1u << 20) + 1, 3u << 20}) {
    const std::string name = "file" + std::to_string(size);
    const Node file = must(files_->create(files_->root(), name, {.mode = 0644}));
    const auto written = filled(size);
    EXPECT_EQ(must(files_->write_from(file.handle, 0, written)), size);
    std::vector<std::byte> read(size + 100);
    EXPECT_EQ(must(files_->read_into(file.handle, 0, read)), size);
    EXPECT_TRUE(std::equal(written.begin(), written.end(), read.begin())) << size;
    EXPECT_EQ(must(files_->getattr(file.handle)).size, size);
    expect_nothing_exposed();
  }
}

TEST_P(Nfs3, makes_finds_renames_links_and_removes) {
  const Handle top = files_->root();
  const Node dir = must(files_->mkdir(top, "dir", {.mode = 0755}));
  const Node file = must(files_->create(dir.handle, "a", {.mode = 0600}));
  must(files_->link(file.handle, top, "hard"));
  EXPECT_EQ(must(files_->getattr(file.handle)).links, 2u);
  must(files_->rename(dir.handle, "a", top, "b"));
  EXPECT_EQ(must(files_->lookup(top, "b")).attributes.file_id,
            must(files_->getattr(file.handle)).file_id);
  const Node symlink = must(files_->symlink(top, "soft", std::string(1000, 'x'), {}));
  EXPECT_EQ(must(files_->readlink(symlink.handle)), std::string(1000, 'x'));
  must(files_->setattr(file.handle, {.mode = 0640}));
  EXPECT_EQ(must(files_->getattr(file.handle)).mode & 0777u, 0640u);
  for (const char* name : {"b", "hard", "soft"}) must(files_->remove(top, name));
  must(files_->rmdir(top, "dir"));
  const auto gone = harness_->run(files_->lookup(top, "dir"));
  ASSERT_TRUE(gone.has_value());
  EXPECT_FALSE(gone->ok());
}

Task<void> write_and_read(FileSystem& files, unsigned index, int& good) {
  const std::size_t size = (index * 7919) % 200'000;
  auto file = co_await files.create(files.root(), "many" + std::to_string(index), {.mode = 0644});
  if (!file) co_return;
  const auto written = filled(size);
  const auto count = co_await files.write_from(file->handle, 0, written);
  if (!count || *count != size) co_return;
  std::vector<std::byte> read(size);
  const auto got = co_await files.read_into(file->handle, 0, read);
  good += got.ok() && read == written;
}

TEST_P(Nfs3, works_on_many_files_at_a_time) {
  int good = 0;
  TaskGroup group;
  for (unsigned i = 0; i < 100; ++i) group.add(write_and_read(*files_, i, good));
  EXPECT_TRUE(harness_->run_until([&] { return group.running() == 0; }));
  EXPECT_EQ(good, 100);
  expect_nothing_exposed();
}

TEST_P(Nfs3, asks_about_the_file_system) {
  EXPECT_GT(must(files_->usage()).total_bytes, 0u);
  EXPECT_GE(must(files_->info()).read_max, 1u << 16);
  must(files_->ping());
}

}  // namespace
}  // namespace stag::testing
