// Private data and credits (RFC 8797, RFC 8166 3.3).
#include <fmt/format.h>

#include <algorithm>

#include "conform/rpcrdma/talk.h"

namespace stag::conform::rpcrdma {
namespace {

using PrivateBytes = std::vector<std::byte>;

PrivateBytes announced(std::uint32_t size) {
  const auto own = wire::encode_private_data({size, size, false});
  return {own.begin(), own.end()};
}

// Results of more than 1024 bytes.
Call many_attributes(Context& context) {
  std::vector<v4::nfs_argop4> operations{operation(v4::OP_PUTROOTFH)};
  while (operations.size() < 16) operations.push_back(getattr_operation());
  return compound_call(context, std::move(operations));
}

constexpr std::uint32_t kEnough = 1 << 16;  // bytes: more than any server sends inline

// A Reply of more than 1024 bytes, to a Requester that has announced no more and gives no chunk.
Verdict judge_short(const Answer& answer) {
  if (answer.size > wire::kDefaultInlineThreshold)
    return Verdict::fail(fmt::format("a message of {} bytes came", answer.size));
  if (ends_with_too_big(answer)) return Verdict::pass("results that fit came");
  if (answer.kind == Answer::Kind::Reply)
    return Verdict::skip("the server's results are short: " + described(answer));
  if (answer.kind == Answer::Kind::Error || answer.kind == Answer::Kind::Lost)
    return Verdict::pass(answer.text() + " came");
  return Verdict::fail(described(answer) + " came, asked for RDMA_ERROR");
}

// What such a Call draws on a connection with this private data.
Task<Answer> answer_with(Context& context, PrivateBytes data, std::string& trouble) {
  PeerOptions options;
  options.private_data = std::move(data);
  options.receive_size = kEnough;
  options.timeout = context.timeout;
  options.cancel = context.cancel;
  std::string why;
  const std::unique_ptr<Peer> peer =
      co_await Peer::connect(context.fabric, context.server, std::move(options), why);
  if (peer == nullptr) {
    trouble = "no connection: " + why;
    co_return Answer{};
  }
  const std::uint32_t xid = context.next_xid();
  send_null(*peer, xid);
  Answer answer = co_await peer->answer_to(xid);
  if (!is_success(answer)) {
    trouble = "a NULL call drew " + described(answer);
  } else {
    const Call call = many_attributes(context);
    send_call(*peer, call);
    answer = co_await peer->answer_to(call.header.xid);
  }
  co_await peer->close();
  co_return answer;
}

// Private data that counts for nothing leaves the threshold at 1024 bytes (RFC 8797 5.1).
Task<Verdict> counts_as_none(Context& context, PrivateBytes data) {
  std::string trouble;
  const Answer answer = co_await answer_with(context, std::move(data), trouble);
  co_return trouble.empty() ? judge_short(answer) : Verdict::fail(std::move(trouble));
}

// Private data that announces 4096 bytes, wherever it stands, is found: longer Replies come, unless
// none come to the plainest either, for a server need not send as much as it may.
Task<Verdict> is_found(Context& context, PrivateBytes data) {
  std::string trouble;
  const Answer answer = co_await answer_with(context, std::move(data), trouble);
  if (!trouble.empty()) co_return Verdict::fail(std::move(trouble));
  if (!is_success(answer)) co_return Verdict::fail(described(answer) + " came, asked for results");
  if (answer.size > wire::kDefaultInlineThreshold) co_return Verdict::pass();
  if (!ends_with_too_big(answer))
    co_return Verdict::skip("the server's results are short: " + described(answer));
  PrivateBytes plainest = announced(4096);
  const Answer plain = co_await answer_with(context, std::move(plainest), trouble);
  if (plain.size > wire::kDefaultInlineThreshold)
    co_return Verdict::fail("results came that are cut to 1024 bytes, asked for 4096");
  co_return Verdict::skip("the server sends no more than 1024 bytes inline");
}

RdmaCase with_private_data(std::string name, std::string requirements, PrivateBytes data,
                           Task<Verdict> (*run)(Context&, PrivateBytes)) {
  return {.group = "private data",
          .name = std::move(name),
          .section = "8797 5.1",
          .requirements = std::move(requirements),
          .run = [data, run](Context& context) { return run(context, data); }};
}

PrivateBytes padded(PrivateBytes data, std::size_t before, std::size_t all) {
  PrivateBytes made(all);
  std::ranges::copy(data, made.begin() + static_cast<std::ptrdiff_t>(before));
  return made;
}

Task<Verdict> announces_itself(Context& context) {
  std::string why;
  const std::unique_ptr<Peer> peer = co_await greet(context, 4096, why);
  if (peer == nullptr) co_return Verdict::fail("no connection: " + why);
  const auto theirs = wire::decode_private_data(peer->private_data());
  co_await peer->close();
  if (!theirs) co_return Verdict::skip("the server sends no private data");
  if (theirs->send_size < 1024 || theirs->receive_size < 1024)
    co_return Verdict::fail("a size is below 1024 bytes");
  co_return Verdict::pass(fmt::format("Send {}, Receive {}, remote invalidation {}",
                                      theirs->send_size, theirs->receive_size,
                                      theirs->remote_invalidation ? "yes" : "no"));
}

Task<Verdict> keeps_to_1024(Context& context) {
  std::string why;
  const std::unique_ptr<Peer> peer = co_await greet(context, 0, why, kEnough);
  if (peer == nullptr) co_return Verdict::fail("no connection: " + why);
  const Call call = many_attributes(context);
  send_call(*peer, call);
  const Answer answer = co_await peer->answer_to(call.header.xid);
  co_await peer->close();
  co_return judge_short(answer);
}

Task<Verdict> does_not_invalidate(Context& context) {
  std::string why;
  const std::unique_ptr<Peer> peer = co_await greet(context, 4096, why);
  if (peer == nullptr) co_return Verdict::fail("no connection: " + why);
  const std::uint32_t xid = context.next_xid();
  const Exposed& memory = peer->expose_sink({512});
  const wire::Segment& segment = memory.segments[0];
  const Words lists{0,
                    0,
                    1,
                    1,
                    segment.handle,
                    segment.length,
                    static_cast<std::uint32_t>(segment.offset >> 32),
                    static_cast<std::uint32_t>(segment.offset)};
  peer->send(bytes_of_words(joined(header_words(xid, 1, wire::RDMA_MSG, lists), null_call(xid))));
  const Answer answer = co_await peer->answer_to(xid);
  co_await peer->close();
  if (answer.kind != Answer::Kind::Reply) co_return Verdict::fail(answer.text() + " came");
  if (answer.invalidated) co_return Verdict::fail("memory was invalidated without being asked for");
  co_return Verdict::pass();
}

// The grant that a NULL call with this request draws.
Task<Verdict> grants(Context& context, std::uint32_t requested) {
  std::string why;
  const std::unique_ptr<Peer> peer = co_await greet(context, 4096, why);
  if (peer == nullptr) co_return Verdict::fail("no connection: " + why);
  const std::uint32_t xid = context.next_xid();
  send_null(*peer, xid, requested);
  const Answer answer = co_await peer->answer_to(xid);
  co_await peer->close();
  if (answer.kind == Answer::Kind::Error && requested == 0)
    co_return answer.error.credits > 0
        ? Verdict::pass(answer.text() + " came")
        : Verdict::fail(answer.text() + " came, and zero credits were granted");
  if (answer.kind == Answer::Kind::Lost && requested == 0)
    co_return Verdict::pass("the connection was lost");
  if (!is_success(answer)) co_return Verdict::fail(described(answer) + " came");
  if (answer.header.credits == 0) co_return Verdict::fail("zero credits were granted");
  co_return Verdict::pass(fmt::format("{} granted", answer.header.credits));
}

// As many calls at a time as are granted are answered.
Task<Verdict> honours_its_grant(Context& context) {
  constexpr std::uint32_t kMost = 32;
  std::string why;
  const std::unique_ptr<Peer> peer = co_await greet(context, 4096, why);
  if (peer == nullptr) co_return Verdict::fail("no connection: " + why);
  const std::uint32_t first = context.next_xid();
  send_null(*peer, first, kMost);
  const Answer granting = co_await peer->answer_to(first);
  if (!is_success(granting)) co_return Verdict::fail(described(granting) + " came");
  const std::uint32_t calls = std::min(granting.header.credits, kMost);
  for (std::uint32_t i = 0; i < calls; ++i) send_null(*peer, context.next_xid(), kMost);
  for (std::uint32_t i = 0; i < calls; ++i) {
    const Answer answer = co_await peer->next();
    if (is_success(answer)) continue;
    co_await peer->close();
    co_return Verdict::fail(
        fmt::format("{} calls were granted, {} answered, then: {}", calls, i, described(answer)));
  }
  co_await peer->close();
  co_return Verdict::pass(fmt::format("{} calls at a time", calls));
}

RdmaCase about_credits(std::string name, std::string requirements,
                       std::function<Task<Verdict>(Context&)> run) {
  return {.group = "credits",
          .name = std::move(name),
          .section = "8166 3.3.1",
          .requirements = std::move(requirements),
          .run = std::move(run)};
}

}  // namespace

RdmaCases connection_cases() {
  PrivateBytes other_version = announced(4096);
  other_version[4] = std::byte{9};
  PrivateBytes other_magic = announced(4096);
  other_magic[0] = std::byte{0};
  constexpr std::size_t kMost = 56;  // what every kind of network carries
  return {
      with_private_data("none", "R8797-5.1-a R8797-5.1-b", {}, counts_as_none),
      with_private_data("of version 1", "R8797-4-h", announced(4096), is_found),
      with_private_data("of another version counts as none", "R8797-5.2-e R8797-6-a",
                        std::move(other_version), counts_as_none),
      with_private_data("of another format counts as none", "R8797-5.2-c", std::move(other_magic),
                        counts_as_none),
      with_private_data("that ends too early counts as none", "R8797-5.2-f", {announced(4096)[0]},
                        counts_as_none),
      with_private_data("behind other bytes", "R8797-5.2-a", padded(announced(4096), 16, 24),
                        is_found),
      with_private_data("as long as it can be", "R8797-5.2-a", padded(announced(4096), 0, kMost),
                        is_found),
      {.group = "private data",
       .name = "the server's own",
       .section = "8797 4",
       .requirements = "R8797-4-a",
       .run = announces_itself},
      {.group = "private data",
       .name = "without it, no Reply is longer than 1024 bytes",
       .section = "8166 3.3.3",
       .requirements = "R8166-3.3.3-g R8797-5.1-b",
       .run = keeps_to_1024},
      {.group = "private data",
       .name = "no Send With Invalidate for one that does not want it",
       .section = "8797 4.1",
       .requirements = "R8797-5.1-a",
       .run = does_not_invalidate},
  };
}

RdmaCases credit_cases() {
  return {
      about_credits("a request of one", "R8166-3.3.1-b R8166-4.2.3-b",
                    [](Context& context) { return grants(context, 1); }),
      about_credits("a request of zero", "R8166-3.3.1-b",
                    [](Context& context) { return grants(context, 0); }),
      about_credits("the largest request", "R8166-3.3.1-b",
                    [](Context& context) { return grants(context, ~0u); }),
      about_credits("as many calls at a time as are granted", "R8166-3.3.1-h", honours_its_grant),
  };
}

}  // namespace stag::conform::rpcrdma
