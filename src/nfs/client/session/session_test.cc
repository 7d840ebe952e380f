#include "nfs/client/session/session.h"

#include "nfs/client/session/mount.h"
#include "testing/claimed_kerberos.h"
#include "testing/nfs/client_harness.h"
#include "testing/nfs/nfs4_client_world.h"
#include "testing/proves.h"
#include "testing/rpcbind_service.h"

namespace stag::nfs::client {
namespace {

// Connects to a Service in this process, or to nothing.
class Loopback final : public rpc::Connector {
 public:
  Loopback(Loop& loop, rpc::Service* service) : loop_(loop), service_(service) {}
  Loop& loop() override { return loop_; }
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> connect(Address server,
                                                                      CancelToken) override {
    servers.push_back(server);
    if (out_of_memory) throw std::bad_alloc();
    rpc::Service* service = server.port == rpcbind_port ? rpcbind : service_;
    if (service == nullptr)
      co_return Failure{rpc::CallError::transport(refusal, "rdma " + to_string(server))};
    co_return std::unique_ptr<rpc::Channel>(
        std::make_unique<testing::LoopbackChannel>(loop_, *service));
  }
  std::vector<Address> servers;
  Reason refusal = Reason::ConnectionRefused;
  bool out_of_memory = false;
  rpc::Service* rpcbind = nullptr;
  std::uint16_t rpcbind_port = 111;

 private:
  Loop& loop_;
  rpc::Service* service_;
};

Task<Ok> session_closed(Session& session) {
  co_await session.close();
  co_return Ok{};
}

class ClientSession : public ClientTest {
 protected:
  Outcome<std::unique_ptr<Session>> opened(const std::string& text) {
    return run(Session::open({nfs_connector_, mount_connector_}, *Url::parse(text), options_));
  }
  void close(Session& session) { run(session_closed(session)); }
  std::size_t mounted_clients() { return call<mount3::MOUNTPROC3_DUMP>(xdr::Void{}).size(); }

  Loopback nfs_connector_{loop_, &server_};
  Loopback mount_connector_{loop_, &server_};

  // From here on there is an rpcbind.
  void with_rpcbind(std::uint16_t port = 111) {
    rpcbind_.serve_version_4(rpcbind_server_);
    mount_connector_.rpcbind = &rpcbind_server_;
    mount_connector_.rpcbind_port = port;
  }
  testing::RpcbindService rpcbind_;
  rpc::Server rpcbind_server_;
};

using Addresses = std::vector<Address>;

TEST_F(ClientSession, leads_from_a_URL_to_the_files) {
  must(files().mkdir(files().root(), "dir", {.mode = 0755}));
  auto session = opened("nfs://server/data/dir/file?rsize=4096");
  ASSERT_TRUE(session.ok()) << session.error().sentence;
  EXPECT_EQ((*session)->files().root(), files().root());
  EXPECT_EQ((*session)->files().root_path(), "/data");
  EXPECT_EQ((*session)->path(), "dir/file");
  EXPECT_EQ((*session)->files().sizes().read, 4096u);
  EXPECT_EQ((*session)->files().sizes().write, 1u << 20);
  must((*session)->files().walk("dir"));
  EXPECT_EQ(nfs_connector_.servers, (std::vector<Address>{{"server", 20049}}));
  EXPECT_EQ(mount_connector_.servers, (Addresses{{"server", 111}, {"server", 2049}}))
      << "the usual port, as there is no rpcbind";
  close(**session);
}

TEST_F(ClientSession, is_not_opened_with_credentials_that_protect_less_than_the_URL_says) {
  using enum oncrpc::AuthFlavor;
  const auto refused = [this](const std::string& query) {
    const auto session = opened("nfs://server/data?" + query);
    return !session && session.error().kind == Error::Kind::Url;
  };
  for (const std::string flavor : {"krb5", "krb5i", "krb5p"})
    EXPECT_TRUE(refused("sec=" + flavor)) << "with AUTH_SYS";
  options_.calls.credentials = testing::claimed_kerberos(KRB5I, 0, 0);
  EXPECT_TRUE(refused("sec=krb5"));
  EXPECT_TRUE(refused("sec=krb5p"));
  EXPECT_TRUE(refused("uid=7"));
  EXPECT_TRUE(nfs_connector_.servers.empty()) << "nothing was sent";
  EXPECT_FALSE(refused("sec=krb5i"));
  EXPECT_FALSE(refused(""));
}

TEST_F(ClientSession, leaves_the_list_of_mounts_when_closed) {
  auto session = opened("nfs://server/data");
  ASSERT_TRUE(session.ok());
  EXPECT_EQ((*session)->path(), "");
  EXPECT_EQ(mounted_clients(), 1u);
  close(**session);
  EXPECT_EQ(mounted_clients(), 0u);
}

TEST_F(ClientSession, uses_one_connection_where_one_TCP_port_carries_both_programs) {
  auto session = opened("nfs://server:77/data?proto=tcp");
  ASSERT_TRUE(session.ok()) << session.error().sentence;
  EXPECT_EQ(nfs_connector_.servers, (std::vector<Address>{{"server", 77}}));
  EXPECT_TRUE(mount_connector_.servers.empty());
  close(**session);
}

TEST_F(ClientSession, finds_MOUNT_by_rpcbind_where_the_URL_does_not_name_its_port) {
  with_rpcbind();
  rpcbind_.put(mount3::MOUNT_PROGRAM, 3, "udp", "0.0.0.0.1.1");
  rpcbind_.put(mount3::MOUNT_PROGRAM, 3, "tcp", "0.0.0.0.78.32");
  auto session = opened("nfs://server/data");
  ASSERT_TRUE(session.ok()) << session.error().sentence;
  EXPECT_EQ(mount_connector_.servers, (Addresses{{"server", 111}, {"server", 20000}}));
  close(**session);
  mount_connector_.servers.clear();
  session = opened("nfs://server/data?mountport=7");
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(mount_connector_.servers, (Addresses{{"server", 7}})) << "nobody has to be asked";
  close(**session);
}

TEST_F(ClientSession, finds_MOUNT_on_the_usual_port_where_rpcbind_does_not_know_it) {
  with_rpcbind();
  auto session = opened("nfs://server/data");
  ASSERT_TRUE(session.ok()) << session.error().sentence;
  EXPECT_EQ(mount_connector_.servers, (Addresses{{"server", 111}, {"server", 2049}}));
  close(**session);
}

TEST_F(ClientSession, finds_the_port_of_NFS_over_RDMA_by_its_netid) {
  PROVES("R8267-4.2-a", "R8166-5-d");
  with_rpcbind(1111);
  rpcbind_.put(v3::NFS_PROGRAM, 3, "tcp", "0.0.0.0.8.1");
  rpcbind_.put(v3::NFS_PROGRAM, 4, "rdma", "0.0.0.0.1.1");
  rpcbind_.put(v3::NFS_PROGRAM, 3, "rdma", "0.0.0.0.48.57");
  rpcbind_.put(v3::NFS_PROGRAM, 3, "rdma6", "::.48.58");
  auto session = opened("nfs://server/data?port=rpcbind&rpcbindport=1111&mountport=7&version=3");
  ASSERT_TRUE(session.ok()) << session.error().sentence;
  EXPECT_EQ(nfs_connector_.servers, (Addresses{{"server", 12345}}));
  close(**session);
  session = opened("nfs://[::1]/data?port=rpcbind&rpcbindport=1111&mountport=7&version=3");
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(nfs_connector_.servers.back(), (Address{"::1", 12346}));
  close(**session);
  session =
      opened("nfs://server/data?port=rpcbind&rpcbindport=1111&proto=tcp&mountport=7&version=3");
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(nfs_connector_.servers.back(), (Address{"server", 2049}));
  close(**session);
}

TEST_F(ClientSession, asks_rpcbind_for_version_3_where_there_is_no_4) {
  with_rpcbind();
  rpcbind_.put(v3::NFS_PROGRAM, 3, "rdma", "0.0.0.0.48.57");
  auto session = opened("nfs://server/data?port=rpcbind&mountport=7");
  ASSERT_TRUE(session.ok()) << session.error().sentence;
  EXPECT_EQ((*session)->url().version, 3u);
  close(**session);
  rpcbind_.put(v3::NFS_PROGRAM, 4, "rdma", "0.0.0.0.1.1");
  nfs_connector_.servers.clear();
  session = opened("nfs://server/data?port=rpcbind&mountport=7");
  ASSERT_TRUE(session.ok()) << session.error().sentence;
  EXPECT_EQ(nfs_connector_.servers, (Addresses{{"server", 257}, {"server", 12345}}))
      << "nothing speaks version 4 there";
  close(**session);
}

TEST_F(ClientSession, speaks_version_3_to_a_server_that_has_no_4) {
  auto session = opened("nfs://server/data");
  ASSERT_TRUE(session.ok()) << session.error().sentence;
  EXPECT_EQ((*session)->url().version, 3u);
  EXPECT_EQ(nfs_connector_.servers.size(), 1u) << "by the same connection";
  close(**session);
}

// The server speaks version 4, too, with exports of its own.
TEST_F(ClientSession, mounts_a_path_that_the_name_space_of_version_4_does_not_have) {
  ServerContext context(ServerState::ephemeral(7));
  Exports exports;
  ASSERT_TRUE(exports.add(1, {"/srv", std::make_shared<vfs::MemoryFileSystem>(), {}}).ok());
  context.exports.replace(std::move(exports));
  nfs::nfs4::Nfs4Server other(context, {});
  other.add_program(server_);
  for (const auto& [path, version] : {std::pair("/srv", 4u), {"/srv/nothing", 4u}, {"/data", 3u}}) {
    auto session = opened("nfs://server" + std::string(path));
    ASSERT_TRUE(session.ok()) << session.error().sentence;
    EXPECT_EQ((*session)->url().version, version) << path;
    close(**session);
  }
  const auto neither = opened("nfs://server/nowhere");
  ASSERT_FALSE(neither.ok());
  EXPECT_EQ(neither.error().kind, Error::Kind::Mount) << "it names the exports";
}

TEST_F(ClientSession, says_that_rpcbind_does_not_know_the_port) {
  with_rpcbind();
  const auto session = opened("nfs://server/data?port=rpcbind");
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.error().sentence.find("cannot find the NFS service by rpcbind"),
            std::string::npos)
      << session.error().sentence;
  EXPECT_TRUE(nfs_connector_.servers.empty());
}

TEST_F(ClientSession, needs_no_rpcbind_for_the_registered_port_of_NFS_over_RDMA) {
  PROVES("R8267-4.2-b", "R8166-5-a");
  auto session = opened("nfs://server/data?mountport=7");
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(nfs_connector_.servers, (Addresses{{"server", 20049}}));
  EXPECT_EQ(mount_connector_.servers, (Addresses{{"server", 7}}));
  close(**session);
}

TEST_F(ClientSession, names_the_exports_when_the_URL_names_none) {
  const auto session = opened("nfs://server/nothing/there");
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().kind, Error::Kind::Mount);
  EXPECT_EQ(session.error().status, Status::NoEntry);
  EXPECT_NE(session.error().sentence.find("it exports /data, /odd"), std::string::npos)
      << session.error().sentence;
}

TEST_F(ClientSession, says_which_service_cannot_be_reached) {
  Loopback nowhere(loop_, nullptr);
  const Url url = *Url::parse("nfs://server/data");
  const auto nfs = run(Session::open({nowhere, mount_connector_}, url, options_));
  ASSERT_FALSE(nfs.ok());
  EXPECT_EQ(nfs.error().kind, Error::Kind::Call);
  EXPECT_EQ(nfs.error().sentence.find("cannot connect to the NFS service: rdma server:20049: "),
            0u);
  const auto mount = run(Session::open({nfs_connector_, nowhere}, url, options_));
  ASSERT_FALSE(mount.ok());
  EXPECT_NE(mount.error().sentence.find("mountport="), std::string::npos);
}

// A MOUNT service that keeps its list to itself and mounts what the test says.
struct ScriptedMount : Scripted {
  explicit ScriptedMount(std::string directory) {
    on<mount3::MOUNTPROC3_MNT>(
        [this, directory](const mount3::dirpath& path, mount3::mountres3& res) {
          asked.push_back(path);
          res.fhs_status = path == directory ? mount3::MNT3_OK : refusal;
          if (path == directory) STAG_CHECK(res.mountinfo().fhandle.assign(bytes_of("handle")));
        });
  }
  Outcome<MountPoint> mounted(const std::string& path) { return run(mount(channel, path, {}, {})); }
  std::vector<std::string> asked;
  mount3::mountstat3 refusal = mount3::MNT3ERR_NOENT;
};

TEST_F(ClientSession, says_that_the_port_for_RDMA_speaks_TCP) {
  Loopback hangs_up(loop_, nullptr);
  hangs_up.refusal = Reason::MpaUnanswered;
  const auto session = run(
      Session::open({hangs_up, mount_connector_}, *Url::parse("nfs://server:2049/data"), options_));
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.error().sentence.find(
                "server:2049 speaks RPC over TCP, not RPC-over-RDMA; add proto=tcp"),
            std::string::npos)
      << session.error().sentence;
}

TEST(ClientSessionProbe, takes_a_part_of_the_time_limit) {
  using namespace std::chrono_literals;
  EXPECT_EQ(probe_limit(2s), 500ms);
  EXPECT_EQ(probe_limit(1h), 2s);
  EXPECT_EQ(probe_limit(Duration::zero()), 2s) << "there is no limit";
}

TEST_F(ClientSession, does_not_say_so_of_a_port_that_speaks_neither) {
  Loopback hangs_up(loop_, nullptr), nothing(loop_, nullptr);
  hangs_up.refusal = Reason::MpaUnanswered;
  const auto session =
      run(Session::open({hangs_up, nothing}, *Url::parse("nfs://server:2049/data"), options_));
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.error().sentence.find("without an answer"), std::string::npos)
      << session.error().sentence;
}

TEST(ClientMount, tries_the_path_and_its_parents_where_the_server_lists_no_exports) {
  ScriptedMount world("/a/b");
  const auto point = world.mounted("//a/b/c//d/");
  ASSERT_TRUE(point.ok()) << point.error().sentence;
  EXPECT_EQ(world.asked, (std::vector<std::string>{"/a/b/c/d", "/a/b/c", "/a/b"}));
  EXPECT_EQ(point->root, handle_of("handle"));
  EXPECT_EQ(point->root_path, "/a/b");
  EXPECT_EQ(point->rest, "c/d");
}

TEST(ClientMount, may_end_at_the_root) {
  ScriptedMount world("/");
  const auto point = world.mounted("/a/b");
  ASSERT_TRUE(point.ok());
  EXPECT_EQ(point->root_path, "/");
  EXPECT_EQ(point->rest, "a/b");
  EXPECT_EQ(world.mounted("/")->rest, "");
}

TEST(ClientMount, asks_for_no_path_longer_than_the_protocol_carries) {
  ScriptedMount world("/a");
  const auto point = world.mounted("/a/" + std::string(mount3::MNTPATHLEN, 'x'));
  ASSERT_TRUE(point.ok()) << point.error().sentence;
  EXPECT_EQ(world.asked, (std::vector<std::string>{"/a"}));
}

TEST(ClientMount, prefers_the_longest_export) {
  ScriptedMount world("/a/b");
  world.on<mount3::MOUNTPROC3_EXPORT>([](const auto&, mount3::exports& list) {
    for (const char* path : {"/a", "/a/b", "/a/bc", "/z"}) list.push_back({path, {}});
  });
  ASSERT_TRUE(world.mounted("/a/b/c").ok());
  EXPECT_EQ(world.asked, (std::vector<std::string>{"/a/b"}));
  EXPECT_EQ(world.run(list_exports(world.channel, {}, {}))->size(), 4u);
}

// In its parent there may be another directory of that name, which the export covers.
TEST(ClientMount, mounts_no_parent_of_an_export_that_is_refused) {
  for (const mount3::mountstat3 refusal :
       {mount3::MNT3ERR_ACCES, mount3::MNT3ERR_NOENT, mount3::MNT3ERR_IO}) {
    ScriptedMount world("/a");
    world.refusal = refusal;
    world.on<mount3::MOUNTPROC3_EXPORT>([](const auto&, mount3::exports& list) {
      for (const char* path : {"/a", "/a/b/"}) list.push_back({path, {}});
    });
    for (const char* path : {"/a/b", "/a/b/c/d"}) {
      world.asked.clear();
      const auto point = world.mounted(path);
      ASSERT_FALSE(point.ok()) << path;
      EXPECT_EQ(point.error().kind, Error::Kind::Mount);
      EXPECT_EQ(world.asked, (std::vector<std::string>{"/a/b"}));
    }
    EXPECT_EQ(world.mounted("/a/c")->rest, "c");
  }
}

TEST(ClientMount, tries_the_parents_of_a_path_that_no_listed_export_has) {
  ScriptedMount world("/a");
  world.on<mount3::MOUNTPROC3_EXPORT>([](const auto&, mount3::exports& list) {
    list.push_back({"/z", {}});
  });
  ASSERT_TRUE(world.mounted("/a/b").ok());
  EXPECT_EQ(world.asked, (std::vector<std::string>{"/a/b", "/a"}));
}

TEST(ClientMount, names_a_few_exports_of_many_where_the_path_is_none) {
  ScriptedMount world("/a");
  world.refusal = mount3::MNT3ERR_NOENT;
  world.on<mount3::MOUNTPROC3_EXPORT>([](const auto&, mount3::exports& list) {
    for (int i = 0; i < 100; ++i) list.push_back({"/export" + std::to_string(i), {}});
  });
  const auto point = world.mounted("/nothing");
  ASSERT_FALSE(point.ok());
  EXPECT_TRUE(point.error().sentence.ends_with("/export7 and more")) << point.error().sentence;
}

TEST(ClientMount, words_every_refusal) {
  const std::pair<mount3::mountstat3, Status> refusals[] = {
      {mount3::MNT3ERR_PERM, Status::NotOwner},
      {mount3::MNT3ERR_NOENT, Status::NoEntry},
      {mount3::MNT3ERR_IO, Status::Io},
      {mount3::MNT3ERR_ACCES, Status::Access},
      {mount3::MNT3ERR_NOTDIR, Status::NotDirectory},
      {mount3::MNT3ERR_INVAL, Status::Invalid},
      {mount3::MNT3ERR_NAMETOOLONG, Status::NameTooLong},
      {mount3::MNT3ERR_NOTSUPP, Status::NotSupported},
      {mount3::MNT3ERR_SERVERFAULT, Status::ServerFault}};
  for (const auto& [sent, status] : refusals) {
    Scripted world;
    world.on<mount3::MOUNTPROC3_MNT>(
        [sent = sent](const auto&, mount3::mountres3& res) { res.fhs_status = sent; });
    const auto point = world.run(mount(world.channel, "/a", {}, {}));
    ASSERT_FALSE(point.ok());
    EXPECT_EQ(point.error().kind, Error::Kind::Mount);
    EXPECT_EQ(point.error().status, status);
    EXPECT_EQ(point.error().sentence.find("cannot mount '/a': "), 0u);
    EXPECT_EQ(point.error().sentence.find("unknown"), std::string::npos);
  }
}

TEST(ClientSession4, needs_neither_MOUNT_nor_rpcbind_and_connects_to_port_20049) {
  PROVES("R8267-6.3-b");
  testing::ManualLoop loop;
  testing::Nfs4Instance served(loop, std::make_shared<vfs::MemoryFileSystem>());
  Loopback nfs(loop, &served.server);
  Loopback nowhere(loop, nullptr);
  FileSystemOptions options;
  options.calls.credentials = rpc::Credentials::sys("tests", 0, 0);
  for (const char* version : {"4", "4.0", "4.1", "4.2"}) {
    const Url url = *Url::parse("nfs://server/data/a?version=" + std::string(version));
    auto session = run_on(loop, Session::open({nfs, nowhere}, url, options));
    ASSERT_TRUE(session.ok()) << session.error().sentence;
    EXPECT_EQ((*session)->path(), "a");
    EXPECT_EQ((*session)->files().root_path(), "/data");
    EXPECT_EQ(nfs.servers.back(), (Address{"server", 20049}));
    run_on(loop, session_closed(**session));
  }
  EXPECT_TRUE(nowhere.servers.empty());
}

class ClientSessionWithNone : public ClientSession {
 protected:
  void serve(const char* words) {
    ASSERT_TRUE(nfs_.replace_exports({{"/none", store_, *parse_export_options(words)}}).ok());
  }
};

TEST_F(ClientSessionWithNone, goes_without_credentials_where_MOUNT_lists_AUTH_NONE_alone) {
  must(files().mkdir(files().root(), "dir", {.mode = 0755}));
  serve("sec=none");
  auto session = opened("nfs://server/none/dir?version=3");
  ASSERT_TRUE(session.ok()) << session.error().sentence;
  EXPECT_TRUE(run((*session)->files().walk((*session)->path())).ok());
  close(**session);
}

TEST_F(ClientSessionWithNone, says_where_version_3_wants_another_security_flavor) {
  serve("sec=krb5");
  const auto session = opened("nfs://server/none?version=3");
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.error().sentence.find("security flavor"), std::string::npos)
      << session.error().sentence;
}

struct ServedByFlavor {
  explicit ServedByFlavor(const char* words) {
    Exports exports;
    STAG_CHECK(exports.add(1, {"/none", store, *parse_export_options(words)}).ok());
    served.context.exports.replace(std::move(exports));
    options.calls.credentials = rpc::Credentials::sys("tests", 0, 0);
  }
  Outcome<std::unique_ptr<Session>> opened(const std::string& version) {
    return run_on(loop,
                  Session::open({nfs, nfs}, *Url::parse("nfs://server/none/dir?version=" + version),
                                options));
  }

  testing::ManualLoop loop;
  std::shared_ptr<vfs::MemoryFileSystem> store = std::make_shared<vfs::MemoryFileSystem>();
  testing::Nfs4Instance served{loop, store};
  Loopback nfs{loop, &served.server};
  FileSystemOptions options;
};

TEST(ClientSession4, goes_without_credentials_where_the_export_takes_nothing_else) {
  ServedByFlavor world("sec=none");
  for (const char* version : {"4.0", "4.1", "4.2"}) {
    auto session = world.opened(version);
    ASSERT_TRUE(session.ok()) << session.error().sentence;
    FileSystem& files = (*session)->files();
    EXPECT_EQ(files.root_path(), "/none") << version;
    EXPECT_TRUE(run_on(world.loop, files.getattr(files.root())).ok()) << version;
    run_on(world.loop, session_closed(**session));
  }
}

TEST(ClientSession4, says_where_an_export_wants_another_security_flavor) {
  ServedByFlavor world("sec=krb5");
  auto session = world.opened("4.2");
  ASSERT_TRUE(session.ok()) << session.error().sentence;
  const auto found = run_on(world.loop, (*session)->files().walk((*session)->path()));
  ASSERT_FALSE(found.ok());
  EXPECT_TRUE(found.error().is(Status::WrongSecurity)) << found.error().sentence;
  run_on(world.loop, session_closed(**session));
}

TEST(ClientSession4, is_the_highest_version_that_both_speak_where_the_URL_names_none) {
  testing::ManualLoop loop;
  testing::Nfs4Instance served(loop, std::make_shared<vfs::MemoryFileSystem>());
  Loopback nfs(loop, &served.server);
  Loopback nowhere(loop, nullptr);
  FileSystemOptions options;
  options.calls.credentials = rpc::Credentials::sys("tests", 0, 0);
  for (const char* path : {"/", "/data/a", "/nothing"}) {
    const Url url = *Url::parse("nfs://server" + std::string(path));
    auto session = run_on(loop, Session::open({nfs, nowhere}, url, options));
    ASSERT_TRUE(session.ok()) << session.error().sentence;
    EXPECT_EQ((*session)->url().version, 4u);
    EXPECT_EQ((*session)->url().minor, 2u);
    run_on(loop, session_closed(**session));
  }
}

// Of a path that version 4 does not have MOUNT is asked.
TEST(ClientSession4, ends_where_memory_runs_out_over_MOUNT) {
  testing::ManualLoop loop;
  testing::Nfs4Instance served(loop, std::make_shared<vfs::MemoryFileSystem>());
  Loopback nfs(loop, &served.server), mount(loop, &served.server);
  mount.out_of_memory = true;
  FileSystemOptions options;
  options.calls.credentials = rpc::Credentials::sys("tests", 0, 0);
  const Url url = *Url::parse("nfs://server/nothing");
  EXPECT_TRUE(run_on(loop, runs_out_of_memory(Session::open({nfs, mount}, url, options))));
  EXPECT_FALSE(mount.servers.empty());
  for (std::uint32_t i = 0; i < state::Clients::kShards; ++i)
    EXPECT_TRUE(served.nfs4.administration().clients(i, loop.now()).empty());
}

TEST(ClientSession4, begins_where_the_file_system_of_the_path_does) {
  testing::ManualLoop loop;
  testing::Nfs4Instance served(loop, std::make_shared<vfs::MemoryFileSystem>());
  Loopback nfs(loop, &served.server);
  FileSystemOptions options;
  options.calls.credentials = rpc::Credentials::sys("tests", 0, 0);
  struct Case {
    const char *path, *root, *rest;
  };
  for (const Case& one :
       {Case{"/", "/", ""}, Case{"/data", "/data", ""}, Case{"//srv/./fixed//", "/srv/fixed", ""},
        Case{"/./data/a", "/data", "a"}, Case{"/srv", "/", "srv"},
        Case{"/data/a//b", "/data", "a//b"}, Case{"/nothing/b", "/", "nothing/b"},
        Case{"/data/../x", "/data", "../x"}}) {
    const Url url = *Url::parse("nfs://server" + std::string(one.path) + "?version=4");
    auto session = run_on(loop, Session::open({nfs, nfs}, url, options));
    ASSERT_TRUE(session.ok()) << session.error().sentence;
    EXPECT_EQ((*session)->files().root_path(), one.root);
    EXPECT_EQ((*session)->path(), one.rest);
    run_on(loop, session_closed(**session));
  }
}

}  // namespace
}  // namespace stag::nfs::client
