// NFSv3 on RPC-over-RDMA on every fabric with every security flavor.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nfs/client/file_system.h"
#include "nfs/export/server_context.h"
#include "nfs/server/server.h"
#include "rpc/gss/rpcsec_gss.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "testing/all_fabrics.h"
#include "testing/fake_mechanism.h"
#include "testing/pattern.h"
#include "testing/proves.h"
#include "vfs/memory/memory.h"

namespace stag::testing {
namespace {

using namespace nfs::client;

constexpr std::uint32_t kAlice = 1000;

class Nfs3Security : public ::testing::TestWithParam<FabricFactory> {
 protected:
  Nfs3Security() {
    rpc::GssServerOptions gss;
    gss.acceptor = std::make_shared<FakeAcceptor>(realm_);
    gss.ids = [](Loop&, const std::string&,
                 const void*) -> Eventual<Result<rpc::UserIds, rpc::NoUserIds>> {
      return Result<rpc::UserIds, rpc::NoUserIds>(rpc::UserIds{kAlice, kAlice, {}});
    };
    programs_.add(rpc::rpcsec_gss(std::move(gss)));
    for (const char* flavor : {"none", "sys", "krb5", "krb5i", "krb5p"}) {
      const auto options = nfs::parse_export_options(std::string("sec=") + flavor);
      auto store = std::make_shared<vfs::MemoryFileSystem>();
      STAG_CHECK(nfs_.add_export(std::string("/") + flavor, store, *options).ok());
    }
    nfs_.add_nfs(programs_);
    const auto at = server_.listen(harness_->fabric(), harness_->any_address());
    STAG_CHECK(at.ok());
    channel_.emplace(harness_->fabric(), *at, rpc::rdma::ChannelOptions{});
  }
  ~Nfs3Security() override {
    harness_->run(closed(*channel_));
    harness_->run(closed(server_));
  }

  template <class T>
  static Task<Ok> closed(T& object) {
    co_await object.close();
    co_return Ok{};
  }
  rpc::Credentials kerberos(gss::Service service) {
    return rpc::Credentials::secured(rpc::rpcsec_gss(
        {.initiator = std::make_shared<FakeInitiator>(realm_), .service = service}));
  }
  FileSystem files(std::size_t index, const rpc::Credentials& credentials) {
    FileSystemOptions options;
    options.calls.credentials = credentials;
    const auto exports = nfs_.exports();
    const nfs::Export& one = exports->all()[index];
    const auto root = nfs_.context().handles.seal(one.id, one.file_system().root());
    return FileSystem(*channel_, *Handle::from(root.bytes()), one.path(), options);
  }
  template <class T>
  T must(Task<Outcome<T>> task) {
    auto outcome = harness_->run(std::move(task));
    STAG_CHECK(outcome.has_value());
    if (!*outcome) ADD_FAILURE() << outcome->error().sentence;
    return *outcome ? std::move(**outcome) : T{};
  }

  const std::unique_ptr<FabricHarness> harness_ = GetParam().make();
  const std::shared_ptr<FakeRealm> realm_ = std::make_shared<FakeRealm>();
  nfs::NfsServer nfs_{nfs::ServerState::ephemeral(1)};
  rpc::Server programs_;
  rpc::rdma::Server server_{programs_};
  std::optional<rpc::rdma::Channel> channel_;
};

INSTANTIATE_TEST_SUITE_P(On, Nfs3Security, ::testing::ValuesIn(all_fabrics_for_calls()),
                         fabric_name);

TEST_P(Nfs3Security, carries_names_and_files_of_every_length_in_every_flavor) {
  PROVES("R8267-8-a");
  const std::vector<rpc::Credentials> flavors{
      rpc::Credentials(), rpc::Credentials::sys("tests", kAlice, kAlice),
      kerberos(gss::Service::none), kerberos(gss::Service::integrity),
      kerberos(gss::Service::privacy)};
  for (std::size_t i = 0; i < flavors.size(); ++i) {
    FileSystem to = files(i, flavors[i]);
    for (const std::size_t size : {0u, 1u, 4096u, 65536u, 300001u}) {
      std::vector<std::byte> written(size), read(size + 100);
      fill_pattern(written, static_cast<std::uint32_t>(size));
      const Node file = must(to.create(to.root(), std::to_string(size), {.mode = 0600}));
      EXPECT_EQ(must(to.write_from(file.handle, 0, written)), size);
      EXPECT_EQ(must(to.read_into(file.handle, 0, read)), size);
      EXPECT_TRUE(std::equal(written.begin(), written.end(), read.begin())) << i << ", " << size;
      EXPECT_EQ(must(to.getattr(file.handle)).uid, i == 0 ? 65534u : kAlice);
    }
  }
}

TEST_P(Nfs3Security, is_refused_in_another_flavor) {
  FileSystem strict = files(4, kerberos(gss::Service::integrity));
  const auto refused = harness_->run(strict.create(strict.root(), "x", {.mode = 0600}));
  ASSERT_TRUE(refused.has_value());
  ASSERT_FALSE(refused->ok());
  EXPECT_TRUE(refused->error().is(Status::Access)) << refused->error().sentence;
}

}  // namespace
}  // namespace stag::testing
