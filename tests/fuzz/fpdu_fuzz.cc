// The receive machine: any stream, in any portions, placed directly or copied, with and without
// CRC. What arrives stays inside the memory that was registered.
#include <random>
#include <vector>

#include "input.h"
#include "iwarp/receiver.h"

using namespace stag;

namespace {

class Steps final : public iwarp::Entropy {
 public:
  std::uint64_t next() override { return state_ += 0x100; }

 private:
  std::uint64_t state_ = 0x100;
};

class Sink final : public iwarp::ReceiverSink {
 public:
  explicit Sink(iwarp::Receiver*& receiver) : receiver_(receiver) {}
  void on_send(Buffer message, std::optional<std::uint32_t>, bool) override {
    for (const std::byte byte : message.bytes()) sum_ += std::to_integer<unsigned>(byte);
  }
  void on_read_request(const iwarp::ReadRequest&) override { receiver_->read_response_sent(); }
  void on_read_done(const iwarp::ReadRequest&) override {}
  void on_terminate(const iwarp::Terminate&) override {}
  void on_violation(const iwarp::Violation&) override { STAG_CHECK(++violations_ == 1); }

 private:
  iwarp::Receiver*& receiver_;
  unsigned sum_ = 0;
  int violations_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t options = input.octet();
  Steps entropy;
  iwarp::StagTable table(entropy, 64);
  std::vector<std::byte> sink_memory(8192), source_memory(8192), read_memory(8192);
  table.expose_sink(sink_memory, 0);
  table.expose_source(source_memory, 0x7fffffffffff0000);
  const std::uint32_t read_sink = *table.register_read_sink(read_memory, 0);
  iwarp::Receiver* receiver = nullptr;
  Sink sink(receiver);
  iwarp::Receiver machine({.crc = (options & 1) != 0, .ird = 2, .ord = 2, .direct_threshold = 64},
                          table, sink);
  receiver = &machine;
  machine.add_receive_credit(4, 4096);
  if (options & 2)
    machine.expect_read_response({.sink_stag = read_sink, .sink_offset = 0, .size = 8192});
  while (!input.empty()) {
    const Bytes portion = input.take(input.octet() * 8u + 1);
    std::size_t direct = 0;
    for (const MutableBytes where : machine.direct_targets()) {
      const std::size_t count = std::min(portion.size() - direct, where.size());
      std::memcpy(where.data(), portion.data() + direct, count);
      direct += count;
    }
    machine.on_placed(direct);
    machine.on_bytes(portion.subspan(direct));
  }
  return 0;
}
