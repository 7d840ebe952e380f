#include "cli/observe/statistics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "gss/credential.h"
#include "net/loop.h"
#include "nfs/export/exports.h"
#include "nfs/proto/nfs3.h"
#include "nfs/proto/nfs4.h"
#include "xdr/encoder.h"

namespace stag::cli {
namespace {

using namespace std::chrono_literals;
using rpc::TransportKind;

constexpr std::uint32_t kGetattr = nfs::v3::NFSPROC3_GETATTR::number;
constexpr std::uint32_t kRead = nfs::v3::NFSPROC3_READ::number;

TimePoint test_time{1h};
TimePoint test_clock() {
  return test_time;
}

// A server's side of one connection.
struct Client {
  explicit Client(Loop& loop, TransportKind transport = TransportKind::Tcp) {
    auto made = std::make_shared<rpc::Origin>();
    made->peer = {"192.0.2.7", 700};
    made->transport = transport;
    made->loop = &loop;
    origin = made;
  }
  std::shared_ptr<const rpc::Origin> origin;
};

void encode_handle(xdr::Encoder& encoder, std::uint32_t export_id) {
  encoder.u32(0x01000000 | export_id >> 8);
  encoder.u32(export_id << 24);
  encoder.u32(0);
  encoder.u32(0);
}

// A Call of version 3 whose arguments begin with the file handle of an export.
Buffer call_message(const oncrpc::CallHeader& header, std::uint32_t export_id) {
  xdr::Encoder encoder;
  oncrpc::encode(encoder, header);
  encoder.u32(16);
  encode_handle(encoder, export_id);
  return std::move(encoder).finish().rope().flatten();
}

// Arguments that begin with it.
Buffer arguments_for(std::uint32_t version, std::uint32_t export_id) {
  xdr::Encoder encoder;
  if (version == 3) encoder.u32(16);
  encode_handle(encoder, export_id);
  return std::move(encoder).finish().rope().flatten();
}

struct Ended {
  std::uint32_t program = 100003, version = 3, procedure = kGetattr;
  Duration took = 15us;
  oncrpc::ReplyStatus status{};
  std::optional<std::uint32_t> result = 0;
  bool answered = true;
  std::uint32_t export_id = 0;
  Bytes gss_credential{};
  Buffer plain_arguments{};
  Buffer results{};
};

Statistics::Ended end(Statistics& statistics, const Client& client, const Ended& how = {}) {
  rpc::IncomingCall call;
  call.origin = client.origin;
  oncrpc::CallHeader header;
  header.program = how.program;
  header.version = how.version;
  header.procedure = how.procedure;
  if (!how.gss_credential.empty())
    header.credential = {oncrpc::AuthFlavor::RPCSEC_GSS, how.gss_credential};
  call.payload = call_message(header, how.export_id);
  rpc::EndedCall ended(call);
  ended.header = header;
  ended.began = test_time - how.took;
  ended.answered = how.answered;
  ended.status = how.status;
  ended.first_result = how.result;
  ended.reply_bytes = 100;
  ended.plain_arguments = how.plain_arguments;
  ended.results = how.results.bytes();
  return statistics.on_call_ended(ended);
}

class StatisticsTest : public ::testing::Test {
 protected:
  net::EpollLoop loop_;
  Statistics statistics_{test_clock};
  Client client_{loop_};
};

std::uint64_t calls_of(const StatisticsSums& sums, std::uint32_t version, std::uint32_t procedure) {
  return sums.calls[procedure_slot(100003, version, procedure)].count();
}

TEST(Buckets, take_times_up_to_their_bound) {
  EXPECT_EQ(bucket_of(0ns), 0u);
  EXPECT_EQ(bucket_of(10us), 0u);
  EXPECT_EQ(bucket_of(10us + 1ns), 1u);
  for (std::size_t i = 0; i < kBuckets.size(); ++i) {
    EXPECT_EQ(bucket_of(kBuckets[i]), i);
    EXPECT_EQ(bucket_of(kBuckets[i] + 1ns), i + 1);
  }
  EXPECT_EQ(kBuckets.back(), 10s);
  EXPECT_EQ(bucket_of(24h), kBuckets.size());
}

TEST(Procedures, have_a_slot_and_a_name_each) {
  for (std::size_t slot = 1; slot < kProcedureSlots; ++slot) {
    const ProcedureName name = name_of_procedure(slot);
    if (name.procedure.empty()) continue;
    EXPECT_FALSE(name.program.empty());
  }
  const ProcedureName read = name_of_procedure(procedure_slot(100003, 3, kRead));
  EXPECT_EQ(std::tuple(read.program, read.version, read.procedure), std::tuple("nfs", 3u, "READ"));
  EXPECT_EQ(name_of_operation(operation_slot(nfs::v4::OP_LAYOUTGET)), "LAYOUTGET");
}

TEST(Procedures, that_are_not_served_share_a_slot) {
  EXPECT_EQ(procedure_slot(100003, 3, 22), 0u);
  EXPECT_EQ(procedure_slot(100003, 5, 1), 0u);
  EXPECT_EQ(procedure_slot(400000, 1, 0xffffffff), 0u);
  EXPECT_EQ(operation_slot(10044), 0u);
}

TEST_F(StatisticsTest, count_calls_by_procedure_with_their_time) {
  end(statistics_, client_, {.took = 15us});
  end(statistics_, client_, {.took = 3ms});
  end(statistics_, client_, {.procedure = kRead});
  const StatisticsSums sums = statistics_.sums();
  EXPECT_EQ(calls_of(sums, 3, kGetattr), 2u);
  EXPECT_EQ(calls_of(sums, 3, kRead), 1u);
  const HistogramSum& times = sums.calls[procedure_slot(100003, 3, kGetattr)];
  EXPECT_EQ(times.nanoseconds, 3'015'000u);
  EXPECT_EQ(times.buckets[bucket_of(15us)], 1u);
  EXPECT_EQ(times.buckets[bucket_of(3ms)], 1u);
}

TEST_F(StatisticsTest, count_errors_by_status) {
  end(statistics_, client_, {.result = nfs::v3::NFS3ERR_NOENT});
  end(statistics_, client_, {.result = nfs::v3::NFS3ERR_NOENT});
  end(statistics_, client_, {.answered = false});
  end(statistics_, client_,
      {.status = oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::GARBAGE_ARGS), .result = {}});
  end(statistics_, client_,
      {.status = oncrpc::ReplyStatus::auth_error(oncrpc::AuthStat::AUTH_TOOWEAK), .result = {}});
  std::map<std::string, std::uint64_t> counted;
  for (const StatisticsSums::Error& error : statistics_.sums().errors)
    counted[name_of_status(error.slot, error.status)] = error.count;
  EXPECT_EQ(counted,
            (std::map<std::string, std::uint64_t>{
                {"NFS3ERR_NOENT", 2}, {"dropped", 1}, {"GARBAGE_ARGS", 1}, {"AUTH_TOOWEAK", 1}}));
}

TEST_F(StatisticsTest, take_results_for_a_status_only_where_they_begin_with_one) {
  end(statistics_, client_, {.program = 100005, .procedure = 5, .result = 1});  // EXPORT
  EXPECT_TRUE(statistics_.sums().errors.empty());
  end(statistics_, client_, {.program = 100005, .procedure = 1, .result = 13});  // MNT
  EXPECT_EQ(statistics_.sums().errors.size(), 1u);
}

using Paths = std::vector<std::string>;

TEST_F(StatisticsTest, count_an_export_by_itself_once_it_is_known) {
  end(statistics_, client_, {.export_id = 77});
  statistics_.know({{77, "/data"}, {0x01020304, "/home"}});
  statistics_.know({{77, "/data"}});
  end(statistics_, client_, {.export_id = 0x01020304});
  end(statistics_, client_, {.export_id = 5});
  const StatisticsSums sums = statistics_.sums();
  EXPECT_EQ(sums.export_paths, (Paths{"/data", "/home"})) << "it may come back";
  EXPECT_EQ(sums.exports[0].count(), 0u);
  EXPECT_EQ(sums.exports[1].count(), 1u);
  EXPECT_EQ(sums.exports[kExportSlots].count(), 2u);
}

TEST_F(StatisticsTest, go_on_for_an_export_whose_folder_is_replaced) {
  statistics_.know({{77, "/data"}, {78, "/home"}});
  end(statistics_, client_, {.export_id = 77});
  statistics_.know({{79, "/data"}, {78, "/home"}});
  end(statistics_, client_, {.export_id = 79});
  end(statistics_, client_, {.export_id = 77});  // with a filehandle of the former folder
  const StatisticsSums sums = statistics_.sums();
  EXPECT_EQ(sums.export_paths, (Paths{"/data", "/home"}));
  EXPECT_EQ(sums.exports[0].count(), 2u);
  EXPECT_EQ(sums.exports[1].count(), 0u);
  EXPECT_EQ(sums.exports[kExportSlots].count(), 1u);
}

TEST_F(StatisticsTest, have_slots_for_the_first_exports_however_often_they_are_replaced) {
  std::vector<Statistics::KnownExport> exports;
  for (std::uint32_t i = 0; i <= kExportSlots; ++i) exports.push_back({i, fmt::format("/{}", i)});
  statistics_.know(exports);
  for (Statistics::KnownExport& each : exports) each.id += 1000;
  statistics_.know(exports);
  for (const Statistics::KnownExport& each : exports)
    end(statistics_, client_, {.export_id = each.id});
  const StatisticsSums sums = statistics_.sums();
  EXPECT_EQ(sums.export_paths.size(), kExportSlots);
  for (std::size_t i = 0; i <= kExportSlots; ++i) EXPECT_EQ(sums.exports[i].count(), 1u) << i;
}

TEST_F(StatisticsTest, count_the_newest_export_however_many_have_come_and_gone) {
  constexpr std::uint32_t kReloads = 200;
  for (std::uint32_t i = 1; i <= kReloads; ++i) {
    statistics_.know({{1000, "/always"}, {i, fmt::format("/{}", i)}});
    end(statistics_, client_, {.export_id = 1000});
    for (std::uint32_t call = 0; call < i; ++call) end(statistics_, client_, {.export_id = i});
    const StatisticsSums sums = statistics_.sums();
    const auto found = std::ranges::find(sums.export_paths, fmt::format("/{}", i));
    ASSERT_NE(found, sums.export_paths.end());
    const auto at = static_cast<std::size_t>(found - sums.export_paths.begin());
    EXPECT_EQ(sums.exports[at].count(), i) << "not what another had there";
    EXPECT_EQ(sums.exports[at].nanoseconds, i * 15'000u);
  }
  EXPECT_EQ(statistics_.sums().export_paths[0], "/always");
  EXPECT_EQ(statistics_.sums().exports[0].count(), kReloads);
  EXPECT_EQ(statistics_.sums().exports[kExportSlots].count(), 0u);
}

TEST_F(StatisticsTest, count_for_the_path_that_an_export_has_now) {
  statistics_.know({{3, "/before"}});
  statistics_.know({{3, "/now"}});
  end(statistics_, client_, {.export_id = 3});
  EXPECT_EQ(statistics_.sums().exports[1].count(), 1u);
}

// Words of results, with what `rooms` bytes take behind the first ones of them.
Buffer results_with(std::initializer_list<std::pair<std::uint32_t, std::size_t>> words) {
  xdr::Encoder encoder;
  for (const auto& [word, room] : words) {
    encoder.u32(word);
    for (std::size_t i = 0; i < room; i += 4) encoder.u32(0xffffffff);
  }
  return std::move(encoder).finish().rope().flatten();
}

TEST_F(StatisticsTest, count_what_calls_have_read_and_written_by_export) {
  statistics_.know({{77, "/data"}, {78, "/home"}});
  constexpr std::uint32_t kRead = 6, kWrite2 = 8, kWrite3 = 7;
  const Buffer read = results_with({{0, 0}, {1, 84}, {1000, 0}, {1, 0}});
  const Buffer read_without_attributes = results_with({{0, 0}, {0, 0}, {200, 0}});
  const Buffer written = results_with({{0, 0}, {1, 24}, {1, 84}, {40, 0}, {2, 8}});
  const Buffer written_without_attributes = results_with({{0, 0}, {0, 0}, {0, 0}, {2, 0}});
  end(statistics_, client_, {.procedure = kRead, .export_id = 77, .results = read});
  end(statistics_, client_,
      {.procedure = kRead, .export_id = 77, .results = read_without_attributes});
  end(statistics_, client_, {.procedure = kRead, .result = 70, .export_id = 77, .results = read});
  end(statistics_, client_, {.procedure = kWrite3, .export_id = 78, .results = written});
  end(statistics_, client_,
      {.procedure = kWrite3, .export_id = 78, .results = written_without_attributes});
  end(statistics_, client_,
      {.procedure = kWrite3, .export_id = 78, .results = written.slice(0, 100)});
  end(statistics_, client_, {.procedure = kGetattr, .export_id = 77, .results = read});
  end(statistics_, client_, {.procedure = kRead, .export_id = 1, .results = read});
  StatisticsSums sums = statistics_.sums();
  EXPECT_EQ(sums.moved[0].read, 1200u);
  EXPECT_EQ(sums.moved[0].written, 0u);
  EXPECT_EQ(sums.moved[1].read, 0u);
  EXPECT_EQ(sums.moved[1].written, 42u);
  EXPECT_EQ(sums.moved[kExportSlots].read, 1000u);

  std::byte credential[gss::credential_size(4)];
  const std::byte handle[4]{};
  gss::encode_credential({.service = gss::Service::integrity, .handle = handle}, credential);
  Ended of_2{.version = 2, .procedure = kRead, .gss_credential = credential};
  of_2.plain_arguments = arguments_for(2, 77);
  of_2.results = results_with({{0, 68}, {7, 0}});
  end(statistics_, client_, of_2);
  of_2.procedure = kWrite2;
  xdr::Encoder arguments;
  encode_handle(arguments, 77);
  for (const std::uint32_t word : {0u, 0u, 0u, 0u, 0u, 0u, 0u, 9u}) arguments.u32(word);
  of_2.plain_arguments = std::move(arguments).finish().rope().flatten();
  end(statistics_, client_, of_2);
  sums = statistics_.sums();
  EXPECT_EQ(sums.moved[0].read, 1207u);
  EXPECT_EQ(sums.moved[0].written, 9u);
}

TEST_F(StatisticsTest, begin_anew_with_what_was_moved_for_an_export_that_gets_the_slot_of_another) {
  constexpr std::uint32_t kWrite3 = 7;
  const Buffer written = results_with({{0, 0}, {0, 0}, {0, 0}, {2, 0}});
  std::vector<Statistics::KnownExport> exports;
  for (std::uint32_t i = 1; i <= kExportSlots; ++i) exports.push_back({i, fmt::format("/{}", i)});
  statistics_.know(exports);
  end(statistics_, client_, {.procedure = kWrite3, .export_id = 1, .results = written});
  statistics_.know({{1000, "/new"}});
  end(statistics_, client_, {.procedure = kWrite3, .export_id = 1000, .results = written});
  const StatisticsSums sums = statistics_.sums();
  EXPECT_EQ(sums.export_paths[0], "/new");
  EXPECT_EQ(sums.moved[0].written, 2u);
}

TEST_F(StatisticsTest, take_the_export_of_protected_arguments_from_what_was_unwrapped) {
  statistics_.know({{16, "/data"}, {17, "/sealed"}});
  std::byte credential[gss::credential_size(4)];
  const std::byte handle[4]{};
  Ended how{.export_id = 16, .gss_credential = credential};
  for (const auto service : {gss::Service::integrity, gss::Service::privacy}) {
    gss::encode_credential({.service = service, .handle = handle}, credential);
    for (const std::uint32_t version : {2u, 3u}) {
      how.version = version;
      how.plain_arguments = arguments_for(version, 17);
      EXPECT_EQ(end(statistics_, client_, how).export_id, 17u) << version;
    }
    how.plain_arguments = {};
    EXPECT_FALSE(end(statistics_, client_, how).export_id) << "they were not unwrapped";
  }
  const StatisticsSums sums = statistics_.sums();
  EXPECT_EQ(sums.exports[0].count(), 0u);
  EXPECT_EQ(sums.exports[1].count(), 4u);
  EXPECT_EQ(sums.exports[kExportSlots].count(), 2u);
}

TEST_F(StatisticsTest, list_connections_while_they_are_there) {
  statistics_.on_connected(*client_.origin);
  end(statistics_, client_, {.result = nfs::v3::NFS3ERR_IO});
  const auto rows = statistics_.connections();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].address, "192.0.2.7");
  EXPECT_EQ(std::tuple(rows[0].calls, rows[0].errors, rows[0].bytes_out), std::tuple(1u, 1u, 100u));
  statistics_.on_disconnected(*client_.origin);
  EXPECT_TRUE(statistics_.connections().empty());
  end(statistics_, client_);  // a Call that its connection did not wait for
  const StatisticsSums sums = statistics_.sums();
  const auto tcp = static_cast<std::size_t>(TransportKind::Tcp);
  EXPECT_EQ(std::pair(sums.connected[tcp], sums.disconnected[tcp]), std::pair(1ul, 1ul));
}

TEST_F(StatisticsTest, name_a_connection_while_it_is_there) {
  const rpc::Origin* const origin = client_.origin.get();
  EXPECT_EQ(statistics_.name_of(origin), "");
  statistics_.on_connected(*origin);
  EXPECT_EQ(statistics_.name_of(origin), "tcp 192.0.2.7:700");
  EXPECT_EQ(statistics_.name_of(nullptr), "");
  statistics_.on_disconnected(*origin);
  EXPECT_EQ(statistics_.name_of(origin), "");
}

TEST_F(StatisticsTest, tell_a_connection_from_the_one_that_had_its_port_before) {
  statistics_.on_connected(*client_.origin);
  const std::uint64_t first = statistics_.connections().at(0).number;
  EXPECT_EQ(statistics_.connections().at(0).number, first);
  statistics_.on_disconnected(*client_.origin);
  statistics_.on_connected(*client_.origin);
  EXPECT_NE(statistics_.connections().at(0).number, first);
}

TEST_F(StatisticsTest, never_have_more_connections_closed_than_opened) {
  constexpr int kConnections = 200;
  std::atomic<int> opened = 0, closed = 0;
  const auto wait_until = [](const std::atomic<int>& count, int is) {
    for (int now = count; now < is; now = count) count.wait(now);
  };
  std::thread opening([&] {
    for (int i = 0; i < kConnections; ++i) {
      wait_until(closed, i);
      statistics_.on_connected(*client_.origin);
      ++opened;
      opened.notify_all();
    }
  });
  std::thread closing([&] {
    for (int i = 0; i < kConnections; ++i) {
      wait_until(opened, i + 1);
      statistics_.on_disconnected(*client_.origin);
      ++closed;
      closed.notify_all();
    }
  });
  const auto tcp = static_cast<std::size_t>(TransportKind::Tcp);
  while (closed < kConnections) {
    const StatisticsSums sums = statistics_.sums();
    EXPECT_LE(sums.disconnected[tcp], sums.connected[tcp]);
  }
  opening.join();
  closing.join();
}

TEST_F(StatisticsTest, count_bytes_by_how_they_travelled) {
  const Client client(loop_, TransportKind::Rdma);
  statistics_.on_connected(*client.origin);
  statistics_.on_call_arrived(*client.origin,
                              {.inline_bytes = 200, .read_bytes = 65536, .reads = 1});
  statistics_.on_call_arrived(*client.origin,
                              {.read_bytes = 9000, .reads = 2, .position_zero_bytes = 5000});
  statistics_.on_reply_sent(
      *client.origin,
      {.credits = 128, .inline_bytes = 120, .write_chunk_bytes = 4096, .writes = 1});
  end(statistics_, client);
  const StatisticsSums sums = statistics_.sums();
  const auto of = [&](Travelled how) { return sums.bytes[static_cast<std::size_t>(how)]; };
  EXPECT_EQ(of(Travelled::InlineIn), 200u);
  EXPECT_EQ(of(Travelled::ReadChunk), 65536u + 4000u) << "of a Long Call too";
  EXPECT_EQ(of(Travelled::ZeroChunk), 5000u);
  EXPECT_EQ(of(Travelled::InlineOut), 120u);
  EXPECT_EQ(of(Travelled::WriteChunk), 4096u);
  EXPECT_EQ(of(Travelled::TcpIn) + of(Travelled::TcpOut), 0u);
  EXPECT_EQ(statistics_.connections().at(0).credits, 128u);
  EXPECT_EQ(statistics_.connections().at(0).bytes_in, 65736u + 9000u);
}

TEST_F(StatisticsTest, are_summed_over_all_threads) {
  end(statistics_, client_);
  std::thread other([&] { end(statistics_, client_); });
  other.join();
  EXPECT_EQ(calls_of(statistics_.sums(), 3, kGetattr), 2u);
}

TEST_F(StatisticsTest, stay_bounded_for_any_number_of_statuses) {
  for (std::uint32_t i = 1; i <= 5000; ++i) end(statistics_, client_, {.result = i});
  const StatisticsSums sums = statistics_.sums();
  EXPECT_EQ(sums.errors.size(), 4096u);
  EXPECT_EQ(sums.uncounted_call_errors, 904u);
  EXPECT_EQ(sums.uncounted_operation_errors, 0u);
}

}  // namespace
}  // namespace stag::cli
