#include "cli/observe/observation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>
#include <string>

#include "cli/support/log.h"
#include "gss/credential.h"
#include "nfs/proto/nfs3.h"
#include "xdr/encoder.h"

namespace stag::cli {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kEnd{1h};
TimePoint end_of_calls() {
  return kEnd;
}

std::string path_of_number(std::uint32_t export_id) {
  return fmt::format("/{}", export_id);
}

// A READ of a file of this export that took so long.
void read_slowly(Observation& observation, std::uint32_t export_id, Duration took,
                 const std::string& client = "192.0.2.7",
                 const std::optional<WorkerTime>& worker_time = std::nullopt) {
  auto origin = std::make_shared<rpc::Origin>();
  origin->peer = {client, 700};
  oncrpc::CallHeader header;
  header.xid = export_id;
  header.program = 100003;
  header.version = 3;
  header.procedure = nfs::v3::NFSPROC3_READ::number;
  xdr::Encoder encoder;
  oncrpc::encode(encoder, header);
  encoder.u32(16);
  for (const std::uint32_t word : {0x01000000 | export_id >> 8, export_id << 24, 0u, 0u})
    encoder.u32(word);
  rpc::IncomingCall call;
  call.origin = origin;
  call.payload = std::move(encoder).finish().rope().flatten();
  rpc::EndedCall ended(call);
  ended.header = header;
  ended.began = kEnd - took;
  ended.answered = true;
  ended.first_result = 0;
  ended.worker_time = worker_time;
  observation.on_call_ended(ended);
}

TEST(Observation, names_the_export_of_a_slow_call_whatever_is_counted_by_itself) {
  Observation observation({.slow = 1s}, end_of_calls, path_of_number);
  constexpr std::uint32_t kExports = 200;
  std::vector<Statistics::KnownExport> known;
  for (std::uint32_t i = 1; i <= kExports; ++i) known.push_back({i, path_of_number(i)});
  observation.statistics().know(known);
  read_slowly(observation, kExports, 2s);
  const auto slow = observation.events().slow_calls();
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].export_path, path_of_number(kExports));
}

TEST(Observation, keeps_slow_calls_of_all_clients_however_many_one_has) {
  Observation observation({.slow = 1s}, end_of_calls, path_of_number);
  for (std::uint32_t i = 1; i <= 5; ++i)
    read_slowly(observation, i, 2s, fmt::format("198.51.100.{}", i));
  for (std::uint32_t i = 100; i < 300; ++i) read_slowly(observation, i, 2s);
  const auto slow = observation.events().slow_calls();
  ASSERT_EQ(slow.size(), Events::kRemembered);
  for (std::size_t i = 0; i < Events::kRemembered; ++i) {
    const bool is_noisy = i < Events::kRemembered - 5;
    EXPECT_EQ(slow[i].xid, is_noisy ? 299 - i : Events::kRemembered - i) << "its oldest go";
    EXPECT_EQ(slow[i].address == "192.0.2.7", is_noisy);
  }
}

// What is logged meanwhile.
template <class Body>
std::string logged(Body body) {
  ::testing::internal::CaptureStderr();
  start_log("info", LogFormat::Text);
  body();
  spdlog::default_logger()->flush();
  set_trace_sink(nullptr);
  return ::testing::internal::GetCapturedStderr();
}

std::shared_ptr<rpc::Origin> client_at(const char* host, rpc::TransportKind transport) {
  auto origin = std::make_shared<rpc::Origin>();
  origin->peer = {host, 700};
  origin->transport = transport;
  return origin;
}

TEST(Observation, follows_calls_by_TCP_and_UDP_from_their_arrival_to_their_answer) {
  Observation observation({.traced = {*IpNetwork::parse("192.0.2.7")}}, end_of_calls);
  const std::string log = logged([&] {
    for (const auto transport : {rpc::TransportKind::Tcp, rpc::TransportKind::Udp}) {
      const auto client = client_at("192.0.2.7", transport);
      observation.on_whole_call(*client, {.xid = 1, .bytes = 176});
      observation.on_whole_reply(*client, {.xid = 1, .bytes = 288, .sent = true});
      observation.on_whole_reply(*client, {.xid = 2, .bytes = 300, .sent = false});
    }
    const auto other = client_at("192.0.2.8", rpc::TransportKind::Tcp);
    observation.on_whole_call(*other, {.xid = 3, .bytes = 176});
  });
  for (const char* line :
       {"xid 0x00000001 arrived: 176 bytes by TCP", "xid 0x00000001 arrived: 176 bytes by UDP",
        "xid 0x00000001 answered: 288 bytes",
        "xid 0x00000002 not answered: the connection ended first, 300 bytes",
        "xid 0x00000002 not answered: the datagram did not leave, 300 bytes"})
    EXPECT_NE(log.find(line), log.npos) << line << " is not in " << log;
  EXPECT_EQ(log.find("0x00000003"), log.npos) << log;
}

TEST(Observation, says_what_a_followed_call_waited_for_workers_and_took_there) {
  Observation observation({.traced = {*IpNetwork::parse("192.0.2.7")}}, end_of_calls);
  const auto line_of = [&](const std::optional<WorkerTime>& time) {
    return logged([&] { read_slowly(observation, 1, 2s, "192.0.2.7", time); });
  };
  EXPECT_NE(line_of(WorkerTime{2, 0, 3us, 60us})
                .find("bytes; store: 2 jobs waited 3 us for workers and took 60 us)"),
            std::string::npos);
  EXPECT_NE(line_of(WorkerTime{0, 1, 3us, 0us}).find("took 0 us, 1 were refused)"),
            std::string::npos);
  EXPECT_EQ(line_of(WorkerTime{}).find("store"), std::string::npos) << "no worker was asked";
}

TEST(Observation, follows_whom_it_is_told_to_from_then_on) {
  Observation observation({}, end_of_calls);
  EXPECT_FALSE(observation.traces());
  observation.change({.traced = {*IpNetwork::parse("192.0.2.7")}});
  EXPECT_TRUE(observation.traces());
  observation.change({});
  EXPECT_FALSE(observation.traces());
}

TEST(Observation, names_what_is_mounted_though_the_arguments_are_protected) {
  Observation observation({}, end_of_calls);
  std::byte credential[gss::credential_size(4)];
  const std::byte handle[4]{};
  gss::encode_credential({.service = gss::Service::privacy, .handle = handle}, credential);
  oncrpc::CallHeader header;
  header.program = 100005;
  header.version = 3;
  header.procedure = 1;
  header.credential = {oncrpc::AuthFlavor::RPCSEC_GSS, credential};
  rpc::IncomingCall call;
  call.origin = client_at("192.0.2.7", rpc::TransportKind::Tcp);
  xdr::Encoder path;
  path.string(xdr::kNoItem, "/data");
  rpc::EndedCall ended(call);
  ended.header = header;
  ended.began = kEnd;
  ended.plain_arguments = std::move(path).finish().rope().flatten();
  ended.answered = true;
  ended.first_result = 0;
  const std::string log = logged([&] { observation.on_call_ended(ended); });
  EXPECT_NE(log.find("(/data, xid 0x"), log.npos) << log;
}

}  // namespace
}  // namespace stag::cli
