// The Upper-Layer Binding of NFSv4 (RFC 8267 section 6) on every fabric: which chunk holds what.
#include <algorithm>

#include "rpc/rdma/server.h"
#include "testing/all_fabrics.h"
#include "testing/nfs/nfs4_wire.h"

namespace stag::testing {
namespace {

namespace v4 = nfs::v4;

constexpr std::uint32_t kThreshold = 8192;

class Nfs4Wire : public ::testing::TestWithParam<FabricFactory> {
 protected:
  Nfs4Wire() {
    nfs::ExportOptions open;
    open.root_squash = false;
    nfs::Exports exports;
    STAG_CHECK(exports.add(1, {"/data", store_, open}).ok());
    context_.exports.replace(std::move(exports));
    nfs4_.add_program(programs_);
    address_ = *server_.listen(harness_->fabric(), harness_->any_address());
    connect(kThreshold);
    set_up_session({0, 1 << 20, 1 << 20, 4096, 32, 16, {}});
    root_ = handle_of({});
  }
  ~Nfs4Wire() override {
    peer_.reset();
    harness_->run(closed());
  }
  Task<Ok> closed() {
    co_await server_.close();
    co_return Ok{};
  }
  // Another connection, with this inline threshold in both directions.
  void connect(std::uint32_t threshold) {
    peer_ = std::make_unique<WirePeer>(*harness_, address_, threshold);
  }

  v4::COMPOUND4args compound(std::vector<Op> operations, std::uint32_t minor = 1) {
    v4::SEQUENCE4args args;
    args.sa_sessionid = session_;
    args.sa_sequenceid = ++sequenceid_;
    args.sa_cachethis = cache_this_;
    operations.insert(operations.begin(), op(v4::OP_SEQUENCE, &Op::opsequence, args));
    return {"", minor, std::move(operations)};
  }
  // In the session, behind a SEQUENCE whose result is that of operation 0.
  WireReply run(std::vector<Op> operations, const Chunks& chunks = {}, std::uint32_t minor = 1) {
    return peer_->call(compound(std::move(operations), minor), chunks);
  }
  v4::CREATE_SESSION4resok create_session(const v4::channel_attrs4& fore) {
    v4::EXCHANGE_ID4args who;
    who.eia_clientowner.co_ownerid = Rope::copy_of(bytes_of(std::to_string(++clients_)));
    const WireReply known =
        peer_->call({"", 1, {op(v4::OP_EXCHANGE_ID, &Op::opexchange_id, std::move(who))}});
    const auto& client = known.results.resarray.at(0).opexchange_id().eir_resok4();
    clientid_ = client.eir_clientid;
    v4::CREATE_SESSION4args wanted;
    wanted.csa_clientid = clientid_;
    wanted.csa_sequence = client.eir_sequenceid;
    wanted.csa_fore_chan_attrs = fore;
    wanted.csa_back_chan_attrs = {0, 4096, 4096, 0, 2, 1, {}};
    const WireReply made =
        peer_->call({"", 1, {op(v4::OP_CREATE_SESSION, &Op::opcreate_session, wanted)}});
    EXPECT_EQ(made.results.status, v4::NFS4_OK);
    return made.results.resarray.at(0).opcreate_session().csr_resok4();
  }
  void set_up_session(const v4::channel_attrs4& fore) {
    session_ = create_session(fore).csr_sessionid;
    sequenceid_ = 0;
    const Op complete =
        op(v4::OP_RECLAIM_COMPLETE, &Op::opreclaim_complete, v4::RECLAIM_COMPLETE4args{});
    EXPECT_EQ(run({complete}).results.status, v4::NFS4_OK);
  }
  v4::nfs_fh4 handle_of(std::vector<std::string> names) {
    std::vector<Op> operations{putrootfh(), lookup("data")};
    for (std::string& name : names) operations.push_back(lookup(std::move(name)));
    operations.push_back(getfh());
    const WireReply reply = run(std::move(operations));
    EXPECT_EQ(reply.results.status, v4::NFS4_OK);
    if (reply.results.status != v4::NFS4_OK) return {};
    return reply.results.resarray.back().opgetfh().resok4().object;
  }

  // A file with these bytes.
  v4::nfs_fh4 file(const std::string& name, const std::string& bytes) {
    v4::OPEN4args args;
    args.share_access = v4::OPEN4_SHARE_ACCESS_BOTH;
    args.owner = {clientid_, Rope::copy_of(bytes_of("owner"))};
    args.openhow.opentype = v4::OPEN4_CREATE;
    args.openhow.how().mode = v4::UNCHECKED4;
    args.openhow.how().createattrs() = {};
    args.claim.claim = v4::CLAIM_NULL;
    args.claim.file() = name;
    const WireReply made =
        run({putfh(root_), op(v4::OP_OPEN, &Op::opopen, std::move(args)), write(bytes), getfh()});
    EXPECT_EQ(made.results.status, v4::NFS4_OK);
    return made.results.resarray.back().opgetfh().resok4().object;
  }
  static Op write(std::string_view bytes) {
    return op(v4::OP_WRITE, &Op::opwrite, {{}, 0, v4::FILE_SYNC4, Rope::copy_of(bytes_of(bytes))});
  }
  static Op read(std::uint32_t count) {
    return op(v4::OP_READ, &Op::opread, v4::READ4args{{}, 0, count});
  }
  static Op readlink() { return op(v4::OP_READLINK); }
  static Op symlink_op(const std::string& name, const std::string& target) {
    v4::CREATE4args args;
    args.objtype.type = v4::NF4LNK;
    args.objtype.linkdata() = Rope::copy_of(bytes_of(target));
    args.objname = name;
    return op(v4::OP_CREATE, &Op::opcreate, std::move(args));
  }
  v4::nfs_fh4 symlink(const std::string& name, const std::string& target) {
    const WireReply made = run({putfh(root_), symlink_op(name, target), getfh()});
    EXPECT_EQ(made.results.status, v4::NFS4_OK);
    return made.results.resarray.back().opgetfh().resok4().object;
  }
  std::string contents(const v4::nfs_fh4& handle) {
    return run({putfh(handle), read(4096)}).data(2);
  }

  const std::unique_ptr<FabricHarness> harness_ = GetParam().make();
  std::shared_ptr<vfs::MemoryFileSystem> store_ = std::make_shared<vfs::MemoryFileSystem>();
  nfs::ServerContext context_{nfs::ServerState::ephemeral(7)};
  nfs::nfs4::Nfs4Server nfs4_{context_, {}};
  rpc::Server programs_;
  rpc::rdma::Server server_{programs_};
  Address address_;
  std::unique_ptr<WirePeer> peer_;
  v4::clientid4 clientid_ = 0;
  v4::sessionid4 session_{};
  std::uint32_t sequenceid_ = 0;
  int clients_ = 0;
  bool cache_this_ = false;
  v4::nfs_fh4 root_;
};

// RFC 8881 2.10.3.1, 2.10.5: a client with several connections, and a retry that takes another one.
TEST_P(Nfs4Wire, four_connections_carry_one_session) {
  const v4::nfs_fh4 made = file("shared", "hello");
  std::vector<std::unique_ptr<WirePeer>> peers;
  peers.push_back(std::move(peer_));
  const v4::BIND_CONN_TO_SESSION4args fore{session_, v4::CDFC4_FORE, false};
  while (peers.size() < 4) {
    connect(kThreshold);
    const WireReply bound =
        peer_->call({"", 1, {op(v4::OP_BIND_CONN_TO_SESSION, &Op::opbind_conn_to_session, fore)}});
    EXPECT_EQ(bound.results.status, v4::NFS4_OK);
    peers.push_back(std::move(peer_));
  }
  const auto on = [&](std::size_t place, const v4::COMPOUND4args& args) {
    return peers[place]->call(args).results;
  };
  for (std::size_t i = 0; i < 8; ++i) {
    const v4::COMPOUND4res read = on(i % 4, compound({putfh(made), Nfs4Wire::read(100)}));
    ASSERT_EQ(read.status, v4::NFS4_OK);
    EXPECT_EQ(text_of(read.resarray.at(2).opread().resok4().data.flatten().bytes()), "hello");
  }
  cache_this_ = true;
  const v4::COMPOUND4args once = compound({putfh(root_), symlink_op("once", "target"), getfh()});
  const v4::COMPOUND4res first = on(0, once);
  EXPECT_EQ(first.status, v4::NFS4_OK);
  EXPECT_EQ(on(3, once), first);
}

INSTANTIATE_TEST_SUITE_P(On, Nfs4Wire, ::testing::ValuesIn(all_fabrics()), fabric_name);

std::string letters(std::size_t size, char first = 'a') {
  std::string text(size, first);
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(first + i % 20);
  return text;
}
using Written = std::vector<std::string>;

TEST_P(Nfs4Wire, takes_the_data_of_a_WRITE_and_a_link_from_Read_chunks) {
  PROVES("R8267-6.1-a", "R8267-6.1-b");
  const v4::nfs_fh4 there = file("file", "");
  const std::string data = letters(3001), target = letters(101);
  const WireReply written =
      run({putfh(there), write(data)}, {.reduced = {v4::item::WRITE4args_data}});
  ASSERT_EQ(written.results.status, v4::NFS4_OK);
  EXPECT_EQ(contents(there), data);
  const WireReply made = run({putfh(root_), symlink_op("link", target)},
                             {.reduced = {v4::item::createtype4_linkdata}});
  ASSERT_EQ(made.results.status, v4::NFS4_OK);
  EXPECT_EQ(run({putfh(handle_of({"link"})), readlink()}).link(2), target);
}

TEST_P(Nfs4Wire, puts_what_READ_and_READLINK_find_into_Write_chunks) {
  PROVES("R8267-6.1-c", "R8267-6.1-d", "R8267-6.4.2-e");
  const v4::nfs_fh4 there = file("file", letters(3001));
  const v4::nfs_fh4 link = symlink("link", letters(101));
  const WireReply data = run({putfh(there), read(4096)}, {.write_list = {{4096}}});
  ASSERT_TRUE(data.decoded);
  EXPECT_EQ(data.written, Written{letters(3001)});
  const WireReply path = run({putfh(link), readlink()}, {.write_list = {{1024}}});
  ASSERT_TRUE(path.decoded);
  EXPECT_EQ(path.written, Written{letters(101)});
  EXPECT_EQ(path.link(2), letters(101));
}

TEST_P(Nfs4Wire, tells_Read_chunks_apart_by_their_positions) {
  PROVES("R8267-6.4.1-a");
  const v4::nfs_fh4 one = file("one", ""), two = file("two", ""), three = file("three", "");
  const WireReply written = run({putfh(one), write(letters(1001)), putfh(two),
                                 write(letters(2002, 'b')), putfh(three), write("short")},
                                {.reduced = {v4::item::WRITE4args_data}});
  ASSERT_EQ(written.results.status, v4::NFS4_OK);
  EXPECT_EQ(contents(one), letters(1001));
  EXPECT_EQ(contents(two), letters(2002, 'b'));
  EXPECT_EQ(contents(three), "short");
}

TEST_P(Nfs4Wire, pairs_READ_and_READLINK_with_Write_chunks_in_one_sequence) {
  PROVES("R8267-6.4.3-a", "R8267-6.4.1-c", "R8267-6.4.1-d", "R8267-6.4.1-e");
  file("one", letters(3000));
  symlink("link", letters(100, 'c'));
  file("two", letters(2000, 'b'));
  const WireReply reply = run({putfh(root_), lookup("one"), read(4096), putfh(root_),
                               lookup("link"), readlink(), putfh(root_), lookup("two"), read(4096)},
                              {.write_list = {{4096}, {1024}, {4096}}});
  ASSERT_EQ(reply.results.status, v4::NFS4_OK);
  EXPECT_EQ(reply.written, (Written{letters(3000), letters(100, 'c'), letters(2000, 'b')}));
  EXPECT_LT(reply.stream_size, 1000u);
}

TEST_P(Nfs4Wire, answers_inline_what_meets_an_empty_Write_chunk) {
  PROVES("R8267-6.4.3-b", "R8267-6.4.1-g");
  file("one", letters(3000));
  symlink("link", letters(100, 'c'));
  file("two", letters(2000, 'b'));
  const WireReply reply = run({putfh(root_), lookup("one"), read(4096), putfh(root_),
                               lookup("link"), readlink(), putfh(root_), lookup("two"), read(4096)},
                              {.write_list = {{4096}, {}, {4096}}});
  ASSERT_TRUE(reply.decoded);
  ASSERT_EQ(reply.results.status, v4::NFS4_OK);
  EXPECT_EQ(reply.written, (Written{letters(3000), "", letters(2000, 'b')}));
  EXPECT_TRUE(reply.header.write_list[1].segments.empty());
  EXPECT_EQ(reply.link(6), letters(100, 'c'));
}

TEST_P(Nfs4Wire, answers_inline_what_has_no_Write_chunk) {
  PROVES("R8267-6.4.1-i", "R8267-6.4.1-b");
  const v4::nfs_fh4 there = file("file", letters(1000));
  const v4::nfs_fh4 link = symlink("link", letters(100));
  const WireReply one = run({putfh(there), read(500), read(1000)}, {.write_list = {{500}}});
  ASSERT_TRUE(one.decoded);
  EXPECT_EQ(one.written, Written{letters(500)});
  EXPECT_EQ(one.data(3), letters(1000));
  const WireReply none = run({putfh(there), read(1000), putfh(link), readlink()});
  ASSERT_TRUE(none.decoded);
  EXPECT_EQ(none.data(2), letters(1000));
  EXPECT_EQ(none.link(4), letters(100));
}

TEST_P(Nfs4Wire, uses_a_Write_chunk_for_three_bytes_too) {
  PROVES("R8267-6.4.1-f");
  const v4::nfs_fh4 there = file("file", "abc");
  const WireReply reply = run({putfh(there), read(4096)}, {.write_list = {{4096}}});
  ASSERT_TRUE(reply.decoded);
  EXPECT_EQ(reply.written, Written{"abc"});
}

// The second READ fails; the third is not run.
TEST_P(Nfs4Wire, returns_the_Write_chunk_of_a_READ_without_data_unused) {
  PROVES("R8267-6.4.1-h");
  const v4::nfs_fh4 there = file("file", letters(300));
  const WireReply reply = run({putfh(there), read(100), putfh(root_), read(100), read(100)},
                              {.write_list = {{100}, {100, 100}, {100}}});
  ASSERT_TRUE(reply.decoded);
  EXPECT_EQ(reply.results.status, v4::NFS4ERR_ISDIR);
  EXPECT_EQ(reply.written, (Written{letters(100), "", ""}));
  EXPECT_EQ(reply.header.write_list[1].segments.size(), 2u);
}

TEST_P(Nfs4Wire, takes_Calls_with_a_Position_Zero_chunk_a_data_chunk_or_both) {
  PROVES("R8267-6.4.2-d");
  const v4::nfs_fh4 there = file("file", "");
  char first = 'a';
  for (const bool long_call : {false, true}) {
    for (const bool reduced : {false, true}) {
      Chunks chunks{.long_call = long_call};
      if (reduced) chunks.reduced = {v4::item::WRITE4args_data};
      const std::string data = letters(2001, ++first);
      const WireReply written = run({putfh(there), write(data)}, chunks);
      ASSERT_EQ(written.results.status, v4::NFS4_OK) << long_call << reduced;
      EXPECT_EQ(contents(there), data);
    }
  }
}

TEST_P(Nfs4Wire, takes_chunks_of_sixteen_segments) {
  PROVES("R8267-6.4.2-f");
  const v4::nfs_fh4 there = file("file", "");
  const std::string data = letters(3200);
  const std::vector<std::uint32_t> sixteen(16, 200);
  const WireReply written =
      run({putfh(there), write(data)},
          {.reduced = {v4::item::WRITE4args_data}, .read_segments = 16, .long_call = true});
  ASSERT_EQ(written.results.status, v4::NFS4_OK);
  const WireReply read_back =
      run({putfh(there), read(3200)}, {.write_list = {sixteen}, .reply_chunk = sixteen});
  ASSERT_TRUE(read_back.decoded);
  EXPECT_EQ(read_back.written, Written{data});
  const std::vector<std::uint32_t> large(16, 700);
  const WireReply long_reply = run({putfh(there), read(3200), read(3200), read(3200)},
                                   {.write_list = {{}}, .reply_chunk = large});
  ASSERT_TRUE(long_reply.decoded);
  EXPECT_EQ(long_reply.header.proc, rpcrdma::RDMA_NOMSG);
  EXPECT_EQ(long_reply.data(4), data);
}

TEST_P(Nfs4Wire, answers_a_chunk_list_beyond_its_limits_with_ERR_CHUNK) {
  PROVES("R8267-6.4.2-g");
  const v4::nfs_fh4 there = file("file", letters(300));
  const v4::COMPOUND4args args = compound({putfh(there), read(300)});
  const WireReply refused = peer_->call(args, {.write_list = {std::vector<std::uint32_t>(65, 8)}});
  ASSERT_TRUE(refused.error.has_value());
  EXPECT_EQ(refused.error->code, rpcrdma::ERR_CHUNK);
  // Nothing ran: the slot still waits for the same sequence, on the same connection.
  EXPECT_EQ(peer_->call(args, {.write_list = {{512}}}).written, Written{letters(300)});
}

TEST_P(Nfs4Wire, answers_a_Read_chunk_that_fits_no_argument_with_GARBAGE_ARGS) {
  PROVES("R8267-6.4.2-h");
  const v4::nfs_fh4 there = file("file", "before");
  for (const std::int32_t by : {-4, 4}) {
    const v4::COMPOUND4args args =
        compound({putfh(there), write(letters(400)), putfh(there), write(letters(400)), getfh()});
    const WireReply refused =
        peer_->call(args, {.reduced = {v4::item::WRITE4args_data}, .misplaced_by = by});
    EXPECT_EQ(refused.rpc.reply, oncrpc::ReplyStat::MSG_ACCEPTED);
    EXPECT_EQ(refused.rpc.accept, oncrpc::AcceptStat::GARBAGE_ARGS);
    --sequenceid_;
    EXPECT_EQ(contents(there), "before") << "nothing ran";
  }
}

// What any argument of a variable length could be, by what the generated code calls it.
TEST_P(Nfs4Wire, takes_nothing_but_WRITE_and_link_data_from_Read_chunks) {
  PROVES("R8267-6.1-e", "R8267-7-a");
  const v4::nfs_fh4 there = file("file", "before");
  v4::SETATTR4args set;
  set.obj_attributes.attrmask = {1u << v4::FATTR4_SIZE};
  set.obj_attributes.attr_vals = Rope::copy_of(std::array<std::byte, 8>{});
  v4::SETXATTR4args xattr;
  xattr.sxa_key = "user.key";
  xattr.sxa_value = Rope::copy_of(bytes_of("a long value"));
  const std::pair<xdr::ItemId, Op> all[] = {
      {v4::item::COMPOUND4args_tag, putrootfh()},
      {v4::item::LOOKUP4args_objname, lookup("data")},
      {v4::item::fattr4_attr_vals, op(v4::OP_SETATTR, &Op::opsetattr, set)},
      {v4::item::SETXATTR4args_sxa_value, op(v4::OP_SETXATTR, &Op::opsetxattr, xattr)}};
  for (const auto& [item, operation] : all) {
    v4::COMPOUND4args args = compound({putfh(there), operation, putfh(there), write("after")}, 2);
    args.tag = "tag";
    const WireReply refused = peer_->call(args, {.reduced = {item}});
    const bool unknown = refused.results.status == v4::NFS4ERR_NOTSUPP;
    EXPECT_TRUE(refused.rpc.accept == oncrpc::AcceptStat::GARBAGE_ARGS || unknown) << item;
    if (!unknown) --sequenceid_;
    EXPECT_EQ(contents(there), "before") << item;
  }
}

TEST_P(Nfs4Wire, returns_nothing_but_READ_data_and_links_in_Write_chunks) {
  PROVES("R8267-6.1-e", "R8267-7-a");
  const v4::nfs_fh4 there = file("file", letters(300));
  v4::READDIR4args list;
  list.dircount = list.maxcount = 4096;
  const WireReply reply =
      run({putfh(root_), getfh(), getattr({1u << v4::FATTR4_SIZE, 1u << (v4::FATTR4_OWNER - 32)}),
           op(v4::OP_READDIR, &Op::opreaddir, list), putfh(there), read(300)},
          {.write_list = {{4096}, {4096}}});
  ASSERT_TRUE(reply.decoded);
  ASSERT_EQ(reply.results.status, v4::NFS4_OK);
  EXPECT_EQ(reply.written, (Written{letters(300), ""}));
  // READ_PLUS, which another minor version added, meets no chunk either.
  const WireReply other =
      run({putfh(there), op(v4::OP_READ_PLUS, &Op::opread_plus, v4::READ_PLUS4args{{}, 0, 300})},
          {.write_list = {{4096}}}, 2);
  EXPECT_EQ(other.written, Written{""});
}

TEST_P(Nfs4Wire, moves_nothing_of_a_session_by_chunk_and_replays_to_other_chunks) {
  PROVES("R8267-6.6-a");
  const v4::nfs_fh4 there = file("file", letters(1000));
  v4::EXCHANGE_ID4args who;
  who.eia_clientowner.co_ownerid = Rope::copy_of(bytes_of("somebody else"));
  const WireReply refused = peer_->call({"", 1, {op(v4::OP_EXCHANGE_ID, &Op::opexchange_id, who)}},
                                        {.reduced = {v4::item::client_owner4_co_ownerid}});
  EXPECT_EQ(refused.rpc.accept, oncrpc::AcceptStat::GARBAGE_ARGS);
  const WireReply known = peer_->call({"", 1, {op(v4::OP_EXCHANGE_ID, &Op::opexchange_id, who)}},
                                      {.write_list = {{4096}}});
  ASSERT_EQ(known.results.status, v4::NFS4_OK);
  EXPECT_EQ(known.written, Written{""});
  cache_this_ = true;
  const v4::COMPOUND4args args = compound({putfh(there), read(1000)});
  const WireReply first = peer_->call(args, {.write_list = {{1000}}});
  EXPECT_EQ(first.written, Written{letters(1000)});
  const WireReply again = peer_->call(args);
  ASSERT_TRUE(again.decoded);
  EXPECT_EQ(again.data(2), letters(1000));
  EXPECT_EQ(peer_->call(args, {.write_list = {{400, 600}}}).written, Written{letters(1000)});
  const WireReply without_session =
      peer_->call({"", 0, {putfh(there), read(1000)}}, {.write_list = {{1000}}});
  EXPECT_EQ(without_session.written, first.written);
}

TEST_P(Nfs4Wire, makes_no_Reply_longer_than_the_session_allows) {
  PROVES("R8267-6.2.2-a");
  const v4::nfs_fh4 there = file("file", letters(4000));
  set_up_session({0, 1 << 20, 2000, 0, 32, 16, {}});
  for (const std::uint32_t count : {100u, 1000u, 1800u, 1900u, 2000u, 4000u}) {
    for (const bool chunk : {false, true}) {
      Chunks chunks{.reply_chunk = {8192}};
      if (chunk) chunks.write_list = {{4096}, {4096}};
      const WireReply reply = run({putfh(there), read(count), read(1)}, chunks);
      ASSERT_TRUE(reply.decoded);
      EXPECT_LE(reply.size(), 2000u) << count;
      EXPECT_EQ(reply.results.status, count > 1800 ? v4::NFS4ERR_REP_TOO_BIG : v4::NFS4_OK)
          << count;
    }
  }
}

TEST_P(Nfs4Wire, ends_a_COMPOUND_where_its_results_would_not_go_into_the_Reply) {
  const v4::nfs_fh4 there = file("file", letters(4000));
  connect(1024);
  constexpr std::uint32_t kOnlySet =
      1u << (v4::FATTR4_TIME_ACCESS_SET - 32) | 1u << (v4::FATTR4_TIME_MODIFY_SET - 32);
  const Op all = getattr({~(1u << v4::FATTR4_ACL), ~kOnlySet});
  const std::vector<Op> asks = {putfh(there), write("after"), all, all, all, all, all, all};
  for (const bool chunk : {false, true}) {
    const Chunks chunks = chunk ? Chunks{.reply_chunk = {1100}} : Chunks{};
    const WireReply later = run(asks, chunks);
    ASSERT_TRUE(later.decoded) << "not RDMA_ERROR, after the WRITE was done";
    EXPECT_EQ(later.results.status, v4::NFS4ERR_REP_TOO_BIG);
    EXPECT_GT(later.results.resarray.size(), 3u);
    const WireReply first = peer_->call({"", 0, asks}, chunks);
    ASSERT_TRUE(first.decoded);
    EXPECT_EQ(first.results.status, v4::NFS4ERR_RESOURCE);
  }
  // What goes into Write chunks takes nothing of it.
  const WireReply reply = run({putfh(there), read(4000), write("again")}, {.write_list = {{4000}}});
  ASSERT_TRUE(reply.decoded);
  EXPECT_EQ(reply.results.status, v4::NFS4_OK);
}

// Long messages carry what the inline threshold does not.
TEST_P(Nfs4Wire, grants_the_same_session_whatever_the_inline_threshold) {
  const v4::channel_attrs4 wanted{0, 4u << 20, 4u << 20, 4096, 16, 16, {}};
  const v4::channel_attrs4 wide = create_session(wanted).csr_fore_chan_attrs;
  connect(1024);
  const v4::CREATE_SESSION4resok narrow = create_session(wanted);
  EXPECT_EQ(narrow.csr_fore_chan_attrs, wide);
  EXPECT_GE(wide.ca_maxrequestsize, 1u << 20);
  EXPECT_GE(wide.ca_maxresponsesize, 1u << 20);
  const std::string data = letters(50000);
  const v4::nfs_fh4 there = file("file", "");
  ASSERT_EQ(run({putfh(there), write(data)}, {.long_call = true}).results.status, v4::NFS4_OK);
  const WireReply reply = run({putfh(there), read(50000)}, {.reply_chunk = {60000}});
  ASSERT_TRUE(reply.decoded);
  EXPECT_EQ(reply.data(2), data);
}

}  // namespace
}  // namespace stag::testing
