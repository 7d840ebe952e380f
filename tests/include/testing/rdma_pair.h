// A client and a server on one simulated network, with everything written down that either does to
// its fabric (testing/recording_fabric.h), and what RPC-over-RDMA messages that makes.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "fabric/sim/sim_fabric.h"
#include "oncrpc/message.h"
#include "rpc/client.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "rpcrdma/header.h"
#include "testing/blob_program.h"
#include "testing/proves.h"
#include "testing/recording_fabric.h"

namespace stag::rpc::rdma {

using namespace stag::testing;

// Gives the test the way back to the client.
struct Greet : FetchProcedure<6> {};
// Its binding promises less than it answers, and that it may be asked again.
struct Surprise : FetchProcedure<8> {};
struct Undersized : FetchProcedure<9> {};

// Two results that may travel by chunk, the first `seed` bytes long and the second `length`.
inline constexpr xdr::ItemId kFirst = 11, kSecond = 12;
struct Two {
  Rope first, second;
};
struct FetchTwo {
  using Args = Wanted;
  using Results = Two;
  static constexpr std::uint32_t program = kBlobProgram, version = 1, number = 7;
  static constexpr std::string_view name = "FETCH_TWO";
  static constexpr std::optional<std::uint32_t> max_args_size{8}, max_results_size{};
  static void encode_args(xdr::Encoder& e, const Args& a) { encode_wanted(e, a); }
  static bool decode_args(xdr::Decoder& d, Args& a) { return decode_wanted(d, a); }
  static void encode_results(xdr::Encoder& e, const Results& r) {
    e.opaque(kFirst, r.first);
    e.opaque(kSecond, r.second);
  }
  static bool decode_results(xdr::Decoder& d, Results& r) {
    return d.opaque(kFirst, r.first) && d.opaque(kSecond, r.second);
  }
};
inline Task<Two> fetch_two(CallContext&, Wanted wanted) {
  co_return Two{pattern(1, wanted.seed), pattern(2, wanted.length)};
}
inline ReplyBound two_bound(const Wanted& wanted) {
  return ReplyBound{8, {{kFirst, wanted.seed}, {kSecond, wanted.length}}};
}

inline constexpr std::array kPairTable{
    kBlobTable[0],
    kBlobTable[1],
    kBlobTable[2],
    kBlobTable[3],
    kBlobTable[4],
    bind<Greet>({}, {},
                [](const Wanted&) {
                  return ReplyBound{kBlobFrame, {}};
                }),
    bind<FetchTwo>({}, {kFirst, kSecond}, [](const Wanted& w) { return two_bound(w); }),
    bind<Surprise>({}, {},
                   [](const Wanted&) {
                     return ReplyBound{20000, {}};
                   })
        .retry_short_replies(),
    bind<Undersized>({}, {kBlobData},
                     [](const Wanted& w) {
                       return ReplyBound{kBlobFrame, {{kBlobData, w.length / 2}}};
                     }),
};
inline constexpr Binding kPairBinding{kPairTable};

// One RPC-over-RDMA message as it was sent.
struct WireMessage {
  std::size_t index = 0;  // in the record
  End from = End::Active;
  std::uint32_t connection = 0;
  rpcrdma::Header header;
  std::vector<std::byte> payload;  // the inline stream
  std::optional<std::uint32_t> invalidate;
  std::size_t size = 0;

  std::uint32_t word(std::size_t at) const {
    return payload.size() < 4 * at + 4 ? ~0u : load_be<std::uint32_t>(payload.data() + 4 * at);
  }
  bool is_call() const {
    return payload.empty() ? !header.read_list.empty() : word(1) == rpcrdma::CALL;
  }
  // Of everything in the chunk lists.
  std::vector<std::uint32_t> handles() const {
    std::vector<std::uint32_t> all;
    const auto add = [&all](const rpcrdma::Segments& segments) {
      for (const rpcrdma::Segment& segment : segments) all.push_back(segment.handle);
    };
    for (const rpcrdma::ReadChunk& chunk : header.read_list) add(chunk.segments);
    for (const rpcrdma::WriteChunk& chunk : header.write_list) add(chunk.segments);
    if (header.reply_chunk) add(header.reply_chunk->segments);
    return all;
  }
};

// The client makes no NULL calls of its own: what is recorded is of the test's calls.
struct PairSetup {
  PairSetup() {
    client.probe_after = Duration::zero();
    server.seed = 7;
  }
  fabric::SimOptions sim{};
  ChannelOptions client{};
  ServerOptions server{};
  Binding client_binding = kPairBinding;
  Binding server_binding = kPairBinding;
  bool serves_reverse = false;
};

class Pair {
 public:
  explicit Pair(PairSetup setup = {})
      : network(loop, setup.sim), client_side(network, record), server_side(network, record) {
    Program program(kBlobProgram, 1, setup.server_binding);
    program.add<Store>(store_blob)
        .add<Fetch>(fetch_blob)
        .add<StoreWhole>(store_blob)
        .add<FetchWhole>(fetch_blob)
        .add<Echo>(echo_blob)
        .add<FetchTwo>(fetch_two)
        .add<Surprise>(fetch_blob)
        .add<Undersized>(fetch_blob)
        .add<Greet>([this](CallContext& context, Wanted wanted) {
          reverse = context.reverse_channel();
          return fetch_blob(context, wanted);
        });
    program_server.add(std::move(program));
    client_server.add(blob_program());
    server = std::make_unique<Server>(program_server, setup.server);
    address = *server->listen(server_side, {"server", 20049});
    if (setup.client.seed == 0) setup.client.seed = 7;
    channel = std::make_unique<Channel>(client_side, address, setup.client);
    if (setup.serves_reverse) channel->serve_reverse(client_server);
    client.emplace(*channel, setup.client_binding);
  }
  ~Pair() {
    reverse.reset();
    loop.run(closing(*channel));
    if (server) loop.run(closing(*server));
  }
  template <class T>
  static Task<bool> closing(T& object) {
    co_await object.close();
    co_return true;
  }

  Result<Ok, Reason> connect() { return loop.run(channel->connect({})); }
  template <class P>
  CallResult<typename P::Results> call(const typename P::Args& args, CallOptions options = {}) {
    return loop.run(client->call<P>(args, options));
  }
  // The next server on the same address.
  void restart_server(ServerOptions options) {
    loop.run(closing(*server));
    server = std::make_unique<Server>(program_server, options);
    ASSERT_TRUE(server->listen(server_side, address).ok());
  }
  // Calls to the client, on the connection that is there.
  Client caller(Credentials credentials = {}) {
    EXPECT_TRUE(call<Greet>({1, 0}).ok());
    return Client(*reverse, kPairBinding, std::move(credentials));
  }

  // All that `from` has sent, RDMA_ERRORs left out.
  std::vector<WireMessage> messages(End from) const {
    std::vector<WireMessage> all;
    for (std::size_t i = 0; i < record.log().size(); ++i) {
      const Recorded& entry = record[i];
      if (entry.act != Act::Send || entry.end != from || rpcrdma::is_error(entry.bytes)) continue;
      const auto parsed = rpcrdma::decode_header(entry.bytes);
      EXPECT_TRUE(parsed.ok());
      if (!parsed) continue;
      all.push_back({i,
                     from,
                     entry.connection,
                     parsed->header,
                     {entry.bytes.begin() + parsed->size, entry.bytes.end()},
                     entry.invalidate,
                     entry.bytes.size()});
    }
    return all;
  }
  std::vector<WireMessage> calls(End from) const { return chosen(from, true); }
  std::vector<WireMessage> replies(End from) const { return chosen(from, false); }

  fabric::SimLoop loop;
  fabric::SimFabric network;
  Record record;
  RecordingFabric client_side, server_side;
  rpc::Server program_server, client_server;
  Address address;
  std::unique_ptr<Server> server;
  std::unique_ptr<Channel> channel;
  std::optional<Client> client;
  std::shared_ptr<rpc::Channel> reverse;

 private:
  std::vector<WireMessage> chosen(End from, bool calls) const {
    std::vector<WireMessage> some;
    for (WireMessage& message : messages(from))
      if (message.is_call() == calls) some.push_back(std::move(message));
    return some;
  }
};

}  // namespace stag::rpc::rdma
