// Copies from one server to another (RFC 7862 sections 4.6.2, 15.2, 15.3): the source is our own
// server, the destination one that the test tells what to say.
#include <gtest/gtest.h>

#include "nfs/client/v4/callback_service.h"
#include "nfs/client/v4/copy_notice.h"
#include "testing/nfs/nfs4_client_world.h"
#include "testing/nfs/told_server.h"

namespace stag::nfs::client {
namespace {

using nfs4::CallbackService;
using testing::answer_calling_back;
using testing::LoopbackChannel;

constexpr std::uint64_t kSize = 1000;
const Address kReader{"192.0.2.7", 2049};

// Copies what it is asked for, or says why not.
struct Destination {
  explicit Destination(Loop& loop) : channel(loop, server), back(loop, service.service()) {
    server.add<v4::NFSPROC4_COMPOUND>(
        [this](rpc::CallContext&, v4::COMPOUND4args args) { return answered(std::move(args)); });
  }
  Task<v4::COMPOUND4res> answered(v4::COMPOUND4args args) {
    v4::COMPOUND4res results{};
    for (v4::nfs_argop4& asked : args.argarray) {
      v4::nfs_resop4& result = results.resarray.emplace_back();
      answer_calling_back(asked, result);
      if (asked.argop == v4::OP_PUTFH) handles.push_back(asked.opputfh().object);
      if (asked.argop == v4::OP_COPY) results.status = answer(asked.opcopy(), result.opcopy());
      if (results.status != v4::NFS4_OK) break;
    }
    co_return results;
  }
  v4::nfsstat4 answer(const v4::COPY4args& asked, v4::COPY4res& result) {
    copies.push_back(asked);
    if (refusal != v4::NFS4_OK) return result.cr_status = refusal;
    v4::write_response4& response = result.cr_resok4().cr_response;
    response.wr_count = std::min(most, asked.ca_count);
    response.wr_committed = v4::FILE_SYNC4;
    return v4::NFS4_OK;
  }

  rpc::Server server;
  LoopbackChannel channel;
  CallbackService service;
  LoopbackChannel back;
  v4::nfsstat4 refusal = v4::NFS4_OK;
  std::uint64_t most = kSize;  // bytes of one COPY
  std::vector<v4::COPY4args> copies;
  std::vector<v4::nfs_fh4> handles;  // of PUTFH
};

class CopyBetween : public ::testing::Test, public testing::Nfs4ClientWorld {
 protected:
  CopyBetween() : Nfs4ClientWorld(2) {
    rpc::Origin& origin = channel.server->channel.origin();
    origin.netid = "tcp";
    origin.local = {"192.0.2.9", 2049};
    from = run(files().create(files().root(), "from", {.mode = 0644}))->handle;
    STAG_CHECK(run(files().write_from(from, 0, bytes_of(std::string(kSize, 'x')))).ok());
    opened = run(files().open(from, access::kRead))->file;
    reaching =
        *run(nfs4::Nfs4::connect(there.channel, options.calls, {&there.service, nullptr, nullptr}));
    to = *Handle::from(bytes_of("to"));
    target.emplace(reaching, to, "/", options);
  }
  ~CopyBetween() override {
    static_cast<void>(run(files().close(opened)));
    run(ended());
  }
  Task<Ok> ended() {
    co_await reaching->close();
    co_await protocol->close();
    co_return Ok{};
  }
  Outcome<CopySource> notified() { return run(files().notify_copy(opened, kReader)); }
  Outcome<std::uint64_t> copied(const CopySource& source) {
    return run(target->copy_range(source, {0, kSize}, to, 0));
  }

  Destination there{loop};
  std::shared_ptr<nfs4::Nfs4> reaching;
  std::optional<FileSystem> target;
  Handle from, to;
  File opened;
};

TEST(CopyNotice, keeps_what_the_source_has_answered) {
  v4::COPY_NOTIFY4resok answer;
  answer.cnr_stateid.seqid = 0x01020304;
  for (std::size_t i = 0; i < answer.cnr_stateid.other.size(); ++i)
    answer.cnr_stateid.other[i] = std::byte(0xa0 + i);
  answer.cnr_source_server.resize(3);
  answer.cnr_source_server[0].nl_type = v4::NL4_NAME;
  answer.cnr_source_server[0].nl_name() = "server.example";
  answer.cnr_source_server[1].nl_type = v4::NL4_URL;
  answer.cnr_source_server[1].nl_url() = "nfs://server.example/export";
  answer.cnr_source_server[2].nl_type = v4::NL4_NETADDR;
  answer.cnr_source_server[2].nl_addr() = {"tcp6", "2001:db8::1.8.1"};
  const CopyNotice notice = nfs4::to_copy_notice(answer);
  EXPECT_EQ(notice.stateid[0], std::byte{1});
  EXPECT_EQ(notice.stateid[15], std::byte{0xab});
  EXPECT_EQ(notice.locations[2],
            (ServerLocation{ServerLocation::Kind::Address, "2001:db8::1.8.1", "tcp6"}));
  EXPECT_EQ(nfs4::stateid_of(notice), answer.cnr_stateid);
  EXPECT_EQ(nfs4::locations_of(notice), answer.cnr_source_server);
}

TEST_F(CopyBetween, asks_the_source_for_leave_and_tells_the_destination_where_to_read) {
  const Outcome<CopySource> source = notified();
  ASSERT_TRUE(source.ok()) << source.error().sentence;
  EXPECT_EQ(source->file, from);
  ASSERT_EQ(source->notice->locations.size(), 1u);
  const Outcome<std::uint64_t> count = copied(*source);
  ASSERT_TRUE(count.ok()) << count.error().sentence;
  EXPECT_EQ(*count, kSize);
  ASSERT_EQ(there.copies.size(), 1u);
  const v4::COPY4args& asked = there.copies.front();
  EXPECT_EQ(asked.ca_src_stateid, nfs4::stateid_of(*source->notice));
  ASSERT_EQ(asked.ca_source_server.size(), 1u);
  EXPECT_EQ(asked.ca_source_server[0].nl_addr(), (v4::netaddr4{"tcp", "192.0.2.9.8.1"}));
  EXPECT_EQ(asked.ca_dst_stateid, v4::stateid4{});
  EXPECT_EQ(asked.ca_count, kSize);
  ASSERT_GE(there.handles.size(), 2u);
  EXPECT_EQ(there.handles[there.handles.size() - 2], v4::nfs_fh4(from.bytes()));
  EXPECT_EQ(there.handles.back(), v4::nfs_fh4(to.bytes()));
}

// By the client that the destination is of the source.
TEST_F(CopyBetween, lets_the_destination_read_as_long_as_the_file_is_open) {
  const auto reader = run(nfs4::Nfs4::connect(channel, options.calls));
  ASSERT_TRUE(reader.ok()) << reader.error().sentence;
  FileSystem reading(*reader, from, "/", options);
  CopySource source = *notified();
  std::vector<std::byte> data(kSize + 1);
  const Outcome<ReadPart> part = run(reading.read_notified(source, 1, data));
  ASSERT_TRUE(part.ok()) << part.error().sentence;
  EXPECT_EQ(part->count, kSize - 1);
  EXPECT_TRUE(part->eof);
  EXPECT_EQ(text_of(Bytes(data).first(kSize - 1)), std::string(kSize - 1, 'x'));
  ASSERT_TRUE(run(files().close(opened)).ok());
  EXPECT_TRUE(run(reading.read(File(from), 0, data)).ok());
  EXPECT_FALSE(run(reading.read_notified(source, 0, data)).ok());
  source.notice.reset();
  const Outcome<ReadPart> without = run(reading.read_notified(source, 0, data));
  ASSERT_FALSE(without.ok());
  EXPECT_TRUE(without.error().is(Status::NotSupported));
  run([](nfs4::Nfs4& ended) -> Task<Ok> {
    co_await ended.close();
    co_return Ok{};
  }(**reader));
}

TEST_F(CopyBetween, goes_on_where_the_destination_has_copied_a_part) {
  there.most = 300;
  const Outcome<std::uint64_t> count = copied(*notified());
  ASSERT_TRUE(count.ok()) << count.error().sentence;
  EXPECT_EQ(*count, kSize);
  ASSERT_EQ(there.copies.size(), 4u);
  EXPECT_EQ(there.copies[3].ca_src_offset, 900u);
  EXPECT_EQ(there.copies[3].ca_dst_offset, 900u);
  EXPECT_EQ(there.copies[3].ca_src_stateid, there.copies[0].ca_src_stateid);
  EXPECT_FALSE(there.copies[3].ca_source_server.empty());
}

TEST_F(CopyBetween, may_go_on_after_the_answer_however_short_it_is) {
  options.calls.offloads = true;
  reaching =
      *run(nfs4::Nfs4::connect(there.channel, options.calls, {&there.service, nullptr, nullptr}));
  target.emplace(reaching, to, "/", options);
  EXPECT_TRUE(copied(*notified()).ok());
  EXPECT_FALSE(there.copies.back().ca_synchronous) << "Linux's server copies so or not at all";
  EXPECT_TRUE(copied(from).ok());
  EXPECT_TRUE(there.copies.back().ca_synchronous);
}

TEST_F(CopyBetween, fails_with_what_the_destination_has_against_it) {
  const CopySource source = *notified();
  for (const v4::nfsstat4 status :
       {v4::NFS4ERR_STALE, v4::NFS4ERR_BADHANDLE, v4::NFS4ERR_NOTSUPP, v4::NFS4ERR_OFFLOAD_DENIED,
        v4::NFS4ERR_PARTNER_NOTSUPP, v4::NFS4ERR_PARTNER_NO_AUTH, v4::NFS4ERR_ACCESS,
        v4::NFS4ERR_BAD_STATEID}) {
    there.refusal = status;
    const Outcome<std::uint64_t> count = copied(source);
    ASSERT_FALSE(count.ok());
    EXPECT_EQ(count.error().kind, Error::Kind::Nfs) << to_string(status);
    EXPECT_FALSE(count.error().is(Status::Delay)) << to_string(status);
  }
}

TEST_F(CopyBetween, is_not_offered_without_an_open_or_by_earlier_versions) {
  const int before = channel.calls;
  const Outcome<CopySource> without = run(files().notify_copy(File(from), kReader));
  ASSERT_FALSE(without.ok());
  EXPECT_TRUE(without.error().is(Status::NotSupported));
  EXPECT_EQ(channel.calls, before);
  testing::Nfs4ClientWorld earlier(1);
  const Handle file =
      earlier.run(earlier.files().create(earlier.files().root(), "f", {.mode = 0644}))->handle;
  const File held = earlier.run(earlier.files().open(file, access::kRead))->file;
  const int calls = earlier.channel.calls;
  const Outcome<CopySource> refused = earlier.run(earlier.files().notify_copy(held, kReader));
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().is(Status::NotSupported));
  EXPECT_EQ(earlier.channel.calls, calls);
  earlier.run(earlier.closed());
}

TEST_F(CopyBetween, does_not_wait_for_a_source_that_has_too_much_to_do) {
  for (std::uint32_t i = 0; i < state::CopyNoticeLimits{}.of_client; ++i)
    ASSERT_TRUE(
        run(files().notify_copy(opened, {"192.0.2.7", static_cast<std::uint16_t>(i)})).ok());
  const TimePoint begun = loop.now();
  const Outcome<CopySource> refused = notified();
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().is(Status::Delay));
  EXPECT_EQ(loop.now(), begun);
}

// The file is opened again for it.
TEST_F(CopyBetween, is_prepared_by_a_source_that_has_restarted) {
  channel.restart();
  EXPECT_TRUE(notified().ok());
}

}  // namespace
}  // namespace stag::nfs::client
