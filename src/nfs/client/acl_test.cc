// Access control lists, read and replaced by the client; the second half over RPC-over-RDMA on a
// simulated fabric.
#include "nfs/client/acl.h"

#include "nfs/client/session/mount.h"
#include "nfs/export/file_handle.h"
#include "nfs/ulb/nfsacl.h"
#include "testing/nfs/client_harness.h"
#include "testing/rdma_pair.h"

namespace stag::nfs::client::acl_test {
namespace {

using namespace nfsacl;

const std::vector<AclEntry> kForBob{{ACL_USER_OBJ, 0, 6},
                                    {ACL_USER, 1001, 6},
                                    {ACL_GROUP_OBJ, 0, 4},
                                    {ACL_CLASS_OBJ, 0, 6},
                                    {ACL_OTHER_OBJ, 0, 0}};

// As long as NFSACL lets it be, or `size`.
std::vector<AclEntry> long_list(std::uint32_t size = NFS_ACL_MAX_ENTRIES) {
  std::vector<AclEntry> list{{ACL_USER_OBJ, 0, 7}};
  for (std::uint32_t id = 1; id <= size - 4; ++id) list.push_back({ACL_USER, id, id % 8});
  list.push_back({ACL_GROUP_OBJ, 0, 5});
  list.push_back({ACL_CLASS_OBJ, 0, 7});
  list.push_back({ACL_OTHER_OBJ, 0, 0});
  return list;
}

class ClientAcl : public ClientTest {};

TEST_F(ClientAcl, has_three_entries_for_a_mode) {
  const Handle file = made_file("file");
  const Acls acls = must(files().acls(file));
  const std::vector<AclEntry> expected{
      {ACL_USER_OBJ, 0, 6}, {ACL_GROUP_OBJ, 0, 4}, {ACL_OTHER_OBJ, 0, 4}};
  EXPECT_EQ(acls.access, expected);
  EXPECT_TRUE(acls.defaults.empty());
  EXPECT_FALSE(acls.beyond_mode());
}

TEST_F(ClientAcl, comes_back_in_order_as_it_was_set) {
  const Handle file = made_file("file");
  must(files().set_acls(file, {{kForBob.rbegin(), kForBob.rend()}, {}}));
  const Acls acls = must(files().acls(file));
  EXPECT_EQ(acls.access, kForBob);
  EXPECT_TRUE(acls.beyond_mode());
  must(files().set_acls(file, {long_list(), {}}));
  EXPECT_EQ(must(files().acls(file)).access, long_list());
  EXPECT_EQ(error(files().set_acls(file, {long_list(NFS_ACL_MAX_ENTRIES + 1), {}})).call.reason,
            Reason::RpcArgumentsUnencodable);
}

TEST_F(ClientAcl, keeps_the_defaults_of_a_directory_unless_asked_to_replace_them) {
  const Handle dir = must(files().mkdir(files().root(), "dir", {.mode = 0750})).handle;
  const std::vector<AclEntry> access = must(files().acls(dir)).access;
  must(files().set_acls(dir, {access, kForBob}, true));
  EXPECT_EQ(must(files().acls(dir)).defaults, kForBob);
  must(files().set_acls(dir, {kForBob, {}}));
  EXPECT_EQ(must(files().acls(dir)).defaults, kForBob);
  must(files().set_acls(dir, {access, {}}, true));
  EXPECT_FALSE(must(files().acls(dir)).beyond_mode());
}

TEST_F(ClientAcl, uses_NFSACL_version_2_with_NFS_version_2) {
  options_.calls.version = 2;
  const auto point = run(mount(channel_, "/data", options_.calls.credentials, {}, 2));
  ASSERT_TRUE(point.ok());
  FileSystem files2(channel_, point->root, "/data", options_);
  const Handle dir = must(files2.mkdir(point->root, "dir", {.mode = 0750})).handle;
  must(files2.set_acls(dir, {kForBob, kForBob}, true));
  constexpr std::size_t kVersion = 4 * 4;
  EXPECT_EQ(load_be<std::uint32_t>(channel_.last_call.data() + kVersion), 2u);
  EXPECT_EQ(must(files2.acls(dir)).access, kForBob);
  EXPECT_EQ(must(files2.acls(dir)).defaults, kForBob);
  EXPECT_EQ(load_be<std::uint32_t>(channel_.last_call.data() + kVersion), 2u);
}

TEST_F(ClientAcl, yields_an_error_with_a_sentence_when_the_server_refuses_it) {
  options_.calls.credentials = rpc::Credentials::sys("tests", 1001, 1001);
  const Error refused = error(files().set_acls(files().root(), {kForBob, {}}));
  EXPECT_TRUE(refused.is(Status::NotOwner));
  EXPECT_FALSE(means_no_acls(refused));
  EXPECT_EQ(refused.sentence,
            "cannot change the access control list: only the owner or root may do that");
}

TEST(ClientAclFaults, are_errors_without_NFSACL_or_with_half_an_answer) {
  Scripted without;
  const auto none = without.run(without.files.acls(without.files.root()));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().call.status.accept, oncrpc::AcceptStat::PROG_UNAVAIL);
  EXPECT_TRUE(means_no_acls(none.error()));
  Scripted half;
  half.on<ACLPROC3_GETACL>([](const auto& args, GETACL3res& res) {
    res.resok().acls.mask = args.mask;
    res.resok().acls.aclcnt = 4;
  });
  const auto answer = half.run(half.files.acls(half.files.root()));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, Error::Kind::Protocol);
  EXPECT_FALSE(means_no_acls(answer.error()));
}

TEST(ClientAclFaults, say_when_what_is_served_cannot_keep_any) {
  for (const std::uint32_t unsupported : {std::uint32_t{v3::NFS3ERR_NOTSUPP}, 45u}) {
    Scripted world;
    world.on<ACLPROC3_GETACL>([&](const auto&, GETACL3res& res) {
      res.status = unsupported;
      res.resfail() = {};
    });
    const auto answer = world.run(world.files.acls(world.files.root()));
    ASSERT_FALSE(answer.ok());
    EXPECT_TRUE(means_no_acls(answer.error()));
  }
}

TEST(ClientAclText, equals_that_of_getfacl) {
  EXPECT_EQ(to_string(AclEntry{ACL_USER_OBJ, 0, 7}), "user::rwx");
  EXPECT_EQ(to_string(AclEntry{ACL_USER, 1001, 6}), "user:1001:rw-");
  EXPECT_EQ(to_string(AclEntry{ACL_GROUP_OBJ, 0, 5}), "group::r-x");
  EXPECT_EQ(to_string(AclEntry{ACL_GROUP, 20, 1}), "group:20:--x");
  EXPECT_EQ(to_string(AclEntry{ACL_CLASS_OBJ, 0, 2}), "mask::-w-");
  EXPECT_EQ(to_string(AclEntry{ACL_OTHER_OBJ, 0, 0}), "other::---");
}

TEST(ClientAclText, equals_that_of_nfs4_getfacl) {
  EXPECT_EQ(to_string(Nfs4Ace{0, 0, 0x1601bf, "OWNER@"}), "A::OWNER@:rwaxtTnNcCy");
  EXPECT_EQ(to_string(Nfs4Ace{1, 0x40, 0x6, "1000"}), "D:g:1000:wa");
  EXPECT_EQ(to_string(Nfs4Ace{2, 0x3f, 0x1ffffe, "EVERYONE@"}), "U:fdniSF:EVERYONE@:waDdxtTnNcCoy");
  EXPECT_EQ(to_string(Nfs4Ace{3, 0, 0, ""}), "L:::");
  EXPECT_EQ(to_string(Nfs4Ace{4, 0, 0x1, "x"}), "?::x:r");
}

// A server and a client of it, joined by the simulated fabric.
class ClientAclOverRdma : public ::testing::Test {
 protected:
  ClientAclOverRdma() {
    ExportOptions open;
    open.root_squash = false;
    STAG_CHECK(nfs.add_export("/data", store, open).ok());
    nfs.add_nfs(pair.program_server);
    STAG_CHECK(pair.connect().ok());
  }
  static rpc::rdma::PairSetup setup() {
    rpc::rdma::PairSetup setup;
    setup.client.transport.inline_size = setup.server.transport.inline_size = 4096;
    return setup;
  }
  static Handle root_of(const vfs::FileSystem& fs) {
    const FileHandles handles(ServerState::ephemeral(7).handle_key);
    Handle root;
    root = *Handle::from(handles.seal(handles.export_id("/data"), fs.root()).bytes());
    return root;
  }
  static FileSystemOptions as_root() {
    FileSystemOptions options;
    options.calls.credentials = rpc::Credentials::sys("tests", 0, 0);
    return options;
  }
  template <class T>
  T must(Task<Outcome<T>> task) {
    Outcome<T> outcome = pair.loop.run(std::move(task));
    if (!outcome) ADD_FAILURE() << outcome.error().sentence;
    return outcome ? std::move(*outcome) : T{};
  }
  // Calls of NFSACL as they were sent; a Long Call shows no procedure.
  std::vector<rpc::rdma::WireMessage> calls() { return pair.calls(testing::End::Active); }
  static std::uint64_t reply_chunk_of(const rpc::rdma::WireMessage& call) {
    std::uint64_t length = 0;
    if (call.header.reply_chunk)
      for (const auto& segment : call.header.reply_chunk->segments) length += segment.length;
    return length;
  }

  std::shared_ptr<vfs::MemoryFileSystem> store = std::make_shared<vfs::MemoryFileSystem>();
  NfsServer nfs{ServerState::ephemeral(7)};
  rpc::rdma::Pair pair{setup()};
  FileSystem files{*pair.channel, root_of(*store), "/data", as_root()};
};

TEST_F(ClientAclOverRdma, travels_whole_in_both_directions_on_the_connection_of_NFS) {
  PROVES("R8267-5.2-a", "R8267-5.2-b");
  const Node dir = must(files.mkdir(files.root(), "dir", {.mode = 0750}));
  must(files.set_acls(dir.handle, {long_list(), long_list()}, true));
  const Acls acls = must(files.acls(dir.handle));
  EXPECT_EQ(acls.access, long_list());
  EXPECT_EQ(acls.defaults, long_list());
  ASSERT_EQ(calls().size(), 3u);
  const auto set = calls()[1];
  EXPECT_EQ(set.header.proc, rpcrdma::RDMA_NOMSG);
  EXPECT_FALSE(set.header.read_list.empty());
  EXPECT_GT(reply_chunk_of(calls()[2]), 2 * 12 * NFS_ACL_MAX_ENTRIES);
  for (const auto& message : pair.messages(testing::End::Active)) {
    EXPECT_EQ(message.connection, calls()[0].connection);
    EXPECT_TRUE(message.header.write_list.empty());
    for (const auto& chunk : message.header.read_list) EXPECT_EQ(chunk.position, 0u);
  }
}

TEST_F(ClientAclOverRdma, gets_the_Reply_chunk_that_its_reader_chose) {
  PROVES("R8267-5.2-d");
  for (const std::uint32_t chosen : {5000u, 9000u, 30000u}) {
    must(files.acls(files.root(), chosen));
    EXPECT_GE(reply_chunk_of(calls().back()), chosen);
    EXPECT_LT(reply_chunk_of(calls().back()), chosen + 1000);
  }
}

TEST_F(ClientAclOverRdma, is_asked_for_again_with_a_larger_Reply_chunk) {
  PROVES("R8267-5.2-e", "R8267-3.1-c");
  const Node file = must(files.create(files.root(), "file", {.mode = 0600}));
  must(files.set_acls(file.handle, {long_list(), {}}));
  const std::size_t before = calls().size();
  EXPECT_EQ(must(files.acls(file.handle, 1000)).access, long_list());
  const auto asked = calls();
  ASSERT_EQ(asked.size() - before, 5u) << "1000, 2000, 4000, 8000 and 16000 bytes";
  std::set<std::uint32_t> xids;
  for (std::size_t i = before; i < asked.size(); ++i) xids.insert(asked[i].header.xid);
  EXPECT_EQ(xids.size(), 5u);
  EXPECT_EQ(asked.back().connection, asked.front().connection) << "the connection is kept";
}

TEST_F(ClientAclOverRdma, needs_no_Reply_chunk_where_the_Reply_has_no_list) {
  PROVES("R8267-5.2-c");
  const Node file = must(files.create(files.root(), "file", {.mode = 0600}));
  must(files.set_acls(file.handle, {kForBob, {}}));
  rpc::Client client(*pair.channel, ulb::nfsacl(), rpc::Credentials::sys("tests", 0, 0));
  // No version 2 handle of it is known here: any answer has the size of its type at most.
  ASSERT_TRUE(pair.loop.run(client.call<ACLPROC2_GETATTR>({})).ok());
  ASSERT_TRUE(pair.loop.run(client.call<ACLPROC2_ACCESS>({})).ok());
  ASSERT_EQ(calls().size(), 4u) << "nothing was asked twice";
  for (const auto& call : calls()) EXPECT_FALSE(call.header.reply_chunk.has_value());
}

}  // namespace
}  // namespace stag::nfs::client::acl_test
