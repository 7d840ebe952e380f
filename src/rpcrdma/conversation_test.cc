// Two cores talk to each other, both ways at once, over memory that is checked: every byte of every
// Call and Reply must arrive, whichever way it travels.

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>

#include "base/checked.h"
#include "rpcrdma/recorder_test.h"
#include "testing/proves.h"

namespace stag::rpcrdma {
namespace {

using namespace testing;

// A message in full, with the eligible items in it.
struct Spoken {
  Message stream;
  Items items;

  // The stream less these items and their pads.
  Message without(const InlineVector<std::uint32_t, 2>& reduced) const {
    Message rest;
    std::size_t at = 0;
    for (std::uint32_t index : reduced) {
      const Item& item = items[index];
      rest.insert(rest.end(), stream.begin() + static_cast<std::ptrdiff_t>(at),
                  stream.begin() + item.position);
      at = item.position + item.length + xdr_pad(item.length);
    }
    rest.insert(rest.end(), stream.begin() + static_cast<std::ptrdiff_t>(at), stream.end());
    return rest;
  }
  Message bytes_of(const Item& item) const {
    return {stream.begin() + item.position, stream.begin() + item.position + item.length};
  }
};

// Puts items back where their Positions say, with zeros for their pads.
Message merge(const Message& rest, const std::vector<std::pair<std::uint32_t, Message>>& items) {
  Message stream;
  std::size_t from = 0;
  for (const auto& [position, bytes] : items) {
    const std::size_t inline_bytes = position - stream.size();
    stream.insert(stream.end(), rest.begin() + static_cast<std::ptrdiff_t>(from),
                  rest.begin() + static_cast<std::ptrdiff_t>(from + inline_bytes));
    from += inline_bytes;
    stream.insert(stream.end(), bytes.begin(), bytes.end());
    stream.resize(stream.size() + xdr_pad(bytes.size()));
  }
  stream.insert(stream.end(), rest.begin() + static_cast<std::ptrdiff_t>(from), rest.end());
  return stream;
}

// A random message with `count` items of up to `longest` bytes; pads are zero.
Spoken speak(std::mt19937& chance, std::uint32_t xid, std::uint32_t direction, std::uint32_t count,
             std::uint32_t longest) {
  Spoken spoken;
  spoken.stream = rpc_stream(xid, direction, 40 + 4 * (chance() % (chance() % 4 ? 30 : 1500)));
  for (std::uint32_t i = 0; i < count; ++i) {
    Item item;
    item.position = static_cast<std::uint32_t>(spoken.stream.size());
    item.length = chance() % (longest + 1);
    item.segments = 1 + chance() % 3;
    item.ordinal = i;
    for (std::uint32_t k = 0; k < item.length; ++k)
      spoken.stream.push_back(static_cast<std::byte>(chance()));
    spoken.stream.resize(spoken.stream.size() + xdr_pad(item.length));
    for (std::uint32_t k = 4 * (chance() % 20); k > 0; --k)
      spoken.stream.push_back(static_cast<std::byte>(chance()));
    spoken.items.push_back(item);
  }
  return spoken;
}

struct Talk : OutgoingCall {
  Spoken said;
  std::map<std::uint32_t, Message> memory;  // by handle
  ExposedChunks exposed;
  bool done = false;
};

class Peer;

struct OnTheWire {
  Message message;
  std::optional<std::uint32_t> invalidate;
};

// One end: performs the actions of its core on the other end's memory.
class Peer final : public Sink {
 public:
  Peer(const Settings& settings, std::uint32_t seed) : core(settings, *this), chance_(seed) {
    limits_ = settings;
    core.start();
  }
  ~Peer() { core.on_disconnect(Reason::Shutdown); }

  void meet(Peer& other) { other_ = &other; }
  bool busy() const { return !inbox.empty() || !reads_.empty() || !to_answer_.empty(); }

  // One event, chosen by chance.
  void step() {
    const std::uint32_t choice = chance_() % 3;
    if (choice == 0 && !inbox.empty()) {
      const OnTheWire next = std::move(inbox.front());
      inbox.pop_front();
      message_ = next.message;
      core.on_receive(message_, next.invalidate);
    } else if (choice == 1 && !reads_.empty()) {
      IncomingCall& call = *reads_.front();
      reads_.pop_front();
      core.on_read_done(call, Reason::None);
    } else if (choice == 2 && !to_answer_.empty()) {
      const std::size_t at = chance_() % to_answer_.size();
      IncomingCall& call = *to_answer_[at];
      to_answer_.erase(to_answer_.begin() + static_cast<std::ptrdiff_t>(at));
      answer(call);
    }
  }

  void call(std::uint32_t xid) {
    Talk& talk = *talks.emplace_back(std::make_unique<Talk>());
    talk.said = speak(chance_, xid, CALL, chance_() % 3, chance_() % 2 ? 200 : 9000);
    talk.xid = xid;
    talk.shape.length = static_cast<std::uint32_t>(talk.said.stream.size());
    talk.shape.items = talk.said.items;
    talk.shape.segments = 1 + chance_() % 4;
    // The Reply is agreed upon beforehand, so that both ends know it.
    Spoken reply = speak(chance_, xid, REPLY, chance_() % 3, chance_() % 2 ? 200 : 9000);
    talk.bound.payload_max = static_cast<std::uint32_t>(reply.stream.size());
    for (const Item& item : reply.items) {
      talk.bound.payload_max -= item.length + static_cast<std::uint32_t>(xdr_pad(item.length));
      ResultBound bound;
      bound.max_length = item.length + chance_() % 100;
      bound.segments = 1 + chance_() % 3;
      bound.wanted_inline = chance_() % 5 == 0;
      talk.bound.results.push_back(bound);
    }
    // A Reply may also be all inline or all in the Reply chunk.
    talk.bound.payload_max += 4 * (chance_() % 10);
    other_->replies_[xid] = std::move(reply);
    core.on_call(talk);
  }

  // Connection.
  void post_receives(std::uint32_t) override {}
  void drop(Reason reason) override { FAIL() << to_string(reason); }
  void send_error(Buffer, Reason reason) override { FAIL() << to_string(reason); }
  void close(Reason reason) override { FAIL() << to_string(reason); }

  // Requester.
  Result<ExposedChunks, Reason> expose(OutgoingCall& base) override {
    Talk& talk = static_cast<Talk&>(base);
    const CallPlan& plan = talk.plan();
    ExposedChunks& exposed = talk.exposed;
    if (plan.form == Form::Long)
      exposed.position_zero =
          expose_bytes(talk, talk.said.without(plan.reduced), talk.shape.segments);
    for (std::uint32_t index : plan.reduced) {
      const Item& item = talk.shape.items[index];
      exposed.arguments.push_back(expose_bytes(talk, talk.said.bytes_of(item), item.segments));
    }
    for (std::size_t i = 0; i < plan.write_chunks.size(); ++i)
      exposed.results.push_back(
          expose_bytes(talk, Message(plan.write_chunks[i]), talk.bound.results[i].segments));
    exposed.reply = expose_bytes(talk, Message(plan.reply_chunk), talk.bound.segments);
    return exposed;
  }
  void send_call(OutgoingCall& base, Bytes header) override {
    Talk& talk = static_cast<Talk&>(base);
    forms[static_cast<int>(talk.plan().form)] += 1;
    Message message = copy(header);
    if (talk.plan().form == Form::Inline) {
      const Message rest = talk.said.without(talk.plan().reduced);
      message.insert(message.end(), rest.begin(), rest.end());
    }
    check_sent(message, talk.plan().form, talk.xid);
    EXPECT_LE(core.requester().in_flight(), core.requester().credit_limit());
    other_->inbox.push_back({std::move(message), std::nullopt});
  }
  void deliver_reply(OutgoingCall& base, const ReplyArrival& reply) override {
    Talk& talk = static_cast<Talk&>(base);
    talk.done = true;
    const Message rest = reply.long_reply
                             ? gather(talk, talk.exposed.reply, reply.reply_chunk_length)
                             : copy(reply.payload);
    // The pairing rule: each item into the chunk at its index.
    const Spoken& expected = other_->replies_[talk.xid];
    std::vector<std::pair<std::uint32_t, Message>> items;
    for (std::size_t i = 0; i < expected.items.size() && i < reply.written.size(); ++i) {
      if (talk.plan().write_chunks[i] == 0) continue;
      EXPECT_EQ(reply.written[i], expected.items[i].length);
      items.emplace_back(expected.items[i].position,
                         gather(talk, talk.exposed.results[i], reply.written[i]));
    }
    EXPECT_EQ(merge(rest, items), expected.stream) << "XID " << talk.xid;
    if (reply.invalidated) {
      EXPECT_EQ(talk.memory.count(*reply.invalidated), 1u);
      ++invalidations;
    }
  }
  void fail_call(OutgoingCall&, const CallFailure& failure) override {
    if (failure.reason != Reason::Shutdown) FAIL() << to_string(failure.reason);
  }

  // Responder.
  std::unique_ptr<IncomingCall> make_call() override { return std::make_unique<IncomingCall>(); }
  void defer_call(IncomingCall& call, Bytes payload) override { deferred_[&call] = copy(payload); }
  bool start_reads(IncomingCall& call, std::span<const ArrivedItem> items) override {
    read_items_[&call].clear();
    for (const ArrivedItem& item : items)
      read_items_[&call].emplace_back(item.position, Message(item.length));
    return true;
  }
  void read(IncomingCall& call, std::uint32_t item, std::uint32_t offset,
            const Segment& from) override {
    const MutableBytes source = other_->find_memory(from);
    std::copy(source.begin(), source.end(), read_items_[&call][item].second.begin() + offset);
    reads_.push_back(&call);
  }
  Bytes long_call(IncomingCall& call) override { return read_items_[&call][0].second; }
  void deliver_call(IncomingCall& call, const CallArrival& arrival) override {
    const auto& items = read_items_[&call];
    Message rest = arrival.deferred ? deferred_[&call] : copy(arrival.payload);
    std::vector<std::pair<std::uint32_t, Message>> moved;
    if (!arrival.items.empty()) moved = items;
    if (arrival.long_call) {
      rest = moved[0].second;
      moved.erase(moved.begin());
    }
    EXPECT_EQ(merge(rest, moved), other_->said(arrival.xid)) << "XID " << arrival.xid;
    xids_[&call] = arrival.xid;
    to_answer_.push_back(&call);
  }
  void write(IncomingCall& call, const Placement& placement) {
    const Spoken& reply = replies_[xids_[&call]];
    const Message source = placement.item == kReplyStream
                               ? reply.without(unreduced_of(call))
                               : reply.bytes_of(reply.items[placement.item]);
    const MutableBytes target = other_->find_memory(placement.to);
    std::copy_n(source.begin() + placement.offset, placement.to.length, target.begin());
  }
  void send_reply(IncomingCall& call, Bytes header, const ReplyPlan& plan,
                  std::optional<std::uint32_t> invalidate) override {
    for (const Placement& placement : plan.writes) write(call, placement);
    Message message = copy(header);
    if (plan.form == Form::Inline) {
      const Message rest = replies_[xids_[&call]].without(plan.reduced);
      message.insert(message.end(), rest.begin(), rest.end());
    }
    forms[2 + static_cast<int>(plan.form)] += 1;
    check_sent(message, plan.form, xids_[&call]);
    other_->inbox.push_back({std::move(message), invalidate});
    sent_.push_back(&call);
  }
  void forget_call(IncomingCall&, Reason) override {}

  std::deque<OnTheWire> inbox;
  std::vector<std::unique_ptr<Talk>> talks;
  int forms[4] = {};  // Short and Long Calls, Short and Long Replies
  int invalidations = 0;

  // After the talks (they are linked into it until its end).
  Connection core;

 private:
  // What holds for every message, of either role in either direction.
  void check_sent(const Message& message, Form form, std::uint32_t xid) {
    EXPECT_LE(message.size(), limits_.thresholds.send);
    EXPECT_EQ(word(message, 0), xid);
    EXPECT_EQ(word(message, 1), 1u);
    EXPECT_GE(word(message, 2), 1u);
    EXPECT_EQ(word(message, 3), form == Form::Long ? RDMA_NOMSG : RDMA_MSG);
    const auto parsed = decode_header(message);
    ASSERT_TRUE(parsed.ok());
    if (form == Form::Long)
      EXPECT_EQ(parsed->size, message.size());
    else
      EXPECT_EQ(word(message, parsed->size / 4), xid);
  }

  void answer(IncomingCall& call) {
    const Spoken& reply = replies_[xids_[&call]];
    ReplyShape shape;
    shape.length = static_cast<std::uint32_t>(reply.stream.size());
    shape.items = reply.items;
    plan_shape_[&call] = shape;
    core.on_reply(call, shape);
    for (IncomingCall* gone : std::exchange(sent_, {})) core.on_sent(*gone);
  }

  // Which items a Long Reply leaves out: those with a Write chunk that is not empty, in order.
  InlineVector<std::uint32_t, 2> unreduced_of(IncomingCall& call) {
    InlineVector<std::uint32_t, 2> reduced;
    const Talk& talk = other_->talk(xids_[&call]);
    for (std::uint32_t i = 0; i < plan_shape_[&call].items.size(); ++i)
      if (i < talk.plan().write_chunks.size() && talk.plan().write_chunks[i] != 0)
        reduced.push_back(i);
    return reduced;
  }

  Talk& talk(std::uint32_t xid) {
    for (auto& talk : talks)
      if (talk->xid == xid) return *talk;
    STAG_CHECK(false);
    return *talks[0];
  }
  const Message& said(std::uint32_t xid) { return talk(xid).said.stream; }

  // The peer names memory exactly, and only of Calls that have had no Reply.
  MutableBytes find_memory(const Segment& segment) {
    for (auto& talk : talks) {
      const auto found = talk->memory.find(segment.handle);
      if (found == talk->memory.end() || talk->done) continue;
      const std::uint64_t at = segment.offset - base(segment.handle);
      STAG_CHECK(range_within<std::uint64_t>(at, segment.length, found->second.size()));
      return MutableBytes(found->second).subspan(at, segment.length);
    }
    STAG_CHECK(false);
    return {};
  }
  static std::uint64_t base(std::uint32_t handle) { return std::uint64_t{handle} << 33; }

  Segments expose_bytes(Talk& talk, const Message& bytes, std::uint32_t pieces) {
    Segments segments;
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < pieces && at < bytes.size(); ++i) {
      const std::size_t left = bytes.size() - at;
      const std::size_t size = i + 1 == pieces ? left : 1 + chance_() % left;
      const std::uint32_t handle = next_handle_++;
      talk.memory[handle] = {bytes.begin() + static_cast<std::ptrdiff_t>(at),
                             bytes.begin() + static_cast<std::ptrdiff_t>(at + size)};
      segments.push_back({handle, static_cast<std::uint32_t>(size), base(handle)});
      at += size;
    }
    return segments;
  }
  static Message gather(Talk& talk, const Segments& segments, std::size_t length) {
    Message bytes;
    for (const Segment& segment : segments)
      bytes.insert(bytes.end(), talk.memory[segment.handle].begin(),
                   talk.memory[segment.handle].end());
    EXPECT_LE(length, bytes.size());
    bytes.resize(length);
    return bytes;
  }

  Settings limits_;
  std::mt19937 chance_;
  Peer* other_ = nullptr;
  Message message_;
  std::map<std::uint32_t, Spoken> replies_;  // by XID, to Calls of the other end
  std::map<IncomingCall*, std::uint32_t> xids_;
  std::map<IncomingCall*, Message> deferred_;
  std::map<IncomingCall*, std::vector<std::pair<std::uint32_t, Message>>> read_items_;
  std::map<IncomingCall*, ReplyShape> plan_shape_;
  std::deque<IncomingCall*> reads_;
  std::vector<IncomingCall*> to_answer_, sent_;
  std::uint32_t next_handle_ = 0x1000;
};

class Conversation {
 public:
  Conversation(std::uint32_t seed, Settings client, Settings server)
      : client_(client, seed), server_(server, seed + 1) {
    client_.meet(server_);
    server_.meet(client_);
  }

  void run(std::uint32_t calls) {
    for (std::uint32_t xid = 1; xid <= calls; ++xid) {
      client_.call(xid);
      server_.call(xid);  // the same XIDs in both directions
    }
    int idle = 0;
    for (; idle < 100; idle = client_.busy() || server_.busy() ? 0 : idle + 1) {
      client_.step();
      server_.step();
      if (::testing::Test::HasFailure()) return;
    }
    for (Peer* peer : {&client_, &server_})
      for (const auto& talk : peer->talks) EXPECT_TRUE(talk->done) << "XID " << talk->xid;
  }

  Peer client_, server_;
};

Settings settings_of(std::uint32_t send, std::uint32_t receive, std::uint32_t credits,
                     PeerQuirks quirks) {
  Settings settings;
  settings.thresholds = {send, receive, true, true};
  settings.credits_requested = credits;
  settings.credits_granted = credits;
  settings.quirks = quirks;
  settings.max_bytes = 40000;
  return settings;
}

TEST(Conversation, has_no_obsolete_message_and_the_same_version_and_XID_everywhere) {
  PROVES("R8166-4.6.1-a", "R8166-4.6.2-a", "R8167-5.1-d", "R8167-5.2-d");
  // Checked in every message sent; here with all forms of it.
  Conversation talk(3, settings_of(1024, 1024, 4, {}), settings_of(1024, 1024, 4, {}));
  talk.run(60);
  for (const Peer* peer : {&talk.client_, &talk.server_})
    for (int form : peer->forms) EXPECT_GT(form, 0);
}

TEST(Conversation, carries_every_byte_in_both_directions_at_once) {
  PROVES("R8167-2.3-a", "R8166-6.3-b", "R8167-5.3-a", "R8167-5.3-b");
  int forms[4] = {};
  int invalidations = 0;
  for (std::uint32_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const std::uint32_t up = seed % 3 == 0 ? 1024 : 4096;
    const std::uint32_t down = seed % 4 == 0 ? 1024 : 4096;
    const PeerQuirks quirks = seed % 2 ? PeerQuirks{} : PeerQuirks::none();
    const std::uint32_t credits = seed % 5 == 0 ? 1 : 8;
    Conversation talk(seed, settings_of(up, down, credits, quirks),
                      settings_of(down, up, credits, quirks));
    talk.run(30);
    for (const Peer* peer : {&talk.client_, &talk.server_}) {
      for (int i = 0; i < 4; ++i) forms[i] += peer->forms[i];
      invalidations += peer->invalidations;
    }
  }
  for (int form : forms) EXPECT_GT(form, 20);
  EXPECT_GT(invalidations, 20);
}

TEST(Conversation, moves_whole_items_and_whole_messages_however_their_memory_is_cut) {
  PROVES("R8166-3.4.4-a", "R8166-3.4.4.4-a", "R8166-3.5.3-d", "R8166-6.1-b");
  Conversation talk(99, settings_of(1024, 1024, 16, PeerQuirks::none()),
                    settings_of(1024, 1024, 16, PeerQuirks::none()));
  talk.run(80);
  for (const Peer* peer : {&talk.client_, &talk.server_})
    for (int form : peer->forms) EXPECT_GT(form, 0);
}

TEST(Conversation, needs_no_private_data_from_either_side) {
  PROVES("R8797-1-a");
  const PrivateData large{4096, 4096, false};
  for (int who = 0; who < 4; ++who) {
    const bool client_speaks = who & 1, server_speaks = who & 2;
    // A side that says nothing keeps to the default as well.
    const auto of = [&](bool own, bool theirs) {
      Settings settings = settings_of(0, 0, 8, {});
      settings.thresholds =
          negotiate(own ? large : PrivateData{}, theirs ? std::optional(large) : std::nullopt);
      return settings;
    };
    Conversation talk(static_cast<std::uint32_t>(who), of(client_speaks, server_speaks),
                      of(server_speaks, client_speaks));
    talk.run(20);
  }
}

TEST(Conversation, keeps_each_direction_within_its_own_threshold_both_ways) {
  PROVES("R8167-4.2-a", "R8166-3.3.2-c", "R8797-3.1-a", "R8797-4-l");
  // Checked at every Send of every message; here with very different values.
  Conversation talk(7, settings_of(1024, 16384, 8, {}), settings_of(16384, 1024, 8, {}));
  talk.run(60);
  EXPECT_GT(talk.client_.forms[1], talk.server_.forms[1]) << "long Calls are those of the client";
  EXPECT_EQ(talk.server_.talks.size(), 60u);
}

}  // namespace
}  // namespace stag::rpcrdma
