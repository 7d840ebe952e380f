// What the tests of this module share: hex, golden files, injected STags, a sink that writes down
// what it was told.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "iwarp/batch.h"
#include "iwarp/receiver.h"

namespace stag::iwarp::test {

using Octets = std::vector<std::byte>;

inline Octets octets(Bytes bytes) {
  return {bytes.begin(), bytes.end()};
}

inline Octets from_hex(std::string_view text) {
  Octets result;
  std::string digits;
  for (const char c : text) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) continue;
    digits.push_back(c);
    if (digits.size() < 2) continue;
    result.push_back(static_cast<std::byte>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return result;
}

inline std::string to_hex(Bytes bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<int>(byte) >> 4];
    text += kDigits[std::to_integer<int>(byte) & 15];
  }
  return text;
}

// A golden file: "[name]" opens a section of hex digits; '#' begins a comment.
inline std::map<std::string, Octets> golden(const std::string& name) {
  std::ifstream file("tests/golden/iwarp/" + name);
  EXPECT_TRUE(file.is_open()) << name << " is read from the project's root folder";
  std::map<std::string, std::string> text;
  std::string section;
  for (std::string line; std::getline(file, line);) {
    line = line.substr(0, line.find('#'));
    if (!line.empty() && line[0] == '[') {
      section = line.substr(1, line.find(']') - 1);
    } else {
      text[section] += line;
    }
  }
  std::map<std::string, Octets> result;
  for (const auto& [key, digits] : text) result[key] = from_hex(digits);
  result.erase("");
  return result;
}

// Hands out the values given first, then pseudo-random ones.
class TestEntropy final : public Entropy {
 public:
  explicit TestEntropy(std::uint64_t seed = 1) : random_(seed) {}
  std::uint64_t next() override {
    if (scripted_.empty()) return random_();
    const std::uint64_t value = scripted_.front();
    scripted_.pop_front();
    return value;
  }
  // The next registration gets this STag.
  void script(std::uint32_t stag) { scripted_.push_back(stag); }

 private:
  std::mt19937_64 random_;
  std::deque<std::uint64_t> scripted_;
};

class RecordingSink final : public ReceiverSink {
 public:
  void on_send(Buffer message, std::optional<std::uint32_t> invalidated, bool solicited) override {
    log.push_back("send " + std::to_string(message.size()));
    sends.push_back(octets(message.bytes()));
    in_place.push_back(!message.owned());
    invalidations.push_back(invalidated);
    solicitations.push_back(solicited);
    if (invalidated && on_invalidated) on_invalidated();
  }
  void on_read_request(const ReadRequest& request) override {
    log.push_back("read request " + std::to_string(request.size));
    read_requests.push_back(request);
  }
  void on_read_done(const ReadRequest& request) override {
    log.push_back("read done " + std::to_string(request.size));
    reads_done.push_back(request);
  }
  void on_terminate(const Terminate& terminate) override {
    log.push_back("terminate");
    terminates.push_back(terminate);
  }
  void on_violation(const Violation& violation) override {
    log.push_back("violation " + std::string(to_string(violation.reason)));
    violations.push_back(violation);
  }

  std::vector<std::string> log;
  std::vector<Octets> sends;
  std::vector<bool> in_place;
  std::vector<std::optional<std::uint32_t>> invalidations;
  std::vector<bool> solicitations;
  std::vector<ReadRequest> read_requests;
  std::vector<ReadRequest> reads_done;
  std::vector<Terminate> terminates;
  std::vector<Violation> violations;
  std::function<void()> on_invalidated;
};

// One end of a connection that only receives.
struct Inlet {
  explicit Inlet(ReceiverOptions options = {false, 4, 4, 4096}, std::uint32_t credit = 64,
                 std::uint32_t size = 4096)
      : receiver(options, table, sink) {
    receiver.add_receive_credit(credit, size);
  }
  std::uint32_t expose_sink(std::uint32_t stag, MutableBytes memory, std::uint64_t offset) {
    entropy.script(stag);
    return table.expose_sink(memory, offset).value();
  }
  std::uint32_t expose_source(std::uint32_t stag, Bytes memory, std::uint64_t offset) {
    entropy.script(stag);
    return table.expose_source(memory, offset).value();
  }
  std::uint32_t register_read_sink(std::uint32_t stag, MutableBytes memory, std::uint64_t offset) {
    entropy.script(stag);
    return table.register_read_sink(memory, offset).value();
  }

  TestEntropy entropy;
  StagTable table{entropy};
  RecordingSink sink;
  Receiver receiver;
};

// As a provider does: what fits goes straight to its places.
inline void receive(Receiver& receiver, Bytes portion) {
  std::size_t direct = 0;
  for (const MutableBytes where : receiver.direct_targets()) {
    const std::size_t count = std::min(where.size(), portion.size() - direct);
    std::copy_n(portion.begin() + static_cast<std::ptrdiff_t>(direct), count, where.begin());
    direct += count;
  }
  receiver.on_placed(direct);
  receiver.on_bytes(portion.subspan(direct));
}

// Whether every byte that is not `filler` in `exact` is the same in `other`. Exposed memory that no
// Write has filled has undefined contents.
inline bool holds_all_of(const Octets& exact, const Octets& other, std::byte filler) {
  if (exact.size() != other.size()) return false;
  // Byte by byte only where it must be: streams are compared thousands of times, unoptimised.
  constexpr std::size_t kBlock = 4096;
  for (std::size_t at = 0; at < exact.size(); at += kBlock) {
    const std::size_t end = std::min(at + kBlock, exact.size());
    if (std::memcmp(exact.data() + at, other.data() + at, end - at) == 0) continue;
    for (std::size_t i = at; i < end; ++i)
      if (exact[i] != filler && exact[i] != other[i]) return false;
  }
  return true;
}

// An FPDU around a ULPDU given in hex, with the CRC on or zero.
inline Octets fpdu(std::string_view ulpdu_hex, bool crc = false) {
  const Octets ulpdu = from_hex(ulpdu_hex);
  Octets result(kLengthSize);
  store_be(result.data(), static_cast<std::uint16_t>(ulpdu.size()));
  result.insert(result.end(), ulpdu.begin(), ulpdu.end());
  result.resize(result.size() + fpdu_pad(ulpdu.size()));
  Crc32c sum;
  sum.add(result);
  result.resize(result.size() + kCrcSize);
  if (crc) sum.store(result.data() + result.size() - kCrcSize);
  return result;
}

inline Octets joined(std::span<const Bytes> ranges) {
  Octets result;
  for (const Bytes range : ranges) result.insert(result.end(), range.begin(), range.end());
  return result;
}

inline Octets pattern(std::size_t size, std::uint32_t seed) {
  Octets result(size);
  std::minstd_rand random(seed + 1);
  for (std::byte& byte : result) byte = static_cast<std::byte>(random());
  return result;
}

}  // namespace stag::iwarp::test
