// Long messages and chunks that move data (RFC 8166 3.4 to 3.5, 4.3).
#include <fmt/format.h>

#include <algorithm>

#include "conform/rpcrdma/talk.h"
#include "xdr/decoder.h"

namespace stag::conform::rpcrdma {
namespace {

constexpr std::uint32_t kThreshold = 4096;
constexpr std::string_view kTarget = "target";
// Behind chunks that are too small: more than the results that do not go into them.
constexpr std::uint32_t kLinkGuard = 62, kReplyGuard = 16384;

// A Call under way: the connection, and what came.
struct Exchange {
  std::unique_ptr<Peer> peer{};
  Answer answer{};
  std::string trouble{};
};

Task<Exchange> connected(Context& context, std::uint32_t threshold = kThreshold) {
  Exchange made;
  made.peer = co_await greet(context, threshold, made.trouble);
  co_return made;
}

Task<Verdict> done(Exchange& exchange, Verdict verdict) {
  co_await exchange.peer->close();
  co_return verdict;
}

std::vector<std::uint32_t> cut(std::uint32_t length, std::uint32_t segments) {
  std::vector<std::uint32_t> lengths(segments, length / segments);
  lengths.back() += length % segments;
  return lengths;
}

// Whether a server is to blame for the end of the connection: it reached where it may not.
bool is_of_access(Reason reason) {
  switch (reason) {
    case Reason::StagUnknown:
    case Reason::StagRevoked:
    case Reason::StagAccessViolation:
    case Reason::BaseOrBoundsViolation:
    case Reason::RemoteAccessDenied:
    case Reason::RemoteAccessOutOfBounds:
      return true;
    default:
      return false;
  }
}

// What a server did with memory that was not announced, or nothing.
std::string beyond(const Exposed& sink, const Answer& answer) {
  const auto guard = Bytes(sink.memory).subspan(wire::total_length(sink.segments));
  const auto changed = [](std::byte byte) { return byte != kUntouched; };
  if (std::ranges::any_of(guard, changed)) return "memory behind the chunk was written";
  const bool reached = answer.kind == Answer::Kind::Lost && is_of_access(answer.reason);
  return reached ? answer.text() : "";
}

// RFC 8166 3.4.6, 3.4.6.2, 4.3.3: a complaint about how a Write or Reply chunk came back, or
// nothing. What is in one that was not used is nobody's.
std::string complaint_about(const Exposed& sink, const wire::Segments& returned) {
  if (returned.size() != sink.segments.size()) return "came back with other segments";
  const bool used = wire::total_length(returned) > 0;
  bool full = true;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < returned.size(); ++i) {
    const wire::Segment& offered = sink.segments[i];
    if (returned[i].handle != offered.handle || returned[i].offset != offered.offset)
      return "came back with another handle or offset";
    if (returned[i].length > offered.length) return "came back longer than it was";
    if (!full && returned[i].length > 0)
      return "has a segment that was used before the one in front of it was full";
    full = returned[i].length == offered.length;
    const auto rest =
        Bytes(sink.memory).subspan(begin + returned[i].length, offered.length - returned[i].length);
    const auto changed = [](std::byte byte) { return byte != kUntouched; };
    if (used && std::ranges::any_of(rest, changed))
      return "was written behind the length that came back";
    begin += offered.length;
  }
  return {};
}

// A target of which no two parts are alike, so that what is joined in another order is another one.
std::string long_target() {
  constexpr std::size_t kLength = 1000;  // the longest that every file system takes is 1023
  std::string target;
  for (int i = 0; target.size() < kLength; ++i) target += fmt::format("{}-", i);
  target.resize(kLength);
  return target;
}

std::vector<v4::nfs_argop4> many_attributes() {
  std::vector<v4::nfs_argop4> operations{operation(v4::OP_PUTROOTFH)};
  while (operations.size() < 16) operations.push_back(getattr_operation());
  return operations;
}

// CREATE of a symbolic link, READLINK, and REMOVE.
std::vector<v4::nfs_argop4> one_link(Context& context, const std::string& target) {
  const std::string name = fmt::format("{}-{:x}", context.link, context.next_xid());
  std::vector<v4::nfs_argop4> operations = way_to(context);
  operations.push_back(symlink_operation(name, target));
  operations.push_back(operation(v4::OP_READLINK));
  for (const v4::nfs_argop4& step : way_to(context)) operations.push_back(step);
  operations.push_back(operation(v4::OP_REMOVE));
  operations.back().opremove() = {name};
  return operations;
}

std::vector<v4::nfs_argop4> links(const Context& context, int count) {
  std::vector<v4::nfs_argop4> operations = way_to(context);
  operations.push_back(lookup_operation(context.link));
  for (int i = 0; i < count; ++i) operations.push_back(operation(v4::OP_READLINK));
  return operations;
}

// A Call with a Reply chunk of segments of these lengths.
struct LongReply {
  Exchange exchange{};
  const Exposed* sink = nullptr;
};
Task<LongReply> with_reply_chunk(Context& context, std::vector<v4::nfs_argop4> operations,
                                 std::vector<std::uint32_t> lengths, std::uint32_t threshold,
                                 std::uint32_t guard = 0) {
  LongReply made;
  made.exchange = co_await connected(context, threshold);
  if (made.exchange.peer == nullptr) co_return made;
  Call call = compound_call(context, std::move(operations));
  made.sink = &made.exchange.peer->expose_sink(lengths, guard);
  call.header.reply_chunk = wire::WriteChunk{made.sink->segments};
  send_call(*made.exchange.peer, call);
  made.exchange.answer = co_await made.exchange.peer->answer_to(call.header.xid);
  co_return made;
}

Verdict judge_long_reply(const LongReply& made) {
  const Answer& answer = made.exchange.answer;
  if (answer.kind != Answer::Kind::Reply) return Verdict::fail(answer.text() + " came");
  if (!answer.header.read_list.empty()) return Verdict::fail("the Reply has a Read list");
  if (!answer.header.reply_chunk) return Verdict::fail("the Reply has no Reply chunk");
  const wire::Segments& returned = answer.header.reply_chunk->segments;
  const bool is_short = answer.header.proc == wire::RDMA_MSG;
  if (is_short && wire::total_length(returned) > 0)
    return Verdict::fail("an unused Reply chunk came back with a length");
  const std::string message = taken(*made.sink, returned);
  const RpcReply reply = rpc_reply(is_short ? answer.payload : Buffer::copy_of(bytes_of(message)));
  v4::COMPOUND4res results;
  if (!reply.decoded || !reply.status.success() || !decode_compound(reply.results, results))
    return Verdict::fail(is_short ? described(answer) + " came, asked for the results"
                                  : "the message in the Reply chunk cannot be decoded");
  const std::string complaint = complaint_about(*made.sink, returned);
  if (!complaint.empty()) return Verdict::fail("the Reply chunk " + complaint);
  return Verdict::pass(is_short ? "a Short Reply came"
                                : fmt::format("{} bytes in the Reply chunk", message.size()));
}

Task<Verdict> long_reply(Context& context, std::vector<std::uint32_t> lengths) {
  LongReply made = co_await with_reply_chunk(context, many_attributes(), lengths, 0);
  if (made.sink == nullptr) co_return Verdict::fail("no connection: " + made.exchange.trouble);
  Verdict verdict = judge_long_reply(made);
  const bool is_short = made.exchange.answer.header.proc == wire::RDMA_MSG;
  if (verdict.outcome == Outcome::Pass && is_short)
    verdict = Verdict::skip("the server's results are short: " + described(made.exchange.answer));
  co_return co_await done(made.exchange, std::move(verdict));
}

Task<Verdict> unused_reply_chunk(Context& context) {
  std::vector<v4::nfs_argop4> operations{operation(v4::OP_PUTROOTFH)};
  std::vector<std::uint32_t> lengths{512, 512};
  LongReply made =
      co_await with_reply_chunk(context, std::move(operations), std::move(lengths), kThreshold);
  if (made.sink == nullptr) co_return Verdict::fail("no connection: " + made.exchange.trouble);
  Verdict verdict = judge_long_reply(made);
  co_return co_await done(made.exchange, std::move(verdict));
}

// RFC 8166 4.5.3. A server of NFS that knows what a Reply can carry need not let it come to that.
Task<Verdict> small_reply_chunk(Context& context) {
  std::vector<std::uint32_t> lengths{64};
  LongReply made =
      co_await with_reply_chunk(context, many_attributes(), std::move(lengths), 0, kReplyGuard);
  if (made.sink == nullptr) co_return Verdict::fail("no connection: " + made.exchange.trouble);
  const Answer& answer = made.exchange.answer;
  Verdict verdict = Verdict::fail(described(answer) + " came, asked for ERR_CHUNK");
  if (answer.kind == Answer::Kind::Error && answer.error.code == wire::ERR_CHUNK)
    verdict = Verdict::pass();
  if (answer.kind == Answer::Kind::Lost) verdict = Verdict::pass(answer.text());
  if (ends_with_too_big(answer)) verdict = judge_long_reply(made);
  std::string complaint = beyond(*made.sink, answer);
  if (!complaint.empty()) verdict = Verdict::fail(std::move(complaint));
  co_return co_await done(made.exchange, std::move(verdict));
}

// READLINKs with Write chunks of segments of these lengths; a chunk without segments is empty.
struct Linked {
  Exchange exchange{};
  std::vector<const Exposed*> sinks{};
};
Task<Linked> read_links(Context& context, int count, std::vector<std::vector<std::uint32_t>> chunks,
                        std::uint32_t guard = 0) {
  Linked made;
  made.exchange = co_await connected(context);
  if (made.exchange.peer == nullptr) co_return made;
  Call call = compound_call(context, links(context, count));
  for (const auto& lengths : chunks) {
    made.sinks.push_back(&made.exchange.peer->expose_sink(lengths, guard));
    call.header.write_list.push_back({made.sinks.back()->segments});
  }
  send_call(*made.exchange.peer, call);
  made.exchange.answer = co_await made.exchange.peer->answer_to(call.header.xid);
  co_return made;
}

// The results of READLINKs that came in Write chunks: the first chunk has the first result, unless
// it is empty (RFC 8166 4.3.2.1, 4.3.2.3).
class LinksInChunks final : public xdr::ItemSource {
 public:
  explicit LinksInChunks(const Linked& made) : made_(made) {}

  std::optional<Rope> take(xdr::ItemId id, std::uint32_t, std::uint32_t length) override {
    if (id != v4::item::READLINK4resok_link) return std::nullopt;
    const std::size_t chunk = next_++;
    if (chunk >= made_.sinks.size() || made_.sinks[chunk]->segments.empty()) return std::nullopt;
    const std::string data =
        taken(*made_.sinks[chunk], made_.exchange.answer.header.write_list[chunk].segments);
    failed_ = failed_ || data.size() != length;
    return Rope::copy_of(bytes_of(data));
  }
  bool failed() const override { return failed_; }

 private:
  const Linked& made_;
  std::size_t next_ = 0;
  bool failed_ = false;
};

// All `count` results lead to the target, whether they came by chunk or not.
Verdict judge_results(const Linked& made, int count) {
  LinksInChunks items(made);
  xdr::Decoder decoder(rpc_reply(made.exchange.answer.payload).results, &items);
  v4::COMPOUND4res results;
  if (!decode(decoder, results) || decoder.remaining() > 0)
    return Verdict::fail("results came that cannot be decoded");
  if (results.status != v4::NFS4_OK)
    return Verdict::fail(std::string(to_string(results.status)) + " came, asked for NFS4_OK");
  int found = 0;
  for (const v4::nfs_resop4& each : results.resarray) {
    if (each.resop != v4::OP_READLINK || each.opreadlink().status != v4::NFS4_OK) continue;
    ++found;
    const Buffer link = each.opreadlink().resok4().link.flatten();
    if (text_of(link.bytes()) != kTarget)
      return Verdict::fail(
          fmt::format("a result is '{}', not '{}'", text_of(link.bytes()), kTarget));
  }
  return found == count ? Verdict::pass()
                        : Verdict::fail(fmt::format("{} results came, not {}", found, count));
}

// What each chunk holds; nothing that is not the target, or that is not where it belongs.
Verdict judge_links(const Linked& made, int count, const std::vector<std::string>& expected) {
  const Answer& answer = made.exchange.answer;
  if (!is_success(answer)) return Verdict::fail(described(answer) + " came, asked for a Reply");
  if (!answer.header.read_list.empty()) return Verdict::fail("the Reply has a Read list");
  if (answer.header.write_list.size() != made.sinks.size())
    return Verdict::fail("not every Write chunk came back");
  for (std::size_t i = 0; i < made.sinks.size(); ++i) {
    const wire::Segments& returned = answer.header.write_list[i].segments;
    const std::string data = taken(*made.sinks[i], returned);
    if (data != expected[i])
      return Verdict::fail(fmt::format("chunk {} has '{}', not '{}'", i, data, expected[i]));
    const std::string complaint = complaint_about(*made.sinks[i], returned);
    if (!complaint.empty()) return Verdict::fail(fmt::format("chunk {} {}", i, complaint));
  }
  return judge_results(made, count);
}

Task<Verdict> links_into(Context& context, int count,
                         std::vector<std::vector<std::uint32_t>> chunks,
                         std::vector<std::string> expected) {
  Linked made = co_await read_links(context, count, std::move(chunks));
  if (made.exchange.peer == nullptr)
    co_return Verdict::fail("no connection: " + made.exchange.trouble);
  Verdict verdict = judge_links(made, count, expected);
  co_return co_await done(made.exchange, std::move(verdict));
}

Task<Verdict> small_write_chunk(Context& context) {
  std::vector<std::vector<std::uint32_t>> chunks;
  chunks.push_back(cut(2, 1));
  Linked made = co_await read_links(context, 1, std::move(chunks), kLinkGuard);
  if (made.exchange.peer == nullptr)
    co_return Verdict::fail("no connection: " + made.exchange.trouble);
  const Answer& answer = made.exchange.answer;
  const bool refused = answer.kind == Answer::Kind::Error || answer.kind == Answer::Kind::Lost;
  Verdict verdict = refused ? Verdict::pass(answer.text() + " came")
                            : Verdict::fail(described(answer) + " came, asked for ERR_CHUNK");
  std::string complaint = beyond(*made.sinks.front(), answer);
  if (!complaint.empty()) verdict = Verdict::fail(std::move(complaint));
  co_return co_await done(made.exchange, std::move(verdict));
}

// Of a COMPOUND with one READLINK.
Verdict leads_to(const Answer& answer, std::string_view target) {
  v4::COMPOUND4res results;
  if (!is_success(answer) || !decode_compound(rpc_reply(answer.payload).results, results))
    return Verdict::fail(described(answer) + " came, asked for a Reply");
  if (results.status != v4::NFS4_OK)
    return Verdict::fail(std::string(to_string(results.status)) + " came, asked for NFS4_OK");
  const auto is_it = [](const v4::nfs_resop4& each) { return each.resop == v4::OP_READLINK; };
  const auto found = std::ranges::find_if(results.resarray, is_it);
  if (found == results.resarray.end() || found->opreadlink().status != v4::NFS4_OK)
    return Verdict::fail("NFS4_OK came without the result of READLINK");
  const Buffer link = found->opreadlink().resok4().link.flatten();
  return text_of(link.bytes()) == target
             ? Verdict::pass()
             : Verdict::fail("the link leads elsewhere than the chunk said");
}

// CREATE of a symbolic link whose target goes by Read chunk; `bytes` of memory are named.
Task<Verdict> link_from(Context& context, std::string target, std::uint32_t bytes,
                        std::uint32_t segments) {
  Exchange exchange = co_await connected(context);
  if (exchange.peer == nullptr) co_return Verdict::fail("no connection: " + exchange.trouble);
  static constexpr xdr::ItemId kLink[] = {v4::item::createtype4_linkdata};
  Call call = compound_call(context, one_link(context, target), kLink);
  std::string memory = target;
  memory.resize(bytes);
  const Exposed& source = exchange.peer->expose_source(bytes_of(memory), cut(bytes, segments));
  call.header.read_list.push_back({call.stream.items()[0].position, source.segments});
  static constexpr std::uint32_t kMoved[] = {0};
  send_call(*exchange.peer, call, kMoved);
  exchange.answer = co_await exchange.peer->answer_to(call.header.xid);
  co_await exchange.peer->close();
  co_return leads_to(exchange.answer, target);
}

// RFC 8166 3.5.3: the whole Call in a Position Zero Read chunk: segments of these lengths, and one
// of the rest.
Task<Verdict> long_call(Context& context, std::vector<std::uint32_t> lengths) {
  Exchange exchange = co_await connected(context);
  if (exchange.peer == nullptr) co_return Verdict::fail("no connection: " + exchange.trouble);
  const std::string target = long_target();
  Call call = compound_call(context, one_link(context, target));
  const Buffer message = call.stream.without({}).flatten();
  auto rest = static_cast<std::uint32_t>(message.size());
  for (const std::uint32_t length : lengths) rest -= length;
  lengths.push_back(rest);
  const Exposed& source = exchange.peer->expose_source(message.bytes(), std::move(lengths));
  call.header.proc = wire::RDMA_NOMSG;
  call.header.read_list.push_back({0, source.segments});
  send_call(*exchange.peer, call);
  exchange.answer = co_await exchange.peer->answer_to(call.header.xid);
  co_await exchange.peer->close();
  co_return leads_to(exchange.answer, target);
}

RdmaCase moving(std::string group, std::string name, std::string section, std::string requirements,
                bool needs_link, std::function<Task<Verdict>(Context&)> run) {
  RdmaCase made;
  made.group = std::move(group);
  made.name = std::move(name);
  made.section = std::move(section);
  made.requirements = std::move(requirements);
  made.run = std::move(run);
  made.needs_link = needs_link;
  return made;
}

}  // namespace

RdmaCases message_cases() {
  return {
      moving("long call", "in one segment", "8166 3.5.3", "R8166-3.5.3-a R8166-4-b", true,
             [](Context& context) { return long_call(context, {}); }),
      moving("long call", "in seven segments of odd lengths", "8166 3.4.5",
             "R8166-3.4.5-e R8166-3.4.5-g", true,
             [](Context& context) {
               return long_call(context, {301, 7, 199, 1, 251, 3});
             }),
      moving("reply chunk", "a Reply of more than 1024 bytes", "8166 3.5.3",
             "R8166-3.5.3-h R8166-4.3.3-d R8166-4.3.3-e R8166-4.3.1-c", false,
             [](Context& context) { return long_reply(context, {16384}); }),
      moving("reply chunk", "segments are filled one after the other", "8166 4.3.3",
             "R8166-4.3.3-f", false,
             [](Context& context) {
               return long_reply(context, {1000, 1000, 14000});
             }),
      moving("reply chunk", "unused, it comes back with no length", "8166 4.3.3",
             "R8166-4.3.3-c R8166-4.3.3-e", false, unused_reply_chunk),
      moving("reply chunk", "one that is too small draws ERR_CHUNK, or results that fit",
             "8166 4.5.3", "R8166-4.5.3-b", false, small_reply_chunk),
  };
}

RdmaCases write_chunk_cases() {
  const std::string target(kTarget);
  return {
      moving("write list", "a result goes into the chunk, without pad", "8166 4.3.2",
             "R8166-4.3.2-b R8166-3.4.6-f R8166-3.4.6.2-b R8166-3.4.6.2-c", true,
             [=](Context& context) { return links_into(context, 1, {{64}}, {target}); }),
      moving("write list", "segments are filled one after the other", "8166 3.4.6",
             "R8166-3.4.6-d R8166-3.4.6-e", true,
             [=](Context& context) {
               return links_into(context, 1, {{4, 1, 60}}, {target});
             }),
      moving("write list", "two results go into two chunks", "8166 4.3.2.1", "R8166-4.3.2.1-b",
             true,
             [=](Context& context) {
               return links_into(context, 2, {{64}, {64}}, {target, target});
             }),
      moving("write list", "a result without a chunk stays inline", "8166 4.3.2.1",
             "R8166-4.3.2.1-c", true,
             [=](Context& context) { return links_into(context, 2, {{64}}, {target}); }),
      moving("write list", "a chunk without a result comes back unused", "8166 4.3.2.2",
             "R8166-4.3.2.2-c R8166-4.3.2.2-d R8166-4.3.2.2-e", true,
             [=](Context& context) {
               return links_into(context, 1, {{64}, {64}}, {target, ""});
             }),
      moving("write list", "an empty chunk leaves its result inline", "8166 4.3.2.3",
             "R8166-4.3.2.3-c R8166-4.3.2.3-d", true,
             [=](Context& context) {
               return links_into(context, 2, {{}, {64}}, {"", target});
             }),
      moving("write list", "a chunk that is too small is not written beyond", "8166 4.5.3",
             "R8166-4.5.3-b", true, small_write_chunk),
  };
}

RdmaCases read_chunk_cases() {
  return {
      moving("read list", "an argument in one segment", "8166 3.4.5", "R8166-3.4.5-e R8166-3.4.5-f",
             true, [](Context& context) { return link_from(context, "abcdefgh", 8, 1); }),
      moving("read list", "an argument in segments of odd lengths", "8166 3.4.5", "R8166-3.4.5-g",
             true, [](Context& context) { return link_from(context, "abcdefgh", 8, 3); }),
      moving("read list", "an argument without its pad", "8166 3.4.5.2", "R8166-3.4.5.2-f", true,
             [](Context& context) { return link_from(context, "abcde", 5, 1); }),
      moving("read list", "an argument with its pad", "8166 3.4.5.2", "R8166-3.4.5.2-d", true,
             [](Context& context) { return link_from(context, "abcde", 8, 1); }),
  };
}

}  // namespace stag::conform::rpcrdma
