// The whole core as a server and as a client with a Call on the wire, against any sequence of
// messages. It asks only for memory within its limits, answers what it should, and ends every Call
// it began.
#include <map>
#include <vector>

#include "input.h"
#include "rpcrdma/connection.h"

using namespace stag;
using namespace stag::rpcrdma;

namespace {

constexpr std::uint32_t kMaxChunk = 1 << 16;

class Owner final : public Sink {
 public:
  void post_receives(std::uint32_t) override {}
  void drop(Reason) override {}
  void send_error(Buffer message, Reason) override {
    STAG_CHECK(message.size() == 20 || message.size() == 28);
  }
  void close(Reason) override { closed = true; }
  Result<ExposedChunks, Reason> expose(rpcrdma::OutgoingCall& call) override {
    ExposedChunks chunks;
    for (const std::uint32_t room : call.plan().write_chunks)
      chunks.results.push_back({{7, room, 1 << 20}});
    if (call.plan().reply_chunk != 0) chunks.reply = {{8, call.plan().reply_chunk, 0}};
    return chunks;
  }
  void send_call(rpcrdma::OutgoingCall&, Bytes) override {}
  void deliver_reply(rpcrdma::OutgoingCall& call, const ReplyArrival& reply) override {
    STAG_CHECK(reply.reply_chunk_length <= call.plan().reply_chunk);
    for (std::size_t i = 0; i < reply.written.size(); ++i)
      STAG_CHECK(reply.written[i] <= call.plan().write_chunks[i]);
    answered = true;
  }
  void fail_call(rpcrdma::OutgoingCall&, const CallFailure&) override { answered = true; }
  std::unique_ptr<IncomingCall> make_call() override { return std::make_unique<IncomingCall>(); }
  void defer_call(IncomingCall&, Bytes) override {}
  bool start_reads(IncomingCall& call, std::span<const ArrivedItem> items) override {
    rooms_[&call].clear();
    for (const ArrivedItem& item : items) {
      STAG_CHECK(item.length <= kMaxChunk);
      rooms_[&call].emplace_back(item.length);
    }
    return true;
  }
  void read(IncomingCall& call, std::uint32_t item, std::uint32_t offset,
            const Segment& from) override {
    STAG_CHECK(range_ok(rooms_[&call].at(item).size(), offset, from.length));
    reads.push_back(&call);
  }
  Bytes long_call(IncomingCall& call) override { return rooms_[&call].at(0); }
  void deliver_call(IncomingCall& call, const CallArrival&) override { delivered.push_back(&call); }
  void send_reply(IncomingCall& call, Bytes, const ReplyPlan&,
                  std::optional<std::uint32_t>) override {
    sent.push_back(&call);
  }
  void forget_call(IncomingCall&, Reason) override {}

  static bool range_ok(std::size_t size, std::uint32_t offset, std::uint32_t length) {
    return offset <= size && length <= size - offset;
  }

  std::vector<IncomingCall*> reads, delivered, sent;
  bool closed = false, answered = false;

 private:
  std::map<IncomingCall*, std::vector<std::vector<std::byte>>> rooms_;
};

void turn(Connection& core, Owner& owner, std::uint8_t choice) {
  for (IncomingCall* call : std::exchange(owner.reads, {}))
    core.on_read_done(*call, choice % 8 == 7 ? Reason::ConnectionLost : Reason::None);
  for (IncomingCall* call : std::exchange(owner.delivered, {})) {
    ReplyShape shape;
    shape.length = 24 + (choice % 4) * 1000;
    if (choice % 4 > 0) shape.items.push_back({.position = 24, .length = 996});
    if (choice % 16 == 15)
      core.on_no_reply(*call);
    else
      core.on_reply(*call, shape);
  }
  for (IncomingCall* call : std::exchange(owner.sent, {})) core.on_sent(*call);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Owner owner;
  Settings settings;
  settings.credits_granted = 4;
  settings.max_bytes = 1 << 18;
  settings.header_limits.max_chunk_bytes = kMaxChunk;
  Connection core(settings, owner);
  core.start();
  rpcrdma::OutgoingCall call;
  call.xid = 0x01020304;
  call.shape = {.length = 40, .segments = 1, .items = {}};
  call.bound.payload_max = 2000;
  call.bound.results.push_back({.max_length = 4000});
  core.on_call(call);
  while (!input.empty() && !owner.closed) {
    const std::uint8_t choice = input.octet();
    core.on_receive(input.take(input.octet() * 4u),
                    choice % 32 == 1 ? std::optional<std::uint32_t>(7) : std::nullopt);
    turn(core, owner, choice);
  }
  core.on_disconnect(Reason::ConnectionLost);
  STAG_CHECK(owner.answered);
  return 0;
}
