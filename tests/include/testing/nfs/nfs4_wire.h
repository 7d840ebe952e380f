// An NFSv4 server on a fabric and a peer that makes its own RPC-over-RDMA messages, so that a test
// chooses every chunk of a Call and sees every chunk of its Reply.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nfs/ulb/nfs4.h"
#include "oncrpc/message.h"
#include "rpc/credentials.h"
#include "rpc/message.h"
#include "rpcrdma/header.h"
#include "rpcrdma/private_data.h"
#include "testing/fabric_harness.h"
#include "testing/nfs/nfs4_fixture.h"

namespace stag::testing {

// The chunks of one Call, each by the lengths of its segments.
struct Chunks {
  std::vector<xdr::ItemId> reduced{};  // arguments of these names go by Read chunk
  std::uint32_t read_segments = 1;     // of each Read chunk
  bool long_call = false;              // the rest in a Position Zero Read chunk
  std::vector<std::vector<std::uint32_t>> write_list{};  // without segments: an empty chunk
  std::vector<std::uint32_t> reply_chunk{};              // without segments: none
  std::int32_t misplaced_by = 0;                         // added to the Position of Read chunks
};

struct WireReply {
  bool lost = false;  // the connection went instead
  std::optional<rpcrdma::ErrorMessage> error{};
  rpcrdma::Header header{};
  std::uint32_t stream_size = 0;       // without what Write chunks took
  std::vector<std::string> written{};  // what each Write chunk holds by the lengths returned
  oncrpc::ReplyStatus rpc{};
  bool decoded = false;  // the results could be read
  nfs::v4::COMPOUND4res results{nfs::v4::NFS4ERR_SERVERFAULT, {}, {}};

  // Bytes of the complete Reply message.
  std::size_t size() const {
    std::size_t all = stream_size;
    for (const std::string& chunk : written) all += (chunk.size() + 3) / 4 * 4;
    return all;
  }
  std::string data(std::size_t operation) const {
    return std::string(
        text_of(results.resarray.at(operation).opread().resok4().data.flatten().bytes()));
  }
  std::string link(std::size_t operation) const {
    return std::string(
        text_of(results.resarray.at(operation).opreadlink().resok4().link.flatten().bytes()));
  }
};

class WirePeer final : fabric::Events {
 public:
  WirePeer(FabricHarness& harness, const Address& server, std::uint32_t threshold)
      : harness_(harness), threshold_(threshold) {
    fabric::ConnectOptions options;
    const auto own = rpcrdma::encode_private_data({threshold, threshold, false});
    options.private_data.assign(own.begin(), own.end());
    options.receive = {16, threshold};
    auto connected = harness_.run(harness_.fabric().connect(server, options, {}));
    STAG_CHECK(connected.has_value() && connected->ok());
    connection_ = *std::move(*connected);
    connection_->start(*this);
  }

  WireReply call(const nfs::v4::COMPOUND4args& args, const Chunks& chunks = {}) {
    const rpcrdma::Header header = send(args, chunks);
    const bool came = harness_.run_until([this] { return !arrived_.empty() || lost_; });
    EXPECT_TRUE(came);
    WireReply reply;
    if (arrived_.empty()) {
      reply.lost = true;
    } else {
      const Buffer message = std::move(arrived_.front());
      arrived_.pop_front();
      connection_->add_receive_credit({1, threshold_});
      read_reply(message, args, header, reply);
    }
    take_back();
    return reply;
  }

 private:
  // Memory that the server may reach, and the segments that name it.
  struct Exposed {
    std::vector<std::byte> memory;
    rpcrdma::Segments segments;
  };

  rpcrdma::Header send(const nfs::v4::COMPOUND4args& args, const Chunks& chunks) {
    rpcrdma::Header header;
    header.xid = ++xid_;
    header.credits = 16;
    xdr::Encoder encoder(chunks.reduced);
    oncrpc::encode(
        encoder, oncrpc::CallHeader{header.xid, nfs::v4::NFS4_PROGRAM, nfs::v4::NFS_V4,
                                    nfs::v4::NFSPROC4_COMPOUND::number, credentials_.credential()});
    encode(encoder, args);
    const xdr::Stream stream = std::move(encoder).finish();
    std::vector<std::uint32_t> moved;
    for (std::uint32_t i = 0; i < stream.items().size(); ++i) {
      const xdr::Item& item = stream.items()[i];
      if (std::ranges::find(chunks.reduced, item.id) == chunks.reduced.end()) continue;
      moved.push_back(i);
      header.read_list.push_back({item.position + static_cast<std::uint32_t>(chunks.misplaced_by),
                                  source(stream.item_bytes(i), chunks.read_segments)});
    }
    const Rope rest = stream.without(moved);
    if (chunks.long_call) {
      header.proc = rpcrdma::RDMA_NOMSG;
      header.read_list.push_back({0, source(rest, chunks.read_segments)});
    }
    for (const auto& lengths : chunks.write_list) header.write_list.push_back({sink(lengths)});
    if (!chunks.reply_chunk.empty())
      header.reply_chunk = rpcrdma::WriteChunk{sink(chunks.reply_chunk)};
    Rope message = Rope::copy_of(rpcrdma::EncodedHeader(header).bytes());
    if (!chunks.long_call) message.append(rest);
    connection_->send(Rope(message.flatten()), std::nullopt, 1, fabric::kNoToken);
    return header;
  }

  rpcrdma::Segments source(const Rope& data, std::uint32_t segments) {
    const Buffer flat = data.flatten();
    std::vector<std::uint32_t> lengths(segments,
                                       static_cast<std::uint32_t>(flat.size()) / segments);
    lengths.back() += static_cast<std::uint32_t>(flat.size()) % segments;
    return expose(std::vector(flat.bytes().begin(), flat.bytes().end()), lengths, false);
  }
  rpcrdma::Segments sink(const std::vector<std::uint32_t>& lengths) {
    std::size_t all = 0;
    for (const std::uint32_t length : lengths) all += length;
    return expose(std::vector<std::byte>(all), lengths, true);
  }
  rpcrdma::Segments expose(std::vector<std::byte> memory, const std::vector<std::uint32_t>& lengths,
                           bool to_write) {
    exposed_.push_back({std::move(memory), {}});
    Exposed& made = exposed_.back();
    std::size_t begin = 0;
    for (const std::uint32_t length : lengths) {
      const MutableBytes part = MutableBytes(made.memory).subspan(begin, length);
      const auto named =
          to_write ? connection_->expose_sink(part) : connection_->expose_source(part);
      STAG_CHECK(named.ok());
      made.segments.push_back({named->handle, named->length, named->offset});
      begin += length;
    }
    return made.segments;
  }

  // What the server has put into a chunk, by the lengths that it returned.
  std::string taken(const rpcrdma::Segments& returned) const {
    std::string all;
    for (const Exposed& exposed : exposed_) {
      std::size_t begin = 0;
      for (std::size_t i = 0; i < exposed.segments.size(); ++i) {
        for (const rpcrdma::Segment& segment : returned)
          if (segment.handle == exposed.segments[i].handle)
            all += text_of(Bytes(exposed.memory).subspan(begin, segment.length));
        begin += exposed.segments[i].length;
      }
    }
    return all;
  }

  void read_reply(const Buffer& message, const nfs::v4::COMPOUND4args& args,
                  const rpcrdma::Header& call, WireReply& reply) const {
    if (rpcrdma::is_error(message.bytes())) {
      reply.error = *rpcrdma::decode_error(message.bytes());
      return;
    }
    const auto parsed = rpcrdma::decode_header(message.bytes());
    ASSERT_TRUE(parsed.ok());
    reply.header = parsed->header;
    EXPECT_EQ(reply.header.xid, call.xid);
    ASSERT_EQ(reply.header.write_list.size(), call.write_list.size());
    for (const rpcrdma::WriteChunk& chunk : reply.header.write_list)
      reply.written.push_back(taken(chunk.segments));
    Buffer payload = message.slice(parsed->size, message.size() - parsed->size);
    if (reply.header.proc == rpcrdma::RDMA_NOMSG)
      payload = Buffer::copy_of(bytes_of(taken(reply.header.reply_chunk->segments)));
    reply.stream_size = static_cast<std::uint32_t>(payload.size());
    decode_results(payload, args, call, reply);
  }
  static void decode_results(const Buffer& payload, const nfs::v4::COMPOUND4args& args,
                             const rpcrdma::Header& call, WireReply& reply) {
    rpc::ReducedItems items;
    items.allow(nfs::ulb::nfs4_result_items());
    std::size_t chunk = 0;
    for (const Op& operation : args.argarray) {
      if (chunk == call.write_list.size()) break;
      const bool read = operation.argop == nfs::v4::OP_READ;
      if (!read && operation.argop != nfs::v4::OP_READLINK) continue;
      const xdr::ItemId place =
          read ? nfs::v4::item::READ4resok_data : nfs::v4::item::READLINK4resok_link;
      if (call.write_list[chunk].segments.empty())
        items.add_inline(place);
      else
        items.add_written(Rope::copy_of(bytes_of(reply.written[chunk])), place);
      ++chunk;
    }
    xdr::Decoder decoder(payload, &items);
    const auto header = oncrpc::decode_reply(decoder);
    ASSERT_TRUE(header.ok());
    reply.rpc = header->status;
    reply.decoded = reply.rpc.success() && decode(decoder, reply.results) && decoder.finish().ok();
  }

  void take_back() {
    for (const Exposed& exposed : exposed_)
      for (const rpcrdma::Segment& segment : exposed.segments)
        if (connection_->revoke(segment.handle) == fabric::Revocation::Pending) ++pending_;
    harness_.run_until([this] { return pending_ == 0 || lost_; });
    exposed_.clear();
  }

  void on_receive(Buffer message, std::optional<std::uint32_t>) override {
    arrived_.push_back(Buffer::copy_of(message.bytes()));
  }
  void on_done(fabric::Token, Reason) override {}
  void on_revoked(std::uint32_t) override { --pending_; }
  void on_disconnect(Reason) override { lost_ = true; }

  FabricHarness& harness_;
  const std::uint32_t threshold_;
  const rpc::Credentials credentials_ = rpc::Credentials::sys("tests", 0, 0);
  std::deque<Exposed> exposed_;
  std::deque<Buffer> arrived_;
  std::uint32_t xid_ = 0;
  int pending_ = 0;
  bool lost_ = false;
  std::unique_ptr<fabric::Connection> connection_;
};

}  // namespace stag::testing
