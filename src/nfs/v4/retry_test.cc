// A request that is sent again while it still runs, by another connection: within a session
// (RFC 8881 2.10.6.2) and in version 4.0 (RFC 7530 3.1.1).
#include <new>

#include "testing/nfs/nfs40_fixture.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;
using vfs::testing::Called;
using vfs::testing::Point;

// Removals wait until the test lets them go on, and may then end by an exception.
class HeldRemovals final : public vfs::testing::Steps {
 public:
  Task<std::optional<vfs::Status>> pass(Point point, Loop& loop) override {
    if (point != Point{Called::Remove, Point::When::Begin}) co_return std::nullopt;
    ++begun;
    co_await held.pass(point, loop);
    if (throws) throw std::bad_alloc();
    co_return std::nullopt;
  }

  vfs::testing::HeldSteps held;
  int begun = 0;
  bool throws = false;
};

template <class Served>
class Retried : public Served {
 protected:
  using Res = typename Served::Res;

  // Removals in /data are held from now on.
  void hold() {
    nfs::ExportOptions open;
    open.root_squash = false;
    nfs::Exports exports;
    STAG_CHECK(
        exports
            .add(1, {"/data", std::make_shared<vfs::testing::SteppedStore>(this->store_, removals_),
                     open})
            .ok());
    this->context_.exports.replace(std::move(exports));
  }
  ~Retried() override {
    removals_->held.release_all();
    this->loop_.drain();
  }

  struct Sent {
    bool ended = false;
    std::optional<Res> results;  // none: SYSTEM_ERR, or no Reply
  };
  using SentPtr = std::shared_ptr<const Sent>;
  SentPtr send(rpc::Channel& by, std::vector<Op> operations) {
    const auto sent = std::make_shared<Sent>();
    detach(call(sent, by, {"", this->minor_, std::move(operations)}));
    this->loop_.drain();
    return sent;
  }
  void go_on() {
    ASSERT_EQ(removals_->held.waiting.size(), 1u);
    removals_->held.release(0);
    this->loop_.drain();
  }
  static Op remove_op() { return op(v4::OP_REMOVE, &Op::opremove, v4::REMOVE4args{"file"}); }

  const std::shared_ptr<HeldRemovals> removals_ = std::make_shared<HeldRemovals>();
  LoopbackChannel second_{this->loop_, this->server_};

 private:
  Task<void> call(std::shared_ptr<Sent> sent, rpc::Channel& by, v4::COMPOUND4args args) {
    rpc::Client client(by, ulb::nfs4(), this->credentials_);
    auto result = co_await client.template call<v4::NFSPROC4_COMPOUND>(args);
    if (result) sent->results = std::move(*result);
    sent->ended = true;
  }
};

class Nfs4Retry : public Retried<Nfs4Served> {
 protected:
  void SetUp() override {
    Retried::SetUp();
    create("file");
    hold();
  }
  std::vector<Op> removal(bool cachethis) {
    return {sequence(cachethis), putrootfh(), lookup("data"), remove_op()};
  }
};

TEST_F(Nfs4Retry, waits_on_another_connection_for_the_first_and_has_its_results) {
  const std::vector<Op> operations = removal(true);
  const SentPtr first = send(channel_, operations);
  const SentPtr again = send(second_, operations);
  EXPECT_FALSE(first->ended);
  EXPECT_FALSE(again->ended);
  go_on();
  ASSERT_TRUE(first->results && again->results);
  EXPECT_EQ(first->results->status, v4::NFS4_OK);
  EXPECT_EQ(*again->results, *first->results);
  EXPECT_EQ(removals_->begun, 1);
}

TEST_F(Nfs4Retry, is_asked_to_come_back_after_ten_seconds_and_then_has_the_results) {
  const std::vector<Op> operations = removal(true);
  const SentPtr first = send(channel_, operations);
  const SentPtr again = send(second_, operations);
  loop_.pass(9999ms);
  EXPECT_FALSE(again->ended);
  loop_.pass(1ms);
  ASSERT_TRUE(again->results);
  EXPECT_EQ(again->results->status, v4::NFS4ERR_DELAY);
  EXPECT_EQ(again->results->resarray.size(), 1u);
  EXPECT_FALSE(first->ended);
  const SentPtr later = send(second_, operations);
  EXPECT_FALSE(later->ended);
  go_on();
  ASSERT_TRUE(first->results && later->results);
  EXPECT_EQ(first->results->status, v4::NFS4_OK);
  EXPECT_EQ(*later->results, *first->results);
  EXPECT_EQ(send(second_, operations)->results, first->results);
  EXPECT_EQ(removals_->begun, 1);
}

TEST_F(Nfs4Retry, is_RETRY_UNCACHED_REP_when_the_first_has_ended_and_its_results_are_not_kept) {
  const std::vector<Op> operations = removal(false);
  const SentPtr first = send(channel_, operations);
  const SentPtr again = send(second_, operations);
  EXPECT_FALSE(again->ended);
  go_on();
  ASSERT_TRUE(first->results && again->results);
  EXPECT_EQ(first->results->status, v4::NFS4_OK);
  EXPECT_EQ(again->results->status, v4::NFS4ERR_RETRY_UNCACHED_REP);
  EXPECT_EQ(removals_->begun, 1);
}

// RFC 8267 6.6: by a client that has given the request up and wants its slot.
TEST_F(Nfs4Retry, learns_by_a_lone_SEQUENCE_when_the_request_has_ended) {
  const std::vector<Op> operations = removal(true);
  const SentPtr first = send(channel_, operations);
  Op alone = operations.front();
  alone.opsequence().sa_cachethis = false;
  const SentPtr again = send(second_, {alone});
  EXPECT_FALSE(again->ended);
  go_on();
  ASSERT_TRUE(first->results && again->results);
  EXPECT_EQ(again->results->status, v4::NFS4ERR_SEQ_FALSE_RETRY);
  EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK) << "the slot takes the next number";
}

TEST_F(Nfs4Retry, runs_nothing_again_after_an_exception) {
  const std::vector<Op> operations = removal(true);
  const SentPtr first = send(channel_, operations);
  const SentPtr again = send(second_, operations);
  removals_->throws = true;
  go_on();
  EXPECT_TRUE(first->ended);
  EXPECT_FALSE(first->results);
  ASSERT_TRUE(again->results);
  EXPECT_EQ(again->results->status, v4::NFS4ERR_RETRY_UNCACHED_REP);
  EXPECT_EQ(removals_->begun, 1);
  EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK) << "the slot is of use";
}

TEST_F(Nfs4Retry, is_BADSESSION_when_its_session_is_destroyed_meanwhile) {
  const std::vector<Op> operations = removal(true);
  const SentPtr first = send(channel_, operations);
  const SentPtr again = send(second_, operations);
  ASSERT_EQ(destroy_session(), v4::NFS4_OK);
  loop_.drain();
  ASSERT_TRUE(again->results);
  EXPECT_EQ(again->results->status, v4::NFS4ERR_BADSESSION);
  go_on();
  ASSERT_TRUE(first->results);
  EXPECT_EQ(first->results->status, v4::NFS4_OK);
}

class Nfs40Retry : public Retried<Nfs40Served> {
 protected:
  void SetUp() override {
    Retried::SetUp();
    minor_ = 0;
    open_file(1, "file", "owner");
    hold();
  }
  SentPtr remove() { return send(channel_, {putrootfh(), lookup("data"), remove_op()}); }

  // The last Call once more, under its XID.
  struct Again {
    rpc::IncomingCall call;
    bool ended = false;
    std::optional<rpc::OutgoingReply> reply;

    oncrpc::ReplyStatus status() const {
      xdr::Decoder decoder(reply->stream.rope().flatten());
      return oncrpc::decode_reply(decoder)->status;
    }
    Res results() const {
      xdr::Decoder decoder(reply->stream.rope().flatten());
      Res results;
      EXPECT_TRUE(oncrpc::decode_reply(decoder).ok() && decode(decoder, results));
      return results;
    }
  };
  std::shared_ptr<const Again> retransmit() {
    const auto again = std::make_shared<Again>();
    again->call.origin = std::make_shared<rpc::Origin>(second_.origin());
    again->call.payload = channel_.last_call;
    detach(serve(again));
    loop_.drain();
    return again;
  }

 private:
  Task<void> serve(std::shared_ptr<Again> again) {
    again->reply = co_await server_.serve(again->call);
    again->ended = true;
  }
};

TEST_F(Nfs40Retry, waits_for_the_first_and_only_the_latest_is_answered) {
  const SentPtr first = remove();
  const auto second = retransmit();
  EXPECT_FALSE(second->ended);
  const auto third = retransmit();
  EXPECT_TRUE(second->ended);
  EXPECT_FALSE(second->reply) << "which would have no results";
  EXPECT_FALSE(third->ended);
  go_on();
  ASSERT_TRUE(first->results && third->reply);
  EXPECT_EQ(first->results->status, v4::NFS4_OK);
  EXPECT_EQ(third->results(), *first->results);
  EXPECT_EQ(removals_->begun, 1);
}

// RFC 7530 3.1.1: the client does not send it again while the connection is there.
TEST_F(Nfs40Retry, is_answered_SYSTEM_ERR_after_an_exception_and_runs_nothing_again) {
  const SentPtr first = remove();
  const auto second = retransmit();
  removals_->throws = true;
  go_on();
  EXPECT_TRUE(first->ended);
  EXPECT_FALSE(first->results);
  for (const auto& again : {second, retransmit()}) {
    ASSERT_TRUE(again->reply);
    EXPECT_EQ(again->status().accept, oncrpc::AcceptStat::SYSTEM_ERR);
  }
  EXPECT_EQ(removals_->begun, 1);
}

}  // namespace
}  // namespace stag::nfs::nfs4
