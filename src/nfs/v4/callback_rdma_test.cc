// Callbacks over RPC-over-RDMA (RFC 8267 6.5.2): Short Messages, and Long Calls for clients that
// take them; nothing is reduced.
#include "nfs/proto/nfs4.h"
#include "nfs/v4/callback/callback_call.h"
#include "testing/rdma_pair.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using rpc::rdma::Pair;
using rpc::rdma::PairSetup;
using Kind = CallbackOutcome::Kind;

constexpr std::uint32_t kThreshold = 1024;

// A client that answers CB_COMPOUND, by messages of 1024 bytes.
class Nfs4CallbackRdma : public ::testing::Test {
 protected:
  Nfs4CallbackRdma() : pair_(setup()) {
    rpc::Program program(v4::NFS4_CALLBACK, v4::NFS_CB);
    program.add<v4::CB_COMPOUND>(
        [this](rpc::CallContext&, v4::CB_COMPOUND4args args) { return answer(std::move(args)); });
    pair_.client_server.add(std::move(program));
    EXPECT_TRUE(pair_.call<rpc::rdma::Greet>({1, 0}).ok());
    pair_.record.clear();
  }
  static PairSetup setup() {
    PairSetup setup;
    setup.serves_reverse = true;
    setup.client.transport.inline_size = setup.server.transport.inline_size = kThreshold;
    return setup;
  }

  // A CB_RECALL that refers to so many Calls.
  CallbackOutcome recall(std::size_t referring, std::uint32_t request_max,
                         const std::string& tag = {}) {
    CallbackRequest request;
    request.credentials = rpc::Credentials::sys("server", 0, 0);
    request.request_max = request_max;
    request.compound.minorversion = 1;
    request.compound.tag = tag;
    auto& operations = request.compound.argarray;
    operations.resize(2);
    operations[0].argop = v4::OP_CB_SEQUENCE;
    auto& lists = operations[0].opcbsequence().csa_referring_call_lists;
    lists.resize(1);
    lists[0].rcl_referring_calls.resize(referring);
    operations[1].argop = v4::OP_CB_RECALL;
    operations[1].opcbrecall().fh = v4::nfs_fh4(std::array<std::byte, 64>{});
    std::optional<CallbackOutcome> outcome;
    call_back(pair_.reverse, std::move(request), pair_.loop,
              [&outcome](CallbackOutcome is) { outcome = is; });
    EXPECT_TRUE(pair_.loop.run_until([&] { return outcome.has_value(); }));
    return outcome.value_or(CallbackOutcome{});
  }
  std::vector<rpc::rdma::WireMessage> sent() { return pair_.calls(End::Passive); }

  std::size_t referring_ = 0;  // of the Call that came last
  Pair pair_;

 private:
  Task<v4::CB_COMPOUND4res> answer(v4::CB_COMPOUND4args args) {
    referring_ = args.argarray.at(0)
                     .opcbsequence()
                     .csa_referring_call_lists.at(0)
                     .rcl_referring_calls.size();
    v4::CB_COMPOUND4res results;
    results.resarray.resize(2);
    results.resarray[0].resop = v4::OP_CB_SEQUENCE;
    results.resarray[0].opcbsequence().csr_resok4() = {};
    results.resarray[1].resop = v4::OP_CB_RECALL;
    co_return results;
  }
};

TEST_F(Nfs4CallbackRdma, a_short_one_is_one_message_each_way_without_chunks) {
  PROVES("R8267-6.5.2-a", "R8267-6.5.2-c");
  EXPECT_EQ(recall(1, kThreshold).kind, Kind::Answered);
  EXPECT_EQ(referring_, 1u);
  ASSERT_EQ(sent().size(), 1u);
  const auto call = sent()[0];
  EXPECT_EQ(call.header.proc, rpcrdma::RDMA_MSG);
  EXPECT_TRUE(call.handles().empty()) << "the Reply is bounded by the threshold";
  ASSERT_EQ(pair_.replies(End::Active).size(), 1u);
  EXPECT_LE(pair_.replies(End::Active)[0].payload.size(), 4096u);
}

TEST_F(Nfs4CallbackRdma, a_long_one_is_a_Long_Call_for_a_client_that_takes_more_than_inline) {
  PROVES("R8267-6.5.2-c", "R8267-6.5.2-d");
  EXPECT_EQ(recall(200, 1 << 20).kind, Kind::Answered);
  EXPECT_EQ(referring_, 200u);
  ASSERT_EQ(sent().size(), 1u);
  const auto call = sent()[0];
  EXPECT_EQ(call.header.proc, rpcrdma::RDMA_NOMSG);
  for (const auto& chunk : call.header.read_list) EXPECT_EQ(chunk.position, 0u);
  EXPECT_TRUE(call.header.write_list.empty());
}

TEST_F(Nfs4CallbackRdma, nothing_of_one_moves_apart_that_would_be_short_enough_without_it) {
  PROVES("R8267-6.5.2-c");
  EXPECT_EQ(recall(10, 1 << 20, std::string(kThreshold, 't')).kind, Kind::Answered);
  const auto messages = sent();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].header.proc, rpcrdma::RDMA_NOMSG);
  for (const auto& chunk : messages[0].header.read_list) EXPECT_EQ(chunk.position, 0u);
}

TEST_F(Nfs4CallbackRdma, a_long_one_is_not_sent_to_other_clients) {
  PROVES("R8267-6.5.2-f");
  for (const std::uint32_t most : {kThreshold - 28, kThreshold}) {
    EXPECT_EQ(recall(200, most).kind, Kind::Unsent) << most;
    // Too long for an inline message by the transport's header alone.
    std::size_t referring = 1;
    while (recall(referring, most).kind == Kind::Answered) ++referring;
    EXPECT_GT(referring, 50u);
  }
  for (const auto& message : sent()) {
    EXPECT_EQ(message.header.proc, rpcrdma::RDMA_MSG);
    EXPECT_LE(message.size, kThreshold);
  }
}

}  // namespace
}  // namespace stag::nfs::nfs4
