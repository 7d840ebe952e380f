// Where a server's callbacks reach a mount on RDMA whose connection has no reverse direction: by
// TCP (RFC 8167 sections 3.1, 3.2; RFC 8267 section 6.5.1).
#include <functional>
#include <utility>

#include "nfs/client/session/session.h"
#include "nfs/client/v4/callback_service_v40.h"
#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs3.h"
#include "testing/nfs/nfs40_callbacks_fixture.h"
#include "testing/nfs/nfs4_client_world.h"
#include "testing/proves.h"

namespace stag::nfs::client {
namespace {

using testing::LoopbackChannel;

// A connection to `server`, with a reverse direction on TCP and without one on RDMA.
class Connected final : public rpc::Channel {
 public:
  Connected(Loop& loop, rpc::Service& server, rpc::TransportKind kind, std::uint16_t port,
            std::function<bool()> loses, int& closed)
      : Channel(1),
        loop_(loop),
        calls_(loop, server, {"192.0.2.1", port}),
        loses_(std::move(loses)),
        closed_(closed) {
    calls_.origin().transport = kind;
    calls_.origin().connection = connection_;
  }
  ~Connected() override { connection_->end(); }
  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    calls_.lost = loses_();
    return calls_.call(message);
  }
  Task<void> close() override {
    ++closed_;
    co_return;
  }
  void serve_reverse(rpc::Service& service) override {
    if (kind() != rpc::TransportKind::Tcp) return;
    reverse_ = std::make_shared<LoopbackChannel>(loop_, service);
    calls_.origin().reverse = reverse_;
  }
  Loop& loop() override { return loop_; }
  rpc::TransportKind kind() const override { return calls_.kind(); }
  std::string where() const override { return "memory"; }

 private:
  Loop& loop_;
  LoopbackChannel calls_;
  const std::function<bool()> loses_;
  int& closed_;
  std::shared_ptr<LoopbackChannel> reverse_;
  std::shared_ptr<rpc::Connection> connection_ = std::make_shared<rpc::Connection>();
};

class Network final : public rpc::Connector {
 public:
  Network(Loop& loop, rpc::Service& server, rpc::TransportKind kind)
      : loop_(loop), server_(server), kind_(kind) {}
  Loop& loop() override { return loop_; }
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> connect(Address to,
                                                                      CancelToken) override {
    // There is no rpcbind.
    if (to.port == 111 || refuses)
      co_return Failure{rpc::CallError::transport(Reason::ConnectionRefused, "rpcbind")};
    connected_to.push_back(to);
    const auto port = static_cast<std::uint16_t>(1000 + connected_to.size());
    co_return std::unique_ptr<rpc::Channel>(std::make_unique<Connected>(
        loop_, server_, kind_, port, [this] { return loses(); }, closed));
  }
  std::vector<Address> connected_to;
  int closed = 0;  // connections
  bool refuses = false;
  std::function<bool()> loses = [] { return false; };  // the next call

 private:
  Loop& loop_;
  rpc::Service& server_;
  const rpc::TransportKind kind_;
};

// Calls reach what listens here.
class Listening final : public rpc::CallbackListener, public rpc::Connector {
 public:
  Listening(Loop& loop, Address at) : loop_(loop), at_(std::move(at)) {}
  Result<Address, Reason> listen(rpc::Service& service) override {
    if (refused != Reason::None) return Failure{refused};
    service_ = &service;
    return at_;
  }
  Task<void> close() override {
    service_ = nullptr;
    co_return;
  }
  Loop& loop() override { return loop_; }
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> connect(Address to,
                                                                      CancelToken) override {
    connected_to.push_back(to);
    if (service_ == nullptr || to != at_)
      co_return Failure{rpc::CallError::transport(Reason::ConnectionRefused, to_string(to))};
    co_return std::unique_ptr<rpc::Channel>(std::make_unique<LoopbackChannel>(loop_, *service_));
  }
  bool listens() const { return service_ != nullptr; }

  std::vector<Address> connected_to;
  Reason refused = Reason::None;

 private:
  Loop& loop_;
  const Address at_;
  rpc::Service* service_ = nullptr;
};

class ClientCallbacks : public ::testing::Test {
 protected:
  ClientCallbacks() {
    options_.calls.credentials = rpc::Credentials::sys("tests", 0, 0);
    options_.calls.delegations = true;
    server_.nfs4.start_callbacks(loop_, &listening_);
  }
  ~ClientCallbacks() override {
    server_.nfs4.wind_up([] {});
    loop_.drain();
    server_.nfs4.stop_callbacks();
  }
  template <class T>
  T run(Task<T> task) {
    std::optional<T> result = loop_.run(std::move(task));
    STAG_CHECK(result.has_value());
    return *std::move(result);
  }
  template <class T>
  T must(Task<Outcome<T>> task) {
    Outcome<T> outcome = run(std::move(task));
    if (!outcome) ADD_FAILURE() << outcome.error().sentence;
    STAG_CHECK(outcome.ok());
    return std::move(*outcome);
  }
  std::unique_ptr<Session> opened(const std::string& query) {
    return must(Session::open({rdma_, tcp_, &listening_}, *Url::parse("nfs://server/data?" + query),
                              options_));
  }
  void close(Session& session) { run(closed(session)); }
  static Task<Ok> closed(Session& session) {
    co_await session.close();
    co_return Ok{};
  }
  std::uint32_t delegations() {
    std::uint32_t all = 0;
    for (std::uint32_t i = 0; i < state::Clients::kShards; ++i)
      for (const auto& client : server_.nfs4.administration().clients(i, loop_.now()))
        all += client.held.delegations;
    return all;
  }
  std::size_t listed_clients() {
    std::size_t all = 0;
    for (std::uint32_t i = 0; i < state::Clients::kShards; ++i)
      all += server_.nfs4.administration().clients(i, loop_.now()).size();
    return all;
  }
  // A file is delegated; somebody else writes it, and it is given back.
  void expect_a_delegation_that_is_recalled(FileSystem& files) {
    const Handle file = must(files.create(files.root(), "file", {.mode = 0644})).handle;
    loop_.drain();
    must(files.close(must(files.open(file, access::kRead)).file));
    EXPECT_EQ(delegations(), 1u);
    const auto other = opened_elsewhere();
    EXPECT_EQ(must(other->files().write(file, 0, bytes_of("written"))).count, 7u);
    EXPECT_EQ(delegations(), 0u);
    EXPECT_EQ(must(files.getattr(file)).size, 7u);
    close(*other);
  }
  std::unique_ptr<Session> opened_elsewhere() {
    FileSystemOptions plain = options_;
    plain.calls.delegations = false;
    return must(Session::open({rdma_, tcp_}, *Url::parse("nfs://server/data?version=4.1"), plain));
  }

  testing::ManualLoop loop_;
  testing::Nfs4Instance server_{loop_, std::make_shared<vfs::MemoryFileSystem>()};
  Network rdma_{loop_, server_.server, rpc::TransportKind::Rdma};
  Network tcp_{loop_, server_.server, rpc::TransportKind::Tcp};
  Listening listening_{loop_, {"192.0.2.1", 4711}};
  FileSystemOptions options_;
};

TEST_F(ClientCallbacks, come_by_TCP_where_a_client_of_version_4_0_on_RDMA_listens) {
  PROVES("R8167-3.1-a", "R8267-6.5.1-b");
  const auto session = opened("version=4.0");
  EXPECT_TRUE(listening_.listens());
  EXPECT_TRUE(listening_.connected_to.empty());
  expect_a_delegation_that_is_recalled(session->files());
  ASSERT_FALSE(listening_.connected_to.empty());
  EXPECT_EQ(listening_.connected_to[0], (Address{"192.0.2.1", 4711})) << "netid tcp, and the port";
  EXPECT_TRUE(tcp_.connected_to.empty());
  close(*session);
  EXPECT_FALSE(listening_.listens());
}

// Of copies that go on by themselves (RFC 7862 16.1).
TEST_F(ClientCallbacks, come_without_delegations_where_they_are_to_tell_of_copies) {
  options_.calls.delegations = false;
  for (const bool told : {false, true}) {
    options_.calls.offloads = told;
    const auto session = opened("version=4.2&callback=tcp");
    loop_.drain();
    std::vector<std::string_view> ways;
    for (std::uint32_t i = 0; i < state::Clients::kShards; ++i)
      for (const auto& client : server_.nfs4.administration().clients(i, loop_.now()))
        ways.push_back(client.callbacks);
    ASSERT_EQ(ways.size(), 1u);
    EXPECT_EQ(ways[0] == "none", !told) << ways[0];
    close(*session);
  }
}

TEST_F(ClientCallbacks, need_a_place_that_is_free) {
  listening_.refused = Reason::AddressInUse;
  const auto session = run(Session::open({rdma_, tcp_, &listening_},
                                         *Url::parse("nfs://server/data?version=4.0"), options_));
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.error().sentence.find("callback="), std::string::npos)
      << session.error().sentence;
}

TEST_F(ClientCallbacks, come_by_a_TCP_connection_that_is_bound_to_a_session_on_RDMA) {
  PROVES("R8167-3.2-c");
  for (const char* version : {"4.1", "4.2"}) {
    tcp_.connected_to.clear();
    const auto session = opened("callback=tcp&mountport=2050&version=" + std::string(version));
    EXPECT_EQ(tcp_.connected_to, (std::vector<Address>{{"server", 2050}}));
    expect_a_delegation_that_is_recalled(session->files());
    EXPECT_TRUE(listening_.connected_to.empty());
    close(*session);
    // The next one wants the file that this one had to give back.
    loop_.pass(std::chrono::seconds(32));
  }
}

// The URL need not say so where the server gives the connection no back channel.
TEST_F(ClientCallbacks, come_by_TCP_in_a_session_where_RDMA_has_no_reverse_direction) {
  for (const char* version : {"4.1", "4.2"}) {
    tcp_.connected_to.clear();
    const auto session = opened("mountport=2050&version=" + std::string(version));
    EXPECT_EQ(tcp_.connected_to, (std::vector<Address>{{"server", 2050}}));
    EXPECT_TRUE(session->url().callbacks_by_tcp);
    EXPECT_EQ(listed_clients(), 1u) << "the first session has ended";
    expect_a_delegation_that_is_recalled(session->files());
    close(*session);
    loop_.pass(std::chrono::seconds(32));
  }
}

TEST_F(ClientCallbacks, are_done_without_where_nothing_listens_on_TCP) {
  tcp_.refuses = true;
  const auto session = opened("version=4.1");
  EXPECT_FALSE(session->called_back());
  EXPECT_FALSE(session->url().callbacks_by_tcp);
  must(session->files().getattr(session->files().root()));
  close(*session);
}

// The user has not asked for them: a mount without delegations is better than none.
TEST_F(ClientCallbacks, are_done_without_where_the_server_makes_no_other_session_by_TCP) {
  for (int lost = 1; lost <= 5; ++lost) {  // of the calls that make it and find its root
    int calls = 0;
    tcp_.connected_to.clear();
    tcp_.closed = 0;
    rdma_.loses = [&] { return !tcp_.connected_to.empty() && ++calls == lost; };
    const auto session = opened("version=4.1");
    ASSERT_EQ(tcp_.connected_to.size(), 1u);
    rdma_.loses = [] { return false; };
    EXPECT_FALSE(session->called_back()) << lost;
    EXPECT_FALSE(session->url().callbacks_by_tcp) << lost;
    EXPECT_EQ(tcp_.closed, 1) << lost;
    must(session->files().getattr(session->files().root()));
    close(*session);
    EXPECT_EQ(listed_clients(), 0u) << lost;
  }
}

// A server without /elsewhere in version 4, which exports it by MOUNT.
TEST_F(ClientCallbacks, end_where_the_server_has_the_path_by_TCP_in_version_3_alone) {
  server_.server.add<mount3::MOUNTPROC3_MNT>(
      [](rpc::CallContext&, mount3::dirpath path) -> Task<mount3::mountres3> {
        mount3::mountres3 results;
        results.fhs_status = path == "/elsewhere" ? mount3::MNT3_OK : mount3::MNT3ERR_NOENT;
        if (path == "/elsewhere")
          STAG_CHECK(results.mountinfo().fhandle.assign(bytes_of("handle")));
        co_return results;
      });
  server_.server.add<v3::NFSPROC3_FSINFO>(
      [](rpc::CallContext&, v3::FSINFO3args) -> Task<v3::FSINFO3res> {
        v3::FSINFO3res results;
        v3::FSINFO3resok& sizes = results.resok();
        sizes.rtmax = sizes.rtpref = sizes.wtmax = sizes.wtpref = sizes.dtpref = 1u << 20;
        co_return results;
      });
  const auto session =
      run(Session::open({rdma_, tcp_}, *Url::parse("nfs://server/elsewhere/a"), options_));
  ASSERT_TRUE(session.ok()) << session.error().sentence;
  EXPECT_EQ((*session)->url().version, 3u);
  ASSERT_GE(tcp_.connected_to.size(), 1u);
  EXPECT_EQ(tcp_.closed, 1);
  close(**session);
}

TEST_F(ClientCallbacks, are_not_asked_for_by_TCP_where_no_delegations_are_wanted) {
  options_.calls.delegations = false;
  options_.calls.offloads = true;
  const auto session = opened("version=4.2");
  EXPECT_TRUE(tcp_.connected_to.empty());
  close(*session);
}

// What is asked of a client of version 4.0, by whoever has found the place.
class CallbackServiceV40 : public ::testing::Test, private nfs4::Recalled {
 protected:
  CallbackServiceV40() {
    service_.listens_at({"2001:db8::1", 4711});
    service_.begin(this);
  }
  v4::CB_COMPOUND4res ask(std::vector<v4::nfs_cb_opnum4> numbers, std::uint32_t minor = 0) {
    v4::CB_COMPOUND4args args;
    args.minorversion = minor;
    args.callback_ident = service_.listening().ident + (meant_ ? 0 : 1);
    for (const v4::nfs_cb_opnum4 number : numbers) args.argarray.emplace_back().argop = number;
    rpc::Client client(channel_, {}, rpc::Credentials::sys("server", 0, 0));
    auto answer = loop_.run(called(client, args));
    STAG_CHECK(answer && answer->ok());
    return **answer;
  }
  static Task<rpc::CallResult<v4::CB_COMPOUND4res>> called(rpc::Client& client,
                                                           const v4::CB_COMPOUND4args& args) {
    co_return co_await client.call<v4::CB_COMPOUND>(args);
  }
  v4::nfsstat4 recall(const v4::stateid4&) override {
    ++recalls_;
    return v4::NFS4_OK;
  }
  void recall_any(std::uint32_t) override {}
  std::optional<nfs4::Delegations::Now> written(const v4::nfs_fh4&) override {
    return std::nullopt;
  }
  void recall_slots(v4::slotid4) override {}
  bool awaits(const v4::CB_SEQUENCE4args&) const override { return false; }
  v4::nfsstat4 copy_ended(const v4::CB_OFFLOAD4args&) override { return v4::NFS4ERR_BAD_STATEID; }

  testing::ManualLoop loop_;
  nfs4::CallbackServiceV40 service_;
  LoopbackChannel channel_{loop_, service_.service()};
  bool meant_ = true;
  int recalls_ = 0;
};

TEST_F(CallbackServiceV40, is_named_with_the_netid_of_its_address) {
  EXPECT_EQ(service_.listening().at.na_r_netid, "tcp6");
  EXPECT_EQ(service_.listening().at.na_r_addr, "2001:db8::1.18.103");
  service_.listens_at({"192.0.2.7", 4711});
  EXPECT_EQ(service_.listening().at.na_r_netid, "tcp");
  EXPECT_EQ(service_.listening().at.na_r_addr, "192.0.2.7.18.103");
}

TEST_F(CallbackServiceV40, gives_back_what_the_server_asks_for_by_its_number) {
  EXPECT_EQ(ask({v4::OP_CB_RECALL}).status, v4::NFS4_OK);
  EXPECT_EQ(recalls_, 1);
  meant_ = false;
  EXPECT_EQ(ask({v4::OP_CB_RECALL}).status, v4::NFS4ERR_BADHANDLE);
  service_.begin(nullptr);
  meant_ = true;
  EXPECT_EQ(ask({v4::OP_CB_RECALL}).status, v4::NFS4ERR_BADHANDLE);
  EXPECT_EQ(recalls_, 1);
}

TEST_F(CallbackServiceV40, ends_with_the_first_operation_that_it_does_not_do) {
  EXPECT_EQ(ask({}).status, v4::NFS4_OK);
  EXPECT_EQ(ask({v4::OP_CB_RECALL}, 1).status, v4::NFS4ERR_MINOR_VERS_MISMATCH);
  const v4::CB_COMPOUND4res stopped = ask({v4::OP_CB_GETATTR, v4::OP_CB_RECALL});
  EXPECT_EQ(stopped.status, v4::NFS4ERR_BADHANDLE);
  EXPECT_EQ(stopped.resarray.size(), 1u);
  const v4::CB_COMPOUND4res unknown = ask({v4::OP_CB_RECALL_ANY});
  EXPECT_EQ(unknown.status, v4::NFS4ERR_OP_ILLEGAL) << "of later versions";
  EXPECT_EQ(unknown.resarray.at(0).resop, v4::OP_CB_ILLEGAL);
  EXPECT_EQ(ask(std::vector<v4::nfs_cb_opnum4>(9, v4::OP_CB_RECALL)).status, v4::NFS4ERR_RESOURCE);
  EXPECT_EQ(recalls_, 0);
}

}  // namespace
}  // namespace stag::nfs::client
