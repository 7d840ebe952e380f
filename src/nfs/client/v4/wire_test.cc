// The client of version 4 as RFC 8267 section 6 has it: what it puts on the wire over RDMA.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/task_group.h"
#include "fabric/sim/sim_fabric.h"
#include "nfs/session/slots.h"
#include "nfs/ulb/nfs4_client.h"
#include "oncrpc/message.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpcrdma/header.h"
#include "testing/nfs/nfs4_client_world.h"
#include "testing/proves.h"
#include "testing/recording_fabric.h"

namespace stag::nfs::client {
namespace {

using testing::Act;
using testing::End;
using testing::Recorded;

struct WireSetup {
  std::uint32_t minor = 1;
  std::uint32_t credits = 64;  // granted by the server
  std::uint32_t slots = 64;
  std::uint32_t reads_at_once = 1;
  std::optional<std::uint32_t> inline_size{};  // of the client
};

class Nfs4OnRdma {
 public:
  explicit Nfs4OnRdma(WireSetup setup = {}) {
    ::stag::nfs::nfs4::Nfs4Options limits;
    limits.clients.fore.max_requests = setup.slots;
    served_.emplace(loop, std::make_shared<vfs::MemoryFileSystem>(), limits);
    rpc::rdma::ServerOptions grants;
    grants.credits = setup.credits;
    server_.emplace(served_->server, grants);
    const Address at = *server_->listen(server_side_, {"server", 20049});
    rpc::rdma::ChannelOptions connecting;
    connecting.seed = 7;
    connecting.transport.inline_size = setup.inline_size;
    channel_.emplace(client_side_, at, connecting);
    options_.calls.credentials = rpc::Credentials::sys("tests", 0, 0);
    options_.calls.version = 4;
    options_.calls.minor = setup.minor;
    options_.calls.reads_at_once = setup.reads_at_once;
    protocol_ = must(client::nfs4::Nfs4::connect(*channel_, options_.calls));
    FileSystem all(protocol_, must(protocol_->root({"find the root", {}})).handle, "/", options_);
    files.emplace(protocol_, must(all.walk("data")).handle, "/data", options_);
  }
  ~Nfs4OnRdma() {
    loop.run(ended(*channel_));
    loop.run(ended(*server_));
  }
  template <class T>
  static Task<Ok> ended(T& object) {
    co_await object.close();
    co_return Ok{};
  }
  template <class T>
  T must(Task<Outcome<T>> task) {
    Outcome<T> outcome = loop.run(std::move(task));
    if (!outcome) ADD_FAILURE() << outcome.error().sentence;
    STAG_CHECK(outcome.ok());
    return std::move(*outcome);
  }
  // Of the client's messages from entry `from` of the record on.
  std::vector<rpcrdma::Header> calls(std::size_t from = 0) const {
    std::vector<rpcrdma::Header> all;
    for (std::size_t i = from; i < record.log().size(); ++i) {
      const Recorded& entry = record[i];
      if (entry.act != Act::Send || entry.end != End::Active) continue;
      const auto parsed = rpcrdma::decode_header(entry.bytes);
      EXPECT_TRUE(parsed.ok());
      if (parsed) all.push_back(parsed->header);
    }
    return all;
  }
  // The COMPOUNDs among them that came inline.
  std::vector<v4::COMPOUND4args> compounds(std::size_t from) const {
    std::vector<v4::COMPOUND4args> all;
    for (std::size_t i = from; i < record.log().size(); ++i) {
      const Recorded& entry = record[i];
      if (entry.act != Act::Send || entry.end != End::Active) continue;
      const auto parsed = rpcrdma::decode_header(entry.bytes);
      if (!parsed) continue;
      const Buffer message = Buffer::copy_of(Bytes(entry.bytes).subspan(parsed->size));
      xdr::Decoder decoder(message);
      v4::COMPOUND4args args;
      if (oncrpc::decode_call(decoder) && decode(decoder, args)) all.push_back(std::move(args));
    }
    return all;
  }
  void lose_connections() { network_.lose_connections(); }
  rpc::rdma::Channel& channel() { return *channel_; }
  // The most calls that were without an answer at a time.
  std::size_t most_outstanding() const {
    std::size_t now = 0, most = 0;
    for (const Recorded& entry : record.log()) {
      if (entry.end != End::Active) continue;
      if (entry.act == Act::Send) most = std::max(most, ++now);
      if (entry.act == Act::Receive && now > 0) --now;
    }
    return most;
  }

  fabric::SimLoop loop;
  testing::Record record;
  std::optional<FileSystem> files;

 private:
  fabric::SimFabric network_{loop, {}};
  testing::RecordingFabric client_side_{network_, record};
  testing::RecordingFabric server_side_{network_, record};
  std::optional<testing::Nfs4Instance> served_;
  std::optional<rpc::rdma::Server> server_;
  std::optional<rpc::rdma::Channel> channel_;
  FileSystemOptions options_;
  std::shared_ptr<client::nfs4::Nfs4> protocol_;
};

// One COMPOUND of version 4.0 that writes pieces of memory of their own.
Task<Outcome<Ok>> write_pieces(rpc::Channel& channel, Handle file, std::size_t count,
                               std::size_t size) {
  Rope data;
  for (std::size_t i = 0; i < count; ++i)
    data.append(Buffer::copy_of(bytes_of(std::string(size, static_cast<char>('a' + i % 26)))));
  v4::COMPOUND4args args;
  args.argarray.resize(2);
  args.argarray[0].argop = v4::OP_PUTFH;
  args.argarray[0].opputfh().object = v4::nfs_fh4(file.bytes());
  args.argarray[1].argop = v4::OP_WRITE;
  args.argarray[1].opwrite() = {v4::stateid4{}, 0, v4::FILE_SYNC4, data};
  rpc::Client client(channel, ulb::nfs4_client(), rpc::Credentials::sys("tests", 0, 0));
  const auto done = co_await client.call<v4::NFSPROC4_COMPOUND>(args);
  if (!done) co_return Failure{Error::of_call({"write", {}}, done.error())};
  if (done->status != v4::NFS4_OK) co_return Failure{Error::of_local("WRITE failed")};
  co_return Ok{};
}

constexpr std::size_t kEach = 24u << 10;  // bytes of a READ, more than go inline

std::size_t segments_of(const rpcrdma::Header& header) {
  std::size_t most = header.reply_chunk ? header.reply_chunk->segments.size() : 0;
  for (const auto& chunk : header.read_list) most = std::max(most, chunk.segments.size());
  for (const auto& chunk : header.write_list) most = std::max(most, chunk.segments.size());
  return most;
}

TEST(Nfs4ClientOnRdma, sends_chunks_that_every_server_takes) {
  PROVES("R8267-6.4.2-a", "R8267-6.4.2-b", "R8267-6.4.2-c");
  for (const std::uint32_t minor : {0u, 1u, 2u}) {
    Nfs4OnRdma world({.minor = minor});
    const std::string text(3u << 20, 'x');
    const Node file = world.must(world.files->create(world.files->root(), "f", {.mode = 0644}));
    world.must(world.files->write_from(file.handle, 0, bytes_of(text)));
    std::string back(text.size(), '?');
    world.must(world.files->read_into(file.handle, 0, std::as_writable_bytes(std::span(back))));
    EXPECT_TRUE(back == text);
    const std::string target(4000, 't');
    const Node link = world.must(world.files->symlink(world.files->root(), "l", target, {}));
    EXPECT_EQ(world.must(world.files->readlink(link.handle)), target);
    Listing listing = world.files->list(world.files->root());
    EXPECT_EQ(world.must(listing.next()).size(), 2u);

    std::size_t with_read = 0, with_write = 0;
    for (const rpcrdma::Header& header : world.calls()) {
      std::size_t zero = 0, other = 0;
      for (const auto& chunk : header.read_list) ++(chunk.position == 0 ? zero : other);
      EXPECT_LE(zero, 1u);
      EXPECT_LE(other, 1u);
      EXPECT_LE(header.write_list.size(), 1u);
      EXPECT_LE(segments_of(header), 16u);
      with_read += other;
      with_write += header.write_list.size();
    }
    EXPECT_GE(with_read, 3u) << "WRITE and CREATE of a link";
    EXPECT_GE(with_write, 3u) << "READ; a link's text comes inline, or by the Reply chunk";
  }
}

TEST(Nfs4ClientOnRdma, takes_a_long_link_text_in_the_Reply_chunk_and_a_short_one_inline) {
  PROVES("R8267-6.4.1-b");
  for (const std::uint32_t minor : {0u, 1u, 2u}) {
    Nfs4OnRdma world({.minor = minor, .inline_size = 4096});
    for (const std::size_t length : {std::size_t{4095}, std::size_t{8}}) {
      const std::string target(length, 't');
      const Node link = world.must(
          world.files->symlink(world.files->root(), "l" + std::to_string(length), target, {}));
      const std::size_t before = world.record.log().size();
      EXPECT_EQ(world.must(world.files->readlink(link.handle, link.attributes.size)), target);
      const std::vector<rpcrdma::Header> calls = world.calls(before);
      ASSERT_EQ(calls.size(), 1u);
      EXPECT_TRUE(calls.front().write_list.empty());
      EXPECT_EQ(calls.front().reply_chunk.has_value(), length > 1000) << length;
    }
  }
}

// The text of `link` and the data of `file`, by one COMPOUND of version 4.0.
Task<Outcome<std::pair<std::string, std::string>>> read_both(rpc::Channel& channel, Handle link,
                                                             Handle file, std::uint32_t count) {
  v4::COMPOUND4args args;
  args.argarray.resize(4);
  args.argarray[0].argop = v4::OP_PUTFH;
  args.argarray[0].opputfh().object = v4::nfs_fh4(link.bytes());
  args.argarray[1].argop = v4::OP_READLINK;
  args.argarray[2].argop = v4::OP_PUTFH;
  args.argarray[2].opputfh().object = v4::nfs_fh4(file.bytes());
  args.argarray[3].argop = v4::OP_READ;
  args.argarray[3].opread() = {v4::stateid4{}, 0, count};
  rpc::Client client(channel, ulb::nfs4_client(), rpc::Credentials::sys("tests", 0, 0));
  auto done = co_await client.call<v4::NFSPROC4_COMPOUND>(args);
  if (!done) co_return Failure{Error::of_call({"read", {}}, done.error())};
  if (done->status != v4::NFS4_OK) co_return Failure{Error::of_local("READ failed")};
  const Buffer text = done->resarray[1].opreadlink().resok4().link.flatten();
  const Buffer data = done->resarray[3].opread().resok4().data.flatten();
  co_return std::pair(std::string(text_of(text.bytes())), std::string(text_of(data.bytes())));
}

TEST(Nfs4ClientOnRdma, takes_a_link_text_inline_beside_the_Write_chunk_of_a_READ) {
  PROVES("R8267-6.4.3-b");
  Nfs4OnRdma world({.minor = 0});
  const std::string text(kEach, 'x');
  const Node file = world.must(world.files->create(world.files->root(), "f", {.mode = 0644}));
  world.must(world.files->write_from(file.handle, 0, bytes_of(text)));
  const Node link = world.must(world.files->symlink(world.files->root(), "l", "target", {}));
  const std::size_t before = world.record.log().size();
  const auto both =
      world.must(read_both(world.channel(), link.handle, file.handle, std::uint32_t{kEach}));
  EXPECT_EQ(both.first, "target");
  EXPECT_TRUE(both.second == text);
  const std::vector<rpcrdma::Header> calls = world.calls(before);
  ASSERT_EQ(calls.size(), 1u);
  ASSERT_EQ(calls.front().write_list.size(), 2u);
  EXPECT_TRUE(calls.front().write_list[0].segments.empty());
  EXPECT_FALSE(calls.front().write_list[1].segments.empty());
}

// The places, in a file of 100 KiB, that several READs are of; the last one is over its end.
constexpr std::array<std::uint64_t, 6> kPlaces{65536, 0, 8192, 40960, 12288, 98304};

// What read_several() brings of them, and by how many READs and Write chunks in a call.
struct SeveralReads {
  explicit SeveralReads(Nfs4OnRdma& world) {
    const Node file = world.must(world.files->create(world.files->root(), "f", {.mode = 0644}));
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i / 1000 % 26);
    world.must(world.files->write_from(file.handle, 0, bytes_of(text)));
    const File opened = world.must(world.files->open(file.handle, access::kRead)).file;
    const std::size_t before = world.record.log().size();
    std::vector<ReadRange> ranges;
    for (std::size_t i = 0; i < kPlaces.size(); ++i)
      ranges.push_back({kPlaces[i], std::as_writable_bytes(std::span(back[i]))});
    parts = world.must(world.files->read_several(opened, ranges));
    for (const rpcrdma::Header& header : world.calls(before))
      chunks.push_back(header.write_list.size());
    for (const v4::COMPOUND4args& compound : world.compounds(before))
      reads.push_back(static_cast<std::size_t>(std::ranges::count_if(
          compound.argarray, [](const auto& each) { return each.argop == v4::OP_READ; })));
    world.must(world.files->close(opened));
  }

  std::string text = std::string(100u << 10, ' ');
  std::array<std::string, kPlaces.size()> back = [] {
    std::array<std::string, kPlaces.size()> all;
    all.fill(std::string(kEach, '?'));
    return all;
  }();
  std::vector<ReadPart> parts;
  std::vector<std::size_t> chunks;
  std::vector<std::size_t> reads;
};

void expect_what_was_written(const SeveralReads& several) {
  ASSERT_EQ(several.parts.size(), kPlaces.size());
  for (std::size_t i = 0; i < kPlaces.size(); ++i) {
    const std::size_t expected = std::min<std::size_t>(kEach, several.text.size() - kPlaces[i]);
    EXPECT_EQ(several.parts[i].count, expected) << i;
    EXPECT_EQ(several.parts[i].eof, kPlaces[i] + kEach >= several.text.size()) << i;
    EXPECT_TRUE(several.back[i].compare(0, expected, several.text, kPlaces[i], expected) == 0) << i;
  }
}

TEST(Nfs4ClientOnRdma, has_a_Write_chunk_for_each_READ_where_the_server_is_known_to_take_them) {
  PROVES("R8267-6.4.2-b");
  for (const std::uint32_t minor : {0u, 1u, 2u}) {
    Nfs4OnRdma world({.minor = minor, .reads_at_once = 4});
    const SeveralReads several(world);
    expect_what_was_written(several);
    EXPECT_EQ(several.reads, (std::vector<std::size_t>{4, 2}));
    EXPECT_EQ(several.chunks, (std::vector<std::size_t>{4, 2}));
  }
}

TEST(Nfs4ClientOnRdma, reads_each_part_to_its_own_memory_beside_one_of_nothing) {
  Nfs4OnRdma world({.reads_at_once = 4});
  const std::string text = std::string(kEach, 'a') + std::string(kEach, 'b');
  const Node file = world.must(world.files->create(world.files->root(), "f", {.mode = 0644}));
  world.must(world.files->write_from(file.handle, 0, bytes_of(text)));
  std::string first(kEach, '?'), second(kEach / 2, '?');
  const auto parts = world.must(
      world.files->read_several(file.handle, {{0, {}},
                                              {0, std::as_writable_bytes(std::span(first))},
                                              {kEach, std::as_writable_bytes(std::span(second))}}));
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].count, 0u);
  EXPECT_EQ(first, std::string(kEach, 'a'));
  EXPECT_EQ(second, std::string(kEach / 2, 'b'));
}

TEST(Nfs4ClientOnRdma, has_one_READ_in_a_call_where_nothing_is_known_of_the_server) {
  PROVES("R8267-6.4.2-b");
  Nfs4OnRdma world;
  const SeveralReads several(world);
  expect_what_was_written(several);
  EXPECT_EQ(several.reads, std::vector<std::size_t>(kPlaces.size(), 1));
  EXPECT_EQ(several.chunks, std::vector<std::size_t>(kPlaces.size(), 1));
}

TEST(Nfs4ClientOnRdma, offers_no_Write_chunk_for_READ_PLUS) {
  PROVES("R8267-6.1-e");
  Nfs4OnRdma world({.minor = 2});
  const Node file = world.must(world.files->create(world.files->root(), "f", {.mode = 0644}));
  const std::string text(100u << 10, 'x');
  world.must(world.files->write_from(file.handle, 0, bytes_of(text)));
  const std::size_t before = world.record.log().size();
  std::string back(text.size(), '?');
  const SparsePart part =
      world.must(world.files->read_plus(file.handle, 0, std::as_writable_bytes(std::span(back))));
  EXPECT_EQ(part.count, text.size());
  EXPECT_TRUE(back == text);
  const auto calls = world.calls(before);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_TRUE(calls[0].write_list.empty());
  ASSERT_TRUE(calls[0].reply_chunk.has_value()) << "it does not fit inline";
}

TEST(Nfs4ClientOnRdma, gathers_data_of_more_pieces_than_a_chunk_may_have_segments) {
  PROVES("R8267-6.4.2-c");
  for (const std::size_t pieces : {2u, 16u, 17u, 100u}) {
    Nfs4OnRdma world({.minor = 0});
    const Node file = world.must(world.files->create(world.files->root(), "f", {.mode = 0644}));
    const std::size_t before = world.record.log().size();
    world.must(write_pieces(world.channel(), file.handle, pieces, 8192));
    EXPECT_EQ(world.must(world.files->getattr(file.handle)).size, pieces * 8192);
    const auto calls = world.calls(before);
    ASSERT_GE(calls.size(), 1u);
    ASSERT_EQ(calls[0].read_list.size(), 1u);
    EXPECT_GE(segments_of(calls[0]), pieces == 2 ? 2u : 1u);
    EXPECT_LE(segments_of(calls[0]), 16u) << pieces;
  }
}

Task<void> ask_once(FileSystem& files, int& answered) {
  const Outcome<Attributes> got = co_await files.getattr(files.root());
  answered += got.ok() ? 1 : 0;
}
Task<Outcome<int>> ask_often(FileSystem& files, int times) {
  TaskGroup group;
  int answered = 0;
  for (int i = 0; i < times; ++i) group.add(ask_once(files, answered));
  co_await group.join();
  co_return answered;
}

// Puts sr_target_highest_slotid into a Reply that begins with SEQUENCE.
void aim_at(std::vector<std::byte>& message, std::uint32_t highest) {
  const auto parsed = rpcrdma::decode_header(message);
  // Behind the header of RPC: status, tag, and how many results; behind these resop, status,
  // session ID, sequence ID, slot and highest slot.
  const std::size_t results = parsed.ok() ? parsed->size + 24 + 12 : message.size();
  const std::size_t at = results + 8 + sizeof(v4::sessionid4) + 12;
  if (at + 8 > message.size()) return;
  if (load_be<std::uint32_t>(message.data() + results) == v4::OP_SEQUENCE)
    store_be(message.data() + at, highest);
}

TEST(Nfs4ClientOnRdma, holds_to_slots_and_to_credits) {
  PROVES("R8267-6.6-b");
  for (const auto& [credits, slots] : {std::pair(4u, 16u), std::pair(16u, 4u)}) {
    Nfs4OnRdma world({.credits = credits, .slots = slots});
    // As by a server that would have more slots used, whatever it has given the session.
    world.record.tampering.rewrite_send = [](End from, std::vector<std::byte>& message) {
      if (from == End::Passive) aim_at(message, 63);
    };
    EXPECT_EQ(world.must(ask_often(*world.files, 1)), 1);
    EXPECT_EQ(world.must(ask_often(*world.files, 60)), 60);
    EXPECT_LE(world.most_outstanding(), 4u);
    EXPECT_GE(world.most_outstanding(), 2u);
  }
}

// Replaces an RPC-over-RDMA message by RDMA_ERROR with ERR_CHUNK (RFC 8166 4.5).
void make_error(std::vector<std::byte>& message) {
  message.resize(20);
  store_be(message.data() + 12, std::uint32_t{rpcrdma::RDMA_ERROR});
  store_be(message.data() + 16, std::uint32_t{rpcrdma::ERR_CHUNK});
}

TEST(Nfs4ClientOnRdma, ends_a_call_that_draws_ERR_CHUNK_at_once_and_uses_its_slot_again) {
  PROVES("R8267-6.4.2-i", "R8267-6.4.2-j", "R8267-6.6-c", "R8267-6.6-d");
  Nfs4OnRdma world({.slots = 4});
  // More often than there are slots.
  for (int i = 0; i < 12; ++i) {
    bool altered = false;
    const std::size_t before = world.record.log().size();
    world.record.tampering.rewrite_send = [&altered](End from, std::vector<std::byte>& message) {
      if (from == End::Passive && !std::exchange(altered, true)) make_error(message);
    };
    const TimePoint start = world.loop.now();
    // With a settled slot, the error hits the call itself; else the SEQUENCE that settles it.
    const Outcome<Attributes> got = world.loop.run(world.files->getattr(world.files->root()));
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().kind, Error::Kind::Call) << got.error().sentence;
    EXPECT_EQ(got.error().call.reason, Reason::RdmaPeerRefusedChunks);
    EXPECT_LT(world.loop.now() - start, std::chrono::seconds(1));
    EXPECT_EQ(world.calls(before).size(), 1u) << "it is not sent again";
  }
  world.record.tampering.rewrite_send = nullptr;
  EXPECT_EQ(world.must(ask_often(*world.files, 20)), 20);
}

std::size_t reply_room(const rpcrdma::Header& header) {
  std::size_t total = 0;
  if (header.reply_chunk)
    for (const auto& segment : header.reply_chunk->segments) total += segment.length;
  return total;
}

TEST(Nfs4ClientOnRdma, asks_for_a_list_of_any_length_with_a_Reply_chunk_as_large_as_the_session) {
  PROVES("R8267-3-e", "R8267-6.2-a");
  for (const std::uint32_t minor : {1u, 2u}) {
    Nfs4OnRdma world({.minor = minor});
    const std::size_t before = world.record.log().size();
    EXPECT_FALSE(world.must(world.files->nfs4_acl(world.files->root())).empty());
    const auto calls = world.calls(before);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_GE(reply_room(calls[0]), 1u << 20) << "ca_maxresponsesize";
  }
}

TEST(Nfs4ClientOnRdma, asks_for_a_long_list_alone_and_again_with_more_memory_without_a_session) {
  PROVES("R8267-6.2.1-a", "R8267-6.2.1-b", "R8267-6.2.1-c");
  Nfs4OnRdma world({.minor = 0});
  const Node file = world.must(world.files->create(world.files->root(), "f", {.mode = 0644}));
  world.must(world.files->rename(world.files->root(), "f", world.files->root(), "g"));
  Nfs4Acl acl = world.must(world.files->nfs4_acl(file.handle));
  for (std::uint32_t user = 1000; user < 1100; ++user)
    acl.insert(acl.begin(),
               {v4::ACE4_ACCESS_ALLOWED_ACE_TYPE, 0, v4::ACE4_READ_DATA, std::to_string(user)});
  world.must(world.files->set_nfs4_acl(file.handle, acl));
  const std::size_t before = world.record.log().size();
  bool altered = false;
  world.record.tampering.rewrite_send = [&altered](End from, std::vector<std::byte>& message) {
    if (from == End::Passive && !std::exchange(altered, true)) make_error(message);
  };
  EXPECT_GE(world.must(world.files->nfs4_acl(file.handle, 40'000)).size(), 100u);
  const auto calls = world.calls(before);
  ASSERT_EQ(calls.size(), 2u) << "ERR_CHUNK, and once more";
  EXPECT_GE(reply_room(calls[0]), 40'000u);
  EXPECT_LT(reply_room(calls[0]), 1u << 20);
  EXPECT_GE(reply_room(calls[1]), 1u << 20);
  for (const v4::COMPOUND4args& compound : world.compounds(0)) {
    bool asks_for_list = false;
    for (const v4::nfs_argop4& operation : compound.argarray)
      asks_for_list |= operation.argop == v4::OP_GETATTR &&
                       (operation.opgetattr().attr_request.at(0) >> v4::FATTR4_ACL & 1) != 0;
    EXPECT_TRUE(!asks_for_list || compound.argarray.size() == 2u) << "PUTFH and nothing else";
  }
}

TEST(Nfs4ClientOnRdma, an_error_before_a_disconnect_ends_its_call_which_is_not_sent_again) {
  PROVES("R8267-6.7.2-c");
  for (const std::uint32_t minor : {0u, 1u, 2u}) {
    Nfs4OnRdma world({.minor = minor});
    const std::size_t before = world.record.log().size();
    bool altered = false;
    world.record.tampering.rewrite_send = [&altered](End from, std::vector<std::byte>& message) {
      if (from == End::Passive && !std::exchange(altered, true)) make_error(message);
    };
    SetAttributes changes;
    changes.mode = 0700;
    const auto got = world.loop.run(world.files->setattr(world.files->root(), changes));
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().call.reason, Reason::RdmaPeerRefusedChunks);
    world.lose_connections();
    EXPECT_EQ(world.must(ask_often(*world.files, 3)), 3) << "by another connection";
    int sent = 0;
    for (const v4::COMPOUND4args& compound : world.compounds(before))
      for (const v4::nfs_argop4& operation : compound.argarray)
        sent += operation.argop == v4::OP_SETATTR ? 1 : 0;
    EXPECT_EQ(sent, 1);
  }
}

std::uint32_t xid_of(const Recorded& entry) {
  return load_be<std::uint32_t>(entry.bytes.data());
}

TEST(Nfs4ClientOnRdma, a_call_without_any_answer_is_sent_again_as_it_was_by_the_next_connection) {
  PROVES("R8267-6.7.2-d");
  for (const std::uint32_t minor : {0u, 1u, 2u}) {
    Nfs4OnRdma world({.minor = minor});
    EXPECT_EQ(world.must(ask_often(*world.files, 3)), 3);
    const std::size_t before = world.record.log().size();
    const auto sent = [&world](std::size_t from) {
      return world.record.first(
          [](const Recorded& entry) { return entry.act == Act::Send && entry.end == End::Active; },
          from);
    };
    int answered = 0;
    detach(ask_once(*world.files, answered));
    ASSERT_TRUE(world.loop.run_until([&] { return sent(before) != testing::Record::kNever; }));
    world.lose_connections();
    ASSERT_TRUE(world.loop.run_until([&] { return answered == 1; }));
    // The next connection begins with a NULL call.
    const std::size_t first = sent(before), second = sent(sent(first + 1) + 1);
    ASSERT_NE(second, testing::Record::kNever);
    EXPECT_NE(world.record[first].connection, world.record[second].connection);
    EXPECT_EQ(xid_of(world.record[first]), xid_of(world.record[second]));
    const auto compounds = world.compounds(before);
    ASSERT_EQ(compounds.size(), 2u);
    EXPECT_EQ(compounds[0], compounds[1]) << "slot and sequence too";
  }
}

TEST(Nfs4ClientOnRdma, learns_nothing_about_what_was_done_from_an_error_without_a_session) {
  PROVES("R8267-6.6-e");
  Nfs4OnRdma world({.minor = 0});
  const Node file = world.must(world.files->create(world.files->root(), "f", {.mode = 0644}));
  bool altered = false;
  world.record.tampering.rewrite_send = [&altered](End from, std::vector<std::byte>& message) {
    if (from == End::Passive && !std::exchange(altered, true)) make_error(message);
  };
  const auto wrote = world.loop.run(world.files->write(file.handle, 0, bytes_of("data")));
  ASSERT_FALSE(wrote.ok());
  EXPECT_EQ(wrote.error().kind, Error::Kind::Call) << "no status of NFS: it may have been done";
  world.record.tampering.rewrite_send = nullptr;
  EXPECT_EQ(world.must(world.files->getattr(file.handle)).size, 4u);
}

}  // namespace
}  // namespace stag::nfs::client
