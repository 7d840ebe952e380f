#include "cli/observe/observation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

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
                 const std::string& client = "192.0.2.7") {
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
  rpc::EndedCall ended{.call = call, .header = header};
  ended.began = kEnd - took;
  ended.answered = true;
  ended.first_result = 0;
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

}  // namespace
}  // namespace stag::cli
