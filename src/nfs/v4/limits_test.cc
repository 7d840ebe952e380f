// What a COMPOUND and its results may be at most: operations and bytes (RFC 8881 2.10.6.4, 18.36.3;
// RFC 7530 13.1.1.3, 13.1.3.4).
#include "testing/nfs/nfs40_fixture.h"
#include "testing/toy_security.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

constexpr std::uint32_t kOperations = 100;
const v4::channel_attrs4 kWide{0, 1 << 20, 1 << 20, 4096, kOperations, 16, {}};

class Nfs4Limits : public Nfs4Served {
 protected:
  explicit Nfs4Limits(std::uint32_t operations = kOperations)
      : Nfs4Served(with_operations(operations)) {}
  static Nfs4Options with_operations(std::uint32_t operations) {
    Nfs4Options options;
    options.clients.fore.max_operations = operations;
    return options;
  }

  // What the server grants of these.
  v4::channel_attrs4 make_session(const v4::channel_attrs4& fore) {
    const auto client = exchange_id("client " + std::to_string(++clients_));
    clientid_ = client.eir_clientid;
    v4::CREATE_SESSION4args args = session_args(clientid_, client.eir_sequenceid);
    args.csa_fore_chan_attrs = fore;
    const Res made = compound({op(v4::OP_CREATE_SESSION, &Op::opcreate_session, args)});
    EXPECT_EQ(made.status, v4::NFS4_OK);
    const auto& session = made.resarray.at(0).opcreate_session().csr_resok4();
    session_ = session.csr_sessionid;
    sequenceid_ = 0;
    EXPECT_EQ(reclaim_complete(), v4::NFS4_OK);
    return session.csr_fore_chan_attrs;
  }

 private:
  int clients_ = 0;
};

TEST_F(Nfs4Limits, let_every_operation_run_that_the_session_grants) {
  const auto granted = make_session({0, 1 << 20, 1 << 20, 4096, 2 * kOperations, 16, {}});
  ASSERT_EQ(granted.ca_maxoperations, kOperations);
  std::vector<Op> operations(kOperations - 2, putrootfh());
  operations.push_back(lookup("nothing"));
  const Res results = run(operations);
  EXPECT_EQ(results.status, v4::NFS4ERR_NOENT);
  EXPECT_EQ(results.resarray.size(), kOperations - 1);
  operations.push_back(putrootfh());
  EXPECT_EQ(run(operations).status, v4::NFS4ERR_TOO_MANY_OPS);
}

TEST_F(Nfs4Limits, bound_the_operations_of_version_4_0_as_those_of_sessions) {
  std::vector<Op> operations(kOperations - 1, putrootfh());
  operations.push_back(lookup("nothing"));
  const Res results = compound(operations, 0);
  EXPECT_EQ(results.status, v4::NFS4ERR_NOENT);
  EXPECT_EQ(results.resarray.size(), kOperations);
  operations.push_back(putrootfh());
  const Res refused = compound(operations, 0);
  EXPECT_EQ(refused.status, v4::NFS4ERR_RESOURCE);
  EXPECT_TRUE(refused.resarray.empty());
}

// RFC 8881 18.36.3: the whole request, RPC header and credential included, as a record of TCP has
// it.
TEST_F(Nfs4Limits, count_the_RPC_header_and_the_chunks_of_a_request) {
  constexpr std::size_t kMost = 400;
  make_session({0, kMost, 1 << 20, 0, kOperations, 16, {}});
  int taken = 0, refused = 0;
  for (const bool in_chunks : {false, true})
    for (std::size_t length = 160; length < 300; length += 4) {
      const std::vector<Op> operations = {sequence(), putrootfh(),
                                          write_op({}, 0, std::string(length, 'x'))};
      channel_.reduce = in_chunks;
      const v4::nfsstat4 status = compound(operations).status;
      channel_.reduce = false;
      const std::size_t size = channel_.last_call.size() + (in_chunks ? length : 0);
      EXPECT_EQ(status == v4::NFS4ERR_REQ_TOO_BIG, size > kMost) << size;
      if (status == v4::NFS4ERR_REQ_TOO_BIG) --sequenceid_;
      ++(status == v4::NFS4ERR_REQ_TOO_BIG ? refused : taken);
    }
  EXPECT_GT(taken, 2);
  EXPECT_GT(refused, 2);
}

// A transport would answer a Reply that it cannot carry with an error of its own, after all
// operations have run.
TEST_F(Nfs4Limits, bound_a_Reply_by_what_the_transport_can_carry) {
  constexpr std::size_t kMost = 300;
  make_session(kWide);
  for (const std::uint32_t minor : {0u, 1u}) {
    const v4::nfsstat4 too_big = minor == 0 ? v4::NFS4ERR_RESOURCE : v4::NFS4ERR_REP_TOO_BIG;
    std::size_t longest = 0;
    for (std::size_t n = 1; n < 40; ++n) {
      std::vector<Op> operations(n, putrootfh());
      if (minor != 0) operations.insert(operations.begin(), sequence());
      channel_.reply_room = {.inline_max = kMost};
      const Res results = compound(std::move(operations), minor);
      channel_.reply_room = {};
      longest = std::max<std::size_t>(longest, channel_.last_reply.size());
      EXPECT_LE(channel_.last_reply.size(), kMost) << n;
      EXPECT_EQ(results.status, results.resarray.size() < n ? too_big : results.status) << n;
      EXPECT_TRUE(results.status == v4::NFS4_OK || results.status == too_big) << results.status;
    }
    EXPECT_GT(longest, kMost - 20);
  }
}

TEST_F(Nfs4Limits, do_not_count_the_data_that_goes_into_Write_chunks) {
  make_session(kWide);
  const Opened file = create("file");
  const Op read = read_op(file.stateid, 0, 5000);
  ASSERT_EQ(run({putfh(file.handle), write_op(file.stateid, 0, std::string(5000, 'x'))}).status,
            v4::NFS4_OK);
  v4::SETATTR4args set;
  set.stateid = file.stateid;
  const auto ends = [&](std::uint32_t chunks, std::vector<Op> operations) {
    operations.insert(operations.begin(), putfh(file.handle));
    channel_.reply_room = {.inline_max = 500, .chunk_max = 0, .write_chunks = chunks};
    const Res results = run(std::move(operations));
    channel_.reply_room = {};
    return std::pair(results.status, results.resarray.size());
  };
  const Op setattr = op(v4::OP_SETATTR, &Op::opsetattr, set);
  EXPECT_EQ(ends(1, {read, setattr, getfh()}), std::pair(v4::NFS4_OK, std::size_t{4}));
  EXPECT_EQ(ends(0, {read, setattr}), std::pair(v4::NFS4ERR_REP_TOO_BIG, std::size_t{2}));
  EXPECT_EQ(ends(1, {read, read, getfh()}), std::pair(v4::NFS4ERR_REP_TOO_BIG, std::size_t{3}));
  EXPECT_EQ(ends(2, {read, read, getfh()}), std::pair(v4::NFS4_OK, std::size_t{4}));
}

// What a client leaves in the server's memory must not be as long as it likes. Linux's client has
// at most one READ or READDIR in a COMPOUND, and these attributes.
TEST_F(Nfs4Limits, bound_Replies_of_version_4_0_as_those_of_sessions) {
  constexpr std::uint32_t kMega = 1 << 20;
  const std::size_t most = state::ClientLimits{}.fore.max_response_size;
  make_session({0, kMega + 4096, kMega, 4096, kOperations, 16, {}});
  const Opened file = create("file");
  ASSERT_EQ(run({putfh(file.handle), write_op(file.stateid, 0, std::string(kMega, 'x'))}).status,
            v4::NFS4_OK);
  const Op read = read_op({}, 0, kMega);
  const Op attributes = getattr({0x0010011a, 0x00b0a23a});
  EXPECT_EQ(compound({putfh(file.handle), read, attributes}, 0).status, v4::NFS4_OK);
  EXPECT_GT(channel_.last_reply.size(), kMega);
  EXPECT_LE(channel_.last_reply.size(), most);
  EXPECT_EQ(compound({putfh(file.handle), read, read, read}, 0).status, v4::NFS4ERR_RESOURCE);
  EXPECT_LE(channel_.last_reply.size(), most);
}

// A refusal is a result, too.
TEST_F(Nfs4Limits, leave_room_in_a_Reply_for_the_refusal_of_the_next_operation) {
  make_session(kWide);
  for (std::uint64_t room = 150; room < 250; room += 4) {
    const std::vector<Op> operations = {
        putrootfh(), getfh(), getattr({1u << v4::FATTR4_TYPE | 1u << v4::FATTR4_CHANGE}),
        op(v4::OP_SETATTR, &Op::opsetattr, v4::SETATTR4args{}), getfh()};
    channel_.reply_room = {.inline_max = room};
    run(operations);
    channel_.reply_room = {};
    EXPECT_LE(channel_.last_reply.size(), room);
  }
}

class Nfs4SealedLimits : public Nfs4Limits {
 protected:
  void SetUp() override {
    server_.add(std::make_unique<ToyAuthenticator>(true));
    credentials_ = rpc::Credentials::secured(std::make_shared<ToySecurity>("somebody", true));
  }
};

TEST_F(Nfs4SealedLimits, count_the_protection_of_a_request) {
  constexpr std::size_t kMost = 300;
  make_session({0, kMost, 1 << 20, 0, kOperations, 16, {}});
  int refused = 0;
  for (std::size_t n = 1; n < 60; ++n) {
    const v4::nfsstat4 status = run(std::vector<Op>(n, putrootfh())).status;
    const bool too_big = channel_.last_call.size() > kMost;
    EXPECT_EQ(status, too_big ? v4::NFS4ERR_REQ_TOO_BIG : v4::NFS4_OK) << n;
    if (too_big) --sequenceid_, ++refused;
  }
  EXPECT_GT(refused, 0);
}

TEST_F(Nfs4SealedLimits, count_the_protection_of_a_Reply) {
  constexpr std::size_t kMost = 300;
  for (const std::uint32_t cached : {0u, 200u}) {
    make_session({0, 1 << 20, kMost, cached, kOperations, 16, {}});
    const std::size_t most = cached == 0 ? kMost : cached;
    const v4::nfsstat4 too_big =
        cached == 0 ? v4::NFS4ERR_REP_TOO_BIG : v4::NFS4ERR_REP_TOO_BIG_TO_CACHE;
    std::size_t longest = 0;
    for (std::size_t n = 1; n < 40; ++n) {
      std::vector<Op> operations(n, putrootfh());
      operations.insert(operations.begin(), sequence(cached != 0));
      const v4::nfsstat4 status = compound(operations).status;
      longest = std::max<std::size_t>(longest, channel_.last_reply.size());
      EXPECT_LE(channel_.last_reply.size(), most) << n;
      EXPECT_TRUE(status == v4::NFS4_OK || status == too_big) << status;
    }
    EXPECT_GT(longest, most - 20);
  }
}

// What a mechanism adds is known at its most only. A client may give a Reply chunk as long as what
// comes, as Linux does for a READ: the transport sees whether it goes in.
TEST_F(Nfs4SealedLimits, leave_results_that_may_fit_to_the_transport) {
  make_session({0, 1 << 20, 1 << 20, 0, kOperations, 16, {}});
  const std::vector<Op> operations(20, putrootfh());
  ASSERT_EQ(run(operations).status, v4::NFS4_OK);
  channel_.reply_room = {.inline_max = channel_.last_reply.size() - 1};
  EXPECT_EQ(run(operations).status, v4::NFS4_OK);
  channel_.reply_room = {.inline_max = channel_.last_reply.size() / 2};
  EXPECT_EQ(run(operations).status, v4::NFS4ERR_REP_TOO_BIG);
  channel_.reply_room = {};
}

class Nfs40StateLimits : public Nfs40Served {
 protected:
  static constexpr int kStates = 16;
  Nfs40StateLimits() : Nfs40Served(with_few_states()) {}
  static Nfs4Options with_few_states() {
    Nfs4Options options;
    options.states.states_of_client = kStates;
    return options;
  }
};

// RFC 7530 13.1.1.3: later it may be done. NFS4ERR_RESOURCE is about a COMPOUND that is too much.
TEST_F(Nfs40StateLimits, ask_to_come_back_and_take_the_seqid) {
  const Opened file = open_file(1, "file", "owner");
  std::uint32_t seqid = 2;
  v4::nfsstat4 status = v4::NFS4_OK;
  for (int i = 0; i < kStates && status == v4::NFS4_OK; ++i)
    status = open_raw(++seqid, "file " + std::to_string(i), "owner").status;
  EXPECT_EQ(status, v4::NFS4ERR_DELAY);
  EXPECT_EQ(close(file, ++seqid).status, v4::NFS4_OK);
  EXPECT_EQ(open_raw(++seqid, "another", "owner").status, v4::NFS4_OK);
}

class Nfs4FewOperations : public Nfs4Limits {
 protected:
  Nfs4FewOperations() : Nfs4Limits(8) {}
};

TEST_F(Nfs4FewOperations, are_the_limit_of_version_4_0_too) {
  EXPECT_EQ(compound(std::vector<Op>(8, putrootfh()), 0).status, v4::NFS4_OK);
  EXPECT_EQ(compound(std::vector<Op>(9, putrootfh()), 0).status, v4::NFS4ERR_RESOURCE);
}

// What a transport reserves before a COMPOUND runs.
class Nfs4ReplyMax : public Nfs4Limits {
 protected:
  std::optional<std::uint64_t> of(std::vector<Op> operations) {
    oncrpc::CallHeader header;
    header.program = v4::NFS4_PROGRAM;
    header.version = v4::NFS_V4;
    header.procedure = v4::NFSPROC4_COMPOUND::number;
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header);
    encode(encoder, v4::COMPOUND4args{"tag", 2, std::move(operations)});
    return server_.reply_max(rpc::Origin{}, std::move(encoder).finish().rope().flatten());
  }
  static Op read(std::uint32_t count) {
    return op(v4::OP_READ, &Op::opread, v4::READ4args{{}, 0, count});
  }
  static constexpr std::uint64_t kHeader = oncrpc::kReplyHeaderSize;
  static constexpr std::uint32_t kMega = 1 << 20;
};

TEST_F(Nfs4ReplyMax, is_little_for_short_results) {
  EXPECT_EQ(of({sequence(), putfh({}), getattr({1, 2})}), kHeader);
}

TEST_F(Nfs4ReplyMax, is_what_all_operations_ask_for_and_get_at_most) {
  EXPECT_EQ(of({sequence(), putfh({}), read(5000), getattr({1, 2}), lookup("name"), read(7000)}),
            kHeader + 12'000);
  EXPECT_EQ(of({sequence(), putfh({}), read(~0u)}), kHeader + kMega);
  EXPECT_EQ(of({sequence(), op(v4::OP_READ_PLUS, &Op::opread_plus, v4::READ_PLUS4args{{}, 0, 9000}),
                op(v4::OP_READDIR, &Op::opreaddir, v4::READDIR4args{0, {}, 100, 3000, {1, 2, 3}}),
                op(v4::OP_GETXATTR, &Op::opgetxattr, v4::GETXATTR4args{"user.name"}), read(10)}),
            kHeader + 9000 + 3000 + (64 << 10) + 10);
}

TEST_F(Nfs4ReplyMax, is_no_more_than_a_Reply_may_be) {
  EXPECT_EQ(of({sequence(), putfh({}), read(kMega), read(kMega), read(kMega)}),
            kHeader + state::ClientLimits{}.fore.max_response_size);
}

TEST_F(Nfs4ReplyMax, counts_links_and_access_control_lists) {
  EXPECT_EQ(of({sequence(), putfh({}), op(v4::OP_READLINK), read(10)}), kHeader + 4096 + 10);
  EXPECT_EQ(of({sequence(), putfh({}), getattr({1u << v4::FATTR4_ACL, 2}), read(10)}),
            kHeader + (512 << 10) + 10);
}

TEST_F(Nfs4ReplyMax, looks_behind_operations_that_it_does_not_know) {
  v4::OPEN4args open;
  open.claim.claim = v4::CLAIM_NULL;
  open.claim.file() = "a name that is longer than others";
  EXPECT_EQ(of({sequence(), putrootfh(), op(v4::OP_OPEN, &Op::opopen, std::move(open)), getfh(),
                read(kMega)}),
            kHeader + kMega);
}

}  // namespace
}  // namespace stag::nfs::nfs4
