// An owner of a Connection that performs nothing and remembers everything.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rpcrdma/connection.h"
#include "rpcrdma/golden_test.h"

namespace stag::rpcrdma::testing {

// An RPC message of `length` bytes: XID, direction, and bytes that tell where they stand.
inline Message rpc_stream(std::uint32_t xid, std::uint32_t direction, std::size_t length) {
  Message stream(length);
  for (std::size_t i = 0; i < length; ++i) stream[i] = static_cast<std::byte>(i * 7 + xid);
  set_word(stream, 0, xid);
  set_word(stream, 1, direction);
  return stream;
}

inline Message with_stream(const Header& header, const Message& stream) {
  Message message = copy(EncodedHeader(header).bytes());
  message.insert(message.end(), stream.begin(), stream.end());
  return message;
}

inline Header header_of(std::uint32_t xid, std::uint32_t credits, rdma_proc proc = RDMA_MSG) {
  Header header;
  header.xid = xid;
  header.credits = credits;
  header.proc = proc;
  return header;
}

// Short messages without chunks.
inline Message short_call(std::uint32_t xid, std::uint32_t credits = 8) {
  return with_stream(header_of(xid, credits), rpc_stream(xid, CALL, 80));
}
inline Message short_reply(std::uint32_t xid, std::uint32_t credits) {
  return with_stream(header_of(xid, credits), rpc_stream(xid, REPLY, 40));
}
inline Message error_chunk(std::uint32_t xid, std::uint32_t credits = 8) {
  return copy(encode_error({.xid = xid, .credits = credits, .code = ERR_CHUNK}).bytes());
}

inline Segment segment(std::uint32_t handle, std::uint32_t length) {
  return {handle, length, std::uint64_t{handle} << 16};
}

inline ReplyShape plain_reply(std::uint32_t length) {
  ReplyShape shape;
  shape.length = length;
  return shape;
}
// A Call with a data Read chunk at `position` of these segments in a stream of 160 bytes.
inline Message call_with_read(std::uint32_t xid, std::uint32_t position, const Segments& segments) {
  Header header = header_of(xid, 8);
  header.read_list.push_back({position, segments});
  return with_stream(header, rpc_stream(xid, CALL, 160));
}
inline Message call_with_write(std::uint32_t xid, const Segments& segments) {
  Header header = header_of(xid, 8);
  header.write_list.push_back({segments});
  return with_stream(header, rpc_stream(xid, CALL, 160));
}

struct SentReply {
  std::uint32_t xid = 0;
  std::reference_wrapper<IncomingCall> call;
  Message header;
  ReplyPlan plan;
  std::optional<std::uint32_t> invalidate;
};

struct Delivered {
  std::reference_wrapper<IncomingCall> call;
  CallArrival arrival;  // without payload and items
  Message payload;
  std::vector<ArrivedItem> items;
};

struct ReadAction {
  std::reference_wrapper<IncomingCall> call;
  std::uint32_t item;
  std::uint32_t offset;
  Segment from;
};

class Recorder final : public Sink {
 public:
  void post_receives(std::uint32_t count) override {
    receives += count;
    note("receives");
  }
  void drop(Reason reason) override {
    drops.push_back(reason);
    note("drop");
  }
  void send_error(Buffer message, Reason reason) override {
    errors.push_back(copy(message.bytes()));
    error_reasons.push_back(reason);
    note("error");
  }
  void close(Reason reason) override {
    closes.push_back(reason);
    note("close");
  }

  Result<ExposedChunks, Reason> expose(OutgoingCall& call) override {
    note("expose");
    if (refuse_memory) return Failure{Reason::RdmaSegmentsTooMany};
    const CallPlan& plan = call.plan();
    ExposedChunks exposed;
    if (plan.form == Form::Long)
      exposed.position_zero = memory(plan.stream_length, call.shape.segments);
    for (std::uint32_t index : plan.reduced)
      exposed.arguments.push_back(
          memory(call.shape.items[index].length, call.shape.items[index].segments));
    for (std::size_t i = 0; i < plan.write_chunks.size(); ++i)
      exposed.results.push_back(memory(plan.write_chunks[i], call.bound.results[i].segments));
    if (plan.reply_chunk != 0) exposed.reply = memory(plan.reply_chunk, call.bound.segments);
    return exposed;
  }
  void send_call(OutgoingCall& call, Bytes header) override {
    calls.push_back(call.xid);
    call_headers.push_back(copy(header));
    note("call");
  }
  void deliver_reply(OutgoingCall& call, const ReplyArrival& reply) override {
    replies.push_back(call.xid);
    reply_arrivals.push_back(reply);
    reply_arrivals.back().payload = {};
    note("reply");
    if (on_end) on_end();
  }
  void fail_call(OutgoingCall& call, const CallFailure& failure) override {
    failed.push_back(call.xid);
    failures.push_back(failure);
    note("fail");
    if (on_end) on_end();
  }

  std::unique_ptr<IncomingCall> make_call() override { return std::make_unique<IncomingCall>(); }
  std::uint64_t reply_max(Bytes) const override { return longest_reply; }
  std::uint64_t longest_reply = 0;
  void defer_call(IncomingCall& call, Bytes payload) override {
    held[call.xid()] = copy(payload);
    note("hold");
  }
  bool start_reads(IncomingCall&, std::span<const ArrivedItem>) override {
    note("start_reads");
    return has_memory;
  }
  bool has_memory = true;
  void read(IncomingCall& call, std::uint32_t item, std::uint32_t offset,
            const Segment& from) override {
    reads.push_back({call, item, offset, from});
    note("read");
  }
  Bytes long_call(IncomingCall&) override { return long_stream; }
  void deliver_call(IncomingCall& call, const CallArrival& arrival) override {
    delivered.push_back(
        {call, arrival, copy(arrival.payload), {arrival.items.begin(), arrival.items.end()}});
    delivered.back().arrival.payload = {};
    delivered.back().arrival.items = {};
    note("deliver");
  }
  void send_reply(IncomingCall& call, Bytes header, const ReplyPlan& plan,
                  std::optional<std::uint32_t> invalidate) override {
    for (const Placement& placement : plan.writes) {
      writes.push_back(placement);
      note("write");
    }
    const Message bytes = copy(header);
    sent.push_back({word(bytes, 0), call, bytes, plan, invalidate});
    note("send");
  }
  void forget_call(IncomingCall&, Reason reason) override {
    forgotten.push_back(reason);
    note("forget");
  }

  // The actions since the last look, by name, without "receives".
  std::string actions() {
    std::string text = std::move(log_);
    log_.clear();
    return text;
  }

  std::uint32_t receives = 0;
  std::vector<Reason> drops, closes, error_reasons, forgotten;
  std::vector<Message> errors;
  std::vector<std::uint32_t> calls, replies, failed;  // XIDs
  std::vector<Message> call_headers;
  std::vector<ReplyArrival> reply_arrivals;
  std::vector<CallFailure> failures;
  std::map<std::uint32_t, Message> held;
  std::vector<ReadAction> reads;
  std::vector<Delivered> delivered;
  std::vector<Placement> writes;
  std::vector<SentReply> sent;
  Message long_stream;
  bool refuse_memory = false;
  std::function<void()> on_end;  // inside deliver_reply() and fail_call()

  // `length` bytes in equal pieces under fresh handles.
  Segments memory(std::uint32_t length, std::uint32_t pieces = 1) {
    Segments segments;
    for (std::uint32_t i = 0; i < pieces && length != 0; ++i) {
      const std::uint32_t piece = length / (pieces - i);
      length -= piece;
      segments.push_back({next_handle_, piece, std::uint64_t{next_handle_} << 32});
      ++next_handle_;
    }
    return segments;
  }

 private:
  void note(const std::string& action) {
    if (action == "receives") return;
    log_ += (log_.empty() ? "" : " ") + action;
  }

  std::string log_;
  std::uint32_t next_handle_ = 0x100;
};

// A Connection with its Recorder; closed at the end of the test.
class Endpoint {
 public:
  explicit Endpoint(const Settings& settings = {}) : core(settings, sink) { core.start(); }
  ~Endpoint() {
    sink.on_end = nullptr;
    core.on_disconnect(Reason::Shutdown);
  }

  void receive(const Message& message, std::optional<std::uint32_t> invalidated = std::nullopt) {
    core.on_receive(message, invalidated);
  }

  Recorder sink;
  Connection core;
};

// Calls of ours that outlive the Endpoint they are made on.
struct TestCall : OutgoingCall {
  explicit TestCall(std::uint32_t own_xid, std::uint32_t length = 80, std::uint32_t reply = 100) {
    xid = own_xid;
    shape.length = length;
    bound.payload_max = reply;
  }
};

inline Settings client_settings(std::uint32_t credits = 8) {
  Settings settings;
  settings.credits_requested = credits;
  return settings;
}
inline Settings server_settings(std::uint32_t credits = 8) {
  Settings settings;
  settings.credits_requested = 1;
  settings.credits_granted = credits;
  return settings;
}

}  // namespace stag::rpcrdma::testing
