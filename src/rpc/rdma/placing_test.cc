// Arguments that a program has read into memory of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <initializer_list>

#include "fabric/sim/sim_loop.h"
#include "rpc/rdma/link.h"
#include "rpc/server.h"
#include "testing/silent_peer.h"

namespace stag::rpc::rdma {
namespace {

using testing::kBlobData;

constexpr std::uint32_t kProgram = 0x20000043, kPut = 1;
// Of PUT(word, data): RPC header, word and length stand in front of the data.
constexpr std::uint32_t kPosition = 40 + 4 + 4;
constexpr std::size_t kRoom = 4096;

class OneBuffer final : public Storage {
 public:
  OneBuffer() : Storage(kRoom) {}
  std::array<std::byte, kRoom> bytes{};
  int given = 0, released = 0;
  bool out() const { return given != released; }

 private:
  void release() noexcept override {
    ++released;
    revive();
  }
};

// The handler of PUT, with one piece of memory.
class Placing final : public Handler {
 public:
  explicit Placing(OneBuffer& memory) : memory_(memory) {}

  bool places() const override { return true; }
  Buffer place(xdr::Decoder& arguments, std::uint32_t position, std::uint32_t length) override {
    ++asked;
    EXPECT_EQ(position, kPosition);
    asked_length = length;
    std::uint32_t word = 0, size = 0;
    EXPECT_TRUE(arguments.integers(word, size));
    if (fails) throw std::bad_alloc();
    if (memory_.out()) return {};
    ++memory_.given;
    return Buffer(&memory_, Bytes(memory_.bytes).first(given_length(size)));
  }
  Eventual<HandlerOutcome> run(CallContext& call, xdr::Decoder& arguments,
                               const ReducedItems& items, xdr::Encoder& results) override {
    std::uint32_t word = 0;
    Rope data;
    const bool decoded = arguments.u32(word) && arguments.opaque(kBlobData, data) &&
                         arguments.finish().ok() && items.all_taken();
    if (!decoded)
      return HandlerOutcome{oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::GARBAGE_ARGS)};
    ++run_;
    was_asked = call.placement_asked();
    pieces = data.pieces().size();
    at = data.empty() ? nullptr : data.pieces().begin()->data();
    length = data.size();
    static_cast<void>(results);
    return HandlerOutcome{.status = {}, .drop = false, .encoded = true};
  }

  std::function<std::size_t(std::size_t)> given_length = [](std::size_t length) { return length; };
  bool fails = false, was_asked = false;
  int asked = 0, run_ = 0;
  std::uint32_t asked_length = 0;
  std::size_t pieces = 0, length = 0;
  const std::byte* at = nullptr;

 private:
  OneBuffer& memory_;
};

// Takes every Call for worth its Reads, and then refuses it.
class Refusing final : public Authenticator {
 public:
  static constexpr auto kFlavor = oncrpc::AuthFlavor::RPCSEC_GSS;
  oncrpc::AuthFlavor flavor() const override { return kFlavor; }
  bool authenticate_at_once(const oncrpc::CallHeader&, const IncomingCall&,
                            Authentication& to) override {
    to.refuse(oncrpc::AuthStat::AUTH_TOOWEAK);
    return true;
  }
};

class RdmaPlacing : public ::testing::Test, private LinkOwner {
 protected:
  RdmaPlacing() {
    rpc::Program program(kProgram, 1, Binding(table_));
    auto handler = std::make_unique<Placing>(memory_);
    handler_ = handler.get();
    program.add(kPut, std::move(handler));
    server_.add(std::move(program));
    peer_.address = {"peer", 1};
    LinkSettings settings;
    settings.credits_granted = 16;
    settings.budget = budget_;
    link_ = std::make_shared<Link>(std::make_unique<SilentConnection>(loop_, peer_), settings,
                                   static_cast<LinkOwner&>(*this));
    link_->open(&server_, {});
  }
  ~RdmaPlacing() override {
    if (up_) lose();
    EXPECT_FALSE(memory_.out());
  }

  // PUT with a bulk of `size` bytes, which comes in these chunks.
  void put(std::uint32_t size, rpcrdma::Header header, std::uint32_t flavor = 0) {
    header.xid = ++xid_;
    header.credits = 16;
    Rope message = Rope::copy_of(rpcrdma::EncodedHeader(header).bytes());
    if (header.proc == rpcrdma::RDMA_MSG) message.append(call(size, flavor));
    peer_.arrive(message.flatten());
  }
  Buffer call(std::uint32_t size, std::uint32_t flavor = 0) const {
    xdr::Encoder encoder;
    for (const std::uint32_t word :
         {xid_, 0u, 2u, kProgram, 1u, kPut, flavor, 0u, 0u, 0u, 7u, size})
      encoder.u32(word);
    return std::move(encoder).finish().rope().flatten();
  }
  static rpcrdma::Header chunk(std::initializer_list<std::uint32_t> lengths,
                               std::uint32_t position = kPosition) {
    rpcrdma::Header header;
    header.read_list.push_back({position, {}});
    for (const std::uint32_t length : lengths)
      header.read_list.back().segments.push_back({7, length, 0});
    return header;
  }
  void end_reads() {
    while (!peer_.reads.empty()) peer_.end_read();
    loop_.run_until([] { return false; }, Duration::zero());
  }
  void fail_read() { peer_.end_read(Reason::ConnectionLost); }
  // As a fabric does: every Read ends before the connection.
  void lose() {
    while (!peer_.reads.empty()) fail_read();
    if (!peer_.closed) peer_.lose_connection();
    loop_.run_until_idle();
  }
  void on_link_down(Link&, Reason) override { up_ = false; }
  bool lies_in_memory(MutableBytes part) const {
    return part.data() >= memory_.bytes.data() &&
           part.data() + part.size() <= memory_.bytes.data() + kRoom;
  }

  static constexpr ProcedureBinding put_binding() {
    ProcedureBinding binding;
    binding.program = kProgram;
    binding.version = 1;
    binding.procedure = kPut;
    binding.arguments = {kBlobData};
    return binding;
  }
  const std::array<ProcedureBinding, 1> table_{put_binding()};

  fabric::SimLoop loop_;
  OneBuffer memory_;
  Placing* handler_ = nullptr;
  rpc::Server server_;
  const std::shared_ptr<ByteBudget> budget_ = std::make_shared<ByteBudget>(8000);
  SilentPeer peer_;
  std::shared_ptr<Link> link_;
  std::uint32_t xid_ = 0;
  bool up_ = true;
};

TEST_F(RdmaPlacing, reads_all_segments_into_the_memory_that_the_handler_sees) {
  put(3000, chunk({1000, 1500, 500}));
  ASSERT_EQ(peer_.sinks.size(), 3u);
  std::byte* next = memory_.bytes.data();
  for (const MutableBytes sink : peer_.sinks) {
    EXPECT_EQ(sink.data(), next);
    next += sink.size();
  }
  EXPECT_EQ(next, memory_.bytes.data() + 3000);
  EXPECT_EQ(handler_->run_, 0);
  end_reads();
  EXPECT_EQ(handler_->run_, 1);
  EXPECT_TRUE(handler_->was_asked);
  EXPECT_EQ(handler_->at, memory_.bytes.data());
  EXPECT_EQ(handler_->pieces, 1u);
  EXPECT_EQ(handler_->length, 3000u);
  EXPECT_EQ(memory_.released, 1);
}

TEST_F(RdmaPlacing, reads_no_pad_into_memory_that_is_as_long_as_the_data) {
  for (const auto& lengths :
       {std::initializer_list<std::uint32_t>{1004}, std::initializer_list<std::uint32_t>{1001, 3},
        std::initializer_list<std::uint32_t>{1001, 1, 2},
        std::initializer_list<std::uint32_t>{1000, 4}}) {
    peer_.sinks.clear();
    put(1001, chunk(lengths));
    std::size_t placed = 0;
    for (const MutableBytes sink : peer_.sinks) placed += lies_in_memory(sink) ? sink.size() : 0;
    EXPECT_EQ(placed, 1001u);
    EXPECT_EQ(peer_.sinks.size(), lengths.size());
    EXPECT_EQ(handler_->asked_length, 1004u);
    end_reads();
    EXPECT_EQ(handler_->at, memory_.bytes.data());
    EXPECT_EQ(handler_->length, 1001u);
  }
  EXPECT_EQ(handler_->run_, 4);
}

TEST_F(RdmaPlacing, gives_memory_back_only_when_the_last_Read_has_ended) {
  put(3000, chunk({1000, 1500, 500}));
  fail_read();
  EXPECT_TRUE(peer_.closed);
  EXPECT_EQ(memory_.released, 0);
  fail_read();
  EXPECT_EQ(memory_.released, 0);
  fail_read();
  EXPECT_EQ(memory_.released, 1);
  lose();
  EXPECT_EQ(handler_->run_, 0);
}

TEST_F(RdmaPlacing, gives_memory_back_when_the_connection_is_lost) {
  put(3000, chunk({1000, 1500, 500}));
  peer_.end_read();
  lose();
  EXPECT_EQ(memory_.released, 1);
  EXPECT_EQ(handler_->run_, 0);
}

// Reads that were never posted do not keep it.
TEST_F(RdmaPlacing, gives_memory_back_when_not_all_segments_were_asked_for) {
  rpcrdma::Header many = chunk({});
  for (int i = 0; i < 40; ++i) many.read_list[0].segments.push_back({7, 100, 0});
  put(4000, many);
  EXPECT_LT(peer_.reads.size(), 40u);
  EXPECT_TRUE(memory_.out());
  lose();
  EXPECT_EQ(memory_.released, 1);
}

TEST_F(RdmaPlacing, asks_for_memory_when_there_are_bytes_for_the_call) {
  put(4000, chunk({4000}));
  put(4000, chunk({4000}));
  put(4000, chunk({4000}));
  for (int call = 1; call <= 3; ++call) {
    EXPECT_EQ(handler_->asked, call);
    EXPECT_EQ(peer_.reads.size(), 1u);
    end_reads();
    EXPECT_EQ(handler_->run_, call);
  }
}

TEST_F(RdmaPlacing, asks_nobody_before_a_Long_Call_is_there) {
  rpcrdma::Header header = chunk({kPosition}, 0);
  header.read_list.push_back({kPosition, {{8, 1000, 0}}});
  header.proc = rpcrdma::RDMA_NOMSG;
  put(1000, header);
  ASSERT_EQ(peer_.sinks.size(), 2u);
  const Buffer stream = call(1000);
  std::copy(stream.bytes().begin(), stream.bytes().end(), peer_.sinks[0].begin());
  end_reads();
  EXPECT_EQ(handler_->asked, 0);
  EXPECT_EQ(handler_->run_, 1);
  EXPECT_FALSE(handler_->was_asked) << "who can copy it there knows that";
}

TEST_F(RdmaPlacing, asks_nobody_for_a_Long_Call_that_is_all_in_one_chunk) {
  rpcrdma::Header header = chunk({kPosition + 1000}, 0);
  header.proc = rpcrdma::RDMA_NOMSG;
  put(1000, header);
  const Buffer stream = call(1000);
  std::copy(stream.bytes().begin(), stream.bytes().end(), peer_.sinks[0].begin());
  end_reads();
  EXPECT_EQ(handler_->run_, 1);
  EXPECT_FALSE(handler_->was_asked);
}

TEST_F(RdmaPlacing, asks_nobody_for_several_chunks) {
  rpcrdma::Header header = chunk({1000});
  header.read_list.push_back({kPosition + 1000, {{8, 1000, 0}}});
  put(1000, header);
  EXPECT_EQ(peer_.sinks.size(), 2u);
  end_reads();
  EXPECT_EQ(handler_->asked, 0);
  EXPECT_EQ(handler_->run_, 0) << "one of them is nowhere";
}

TEST_F(RdmaPlacing, does_without_memory_that_does_not_fit_or_is_not_to_be_had) {
  for (const int error : {+4, -4, -1000}) {
    handler_->given_length = [error](std::size_t length) {
      return length + static_cast<std::size_t>(error);
    };
    peer_.sinks.clear();
    put(1004, chunk({1004}));
    EXPECT_FALSE(lies_in_memory(peer_.sinks[0]));
    EXPECT_FALSE(memory_.out()) << "given back at once";
    end_reads();
  }
  handler_->fails = true;
  put(1004, chunk({1004}));
  end_reads();
  EXPECT_EQ(handler_->run_, 4);
  EXPECT_TRUE(handler_->was_asked);
  EXPECT_NE(handler_->at, memory_.bytes.data());
}

// None is not as good as memory for the data without its pad.
TEST_F(RdmaPlacing, does_without_memory_for_arguments_as_short_as_a_pad) {
  handler_->fails = true;
  for (const std::uint32_t length : {1u, 2u, 3u, 4u}) {
    put(length, chunk({length}));
    end_reads();
    EXPECT_EQ(handler_->length, length);
  }
  EXPECT_EQ(handler_->run_, 4);
}

TEST_F(RdmaPlacing, asks_nobody_whose_caller_is_still_to_be_verified_or_when_it_stops) {
  server_.add(std::make_unique<Refusing>());
  put(1000, chunk({1000}), static_cast<std::uint32_t>(Refusing::kFlavor));
  EXPECT_EQ(peer_.reads.size(), 1u);
  end_reads();
  server_.stop_serving();
  put(1000, chunk({1000}));
  end_reads();
  EXPECT_EQ(handler_->asked, 0);
}

}  // namespace
}  // namespace stag::rpc::rdma
