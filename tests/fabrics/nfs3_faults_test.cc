// NFSv3 on a device of which one call fails, each of them once: the client connects again and
// repeats what was not answered, or says why not; nothing hangs and nothing is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/task_group.h"
#include "nfs/client/file_system.h"
#include "nfs/export/server_context.h"
#include "nfs/server/server.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "testing/all_fabrics.h"
#include "testing/pattern.h"
#include "vfs/memory/memory.h"

namespace stag::testing {
namespace {

using namespace nfs::client;

std::vector<std::byte> patterned(std::size_t size) {
  std::vector<std::byte> bytes(size);
  fill_pattern(bytes, static_cast<std::uint32_t>(size));
  return bytes;
}

// Each receive is one more call that may fail.
constexpr std::uint32_t kCredits = 3;

template <class T>
Task<Ok> closed_in_order(T& object) {
  co_await object.close();
  co_return Ok{};
}

// A server and a client on one device.
class FaultyTraffic {
 public:
  explicit FaultyTraffic(const fabric::stub::StubOptions& device) : harness_(device) {
    nfs::ExportOptions everybody;
    everybody.root_squash = false;
    STAG_CHECK(nfs_.add_export("/data", std::make_shared<vfs::MemoryFileSystem>(), everybody).ok());
    nfs_.add_nfs(programs_);
    const auto at = server_.listen(harness_.fabric(), harness_.any_address());
    STAG_CHECK(at.ok());
    rpc::rdma::ChannelOptions few_receives;
    few_receives.credits = few_receives.reverse_credits = kCredits;
    channel_.emplace(harness_.fabric(), *at, few_receives);
    FileSystemOptions options;
    options.calls.credentials = rpc::Credentials::sys("tests", 0, 0);
    files_.emplace(*channel_, root(), "/data", options);
  }
  ~FaultyTraffic() {
    EXPECT_EQ(stub().remote_handles(), 0u);
    EXPECT_TRUE(harness_.run(closed_in_order(*channel_)).has_value());
    EXPECT_TRUE(harness_.run(closed_in_order(server_)).has_value());
  }

  // The name of the call that has failed; empty when there are not so many.
  std::string run(std::uint64_t failing) {
    stub().fail_call(failing);
    all_calls(true);
    const std::string failed = stub().failed_call();
    stub().fail_call(0);
    SCOPED_TRACE(failed);
    // What comes afterwards is as if nothing had been.
    all_calls(false);
    return failed;
  }

 private:
  fabric::stub::StubNetwork& stub() { return harness_.stub(); }
  Handle root() const {
    const auto exports = nfs_.exports();
    const nfs::Export& data = exports->all().front();
    return *Handle::from(nfs_.context().handles.seal(data.id, data.file_system().root()).bytes());
  }
  // NULL, and beside it WRITEs and READs that are inline, by chunk, and by several chunks.
  void all_calls(bool may_fail) {
    std::string sentence;
    TaskGroup group;
    group.add(ping(sentence));
    for (const std::size_t size : {100u, 20'000u, 150'000u}) group.add(copy(size, sentence));
    EXPECT_TRUE(harness_.run_until([&] { return group.running() == 0; })) << "something hangs";
    if (!may_fail) {
      EXPECT_EQ(sentence, "");
    }
  }
  Task<void> ping(std::string& sentence) {
    const auto outcome = co_await files_->ping();
    if (!outcome) sentence = outcome.error().sentence;
  }
  Task<void> copy(std::size_t size, std::string& sentence) {
    auto file =
        co_await files_->create(files_->root(), "file" + std::to_string(size), {.mode = 0644});
    if (!file) co_return static_cast<void>(sentence = file.error().sentence);
    const auto written = patterned(size);
    const auto count = co_await files_->write_from(file->handle, 0, written);
    if (!count) co_return static_cast<void>(sentence = count.error().sentence);
    std::vector<std::byte> read(size);
    const auto got = co_await files_->read_into(file->handle, 0, read);
    if (!got) co_return static_cast<void>(sentence = got.error().sentence);
    EXPECT_EQ(read, written);
  }

  VerbsHarness harness_;
  nfs::NfsServer nfs_{nfs::ServerState::ephemeral(1)};
  rpc::Server programs_;
  rpc::rdma::Server server_{programs_,
                            {.transport = {}, .credits = kCredits, .reverse_credits = kCredits}};
  std::optional<rpc::rdma::Channel> channel_;
  std::optional<FileSystem> files_;
};

// Which calls have been made to fail.
std::set<std::string> each_call_fails_once(const fabric::stub::StubOptions& device) {
  std::set<std::string> failed;
  for (std::uint64_t n = 1;; ++n) {
    SCOPED_TRACE(n);
    const std::string name = FaultyTraffic(device).run(n);
    if (name.empty()) return failed;
    failed.insert(name);
  }
}

TEST(Nfs3Faults, each_call_of_a_device_with_windows_may_fail_once) {
  const auto failed = each_call_fails_once(fabric::stub::rxe_like());
  for (const char* name : {"ibv_alloc_mw", "ibv_create_srq", "ibv_post_send", "ibv_post_srq_recv",
                           "ibv_reg_mr", "rdma_accept", "rdma_connect", "rdma_create_qp"})
    EXPECT_EQ(failed.count(name), 1u) << name;
}

TEST(Nfs3Faults, each_call_of_a_device_without_windows_may_fail_once) {
  const auto failed = each_call_fails_once(fabric::stub::siw_like());
  for (const char* name : {"ibv_alloc_pd", "ibv_post_recv", "ibv_post_send", "ibv_reg_mr"})
    EXPECT_EQ(failed.count(name), 1u) << name;
}

TEST(Nfs3Faults, each_call_of_a_device_with_short_queues_may_fail_once) {
  EXPECT_FALSE(each_call_fails_once(cramped()).empty());
}

}  // namespace
}  // namespace stag::testing
