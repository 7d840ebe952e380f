// The fast path's promise: in steady state a message costs no heap allocation on either side. This
// program's operator new counts.
#include "iwarp/harness_test.h"
#include "iwarp/sender.h"
#include "testing/counted_new.h"

namespace stag::iwarp::test {
namespace {

// Counts and forgets.
class CountingSink final : public ReceiverSink {
 public:
  void on_send(Buffer message, std::optional<std::uint32_t>, bool) override {
    bytes += message.size();
  }
  void on_read_request(const ReadRequest& request) override { last_read = request; }
  void on_read_done(const ReadRequest&) override { ++reads; }
  void on_terminate(const Terminate&) override { ++ends; }
  void on_violation(const Violation&) override { ++ends; }

  std::size_t bytes = 0;
  ReadRequest last_read;
  int reads = 0;
  int ends = 0;
};

// Two ends, each with a table, a Sender and a Receiver.
struct End {
  explicit End(std::uint64_t seed) : entropy(seed) { receiver.add_receive_credit(1 << 20, 4096); }
  TestEntropy entropy;
  StagTable table{entropy};
  CountingSink sink;
  Receiver receiver{{true, 4, 4, 4096}, table, sink};
  SenderOptions options{true};
  Sender sender{options, table};
  Batch batch;
};

void carry(End& from, End& to) {
  EXPECT_TRUE(from.sender.fill(from.batch).ok());
  ASSERT_TRUE(from.sender.idle());
  for (const Bytes range : from.batch.unsent()) {
    // In two parts, so that nothing lies whole in a buffer.
    to.receiver.on_bytes(range.first(range.size() / 2));
    to.receiver.on_bytes(range.subspan(range.size() / 2));
  }
  from.batch.sent(from.batch.bytes_left());
}

// A call that is written into and read from: as an NFS READ and WRITE over RDMA do.
void exchange(End& client, End& server, MutableBytes memory, const Rope& message,
              const Rope& data) {
  const std::uint32_t sink = client.table.expose_sink(memory, 0x1000).value();
  const std::uint32_t source = client.table.expose_source(memory, 0x1000).value();
  client.sender.begin_send(message);
  carry(client, server);
  const std::uint32_t read_sink = server.table.register_read_sink(memory, 0).value();
  const ReadRequest read{read_sink, 0, static_cast<std::uint32_t>(memory.size()), source, 0x1000};
  server.receiver.expect_read_response(read);
  server.sender.begin_read_request(read);
  carry(server, client);
  client.sender.begin_read_response(client.sink.last_read);
  carry(client, server);
  client.receiver.read_response_sent();
  server.table.revoke(read_sink);
  server.sender.begin_write(sink, 0x1000, data);
  carry(server, client);
  server.sender.begin_send(message, sink);
  carry(server, client);
  client.table.revoke(source);
}

TEST(SteadyState, allocates_nothing_per_message) {
  End client(1);
  End server(2);
  Octets memory = pattern(100000, 1);
  const Octets bytes = pattern(100000, 2);
  const Rope message = Rope::copy_of(Bytes(bytes).first(200));
  const Rope data = Rope::copy_of(bytes);
  // Long enough for the tables to hold as many revoked STags as they will.
  for (int i = 0; i < 400; ++i) exchange(client, server, memory, message, data);
  const std::size_t before = testing::heap_allocations;
  for (int i = 0; i < 400; ++i) exchange(client, server, memory, message, data);
  EXPECT_EQ(testing::heap_allocations, before);
  EXPECT_EQ(server.sink.reads, 800);
  EXPECT_EQ(client.sink.bytes, 160000u);
  EXPECT_EQ(client.sink.ends + server.sink.ends, 0);
}

TEST(Allocation, the_table_of_who_reads_one_range_after_the_other_does_not_grow) {
  TestEntropy entropy{1};
  StagTable table{entropy};
  Octets memory(8);
  const auto read = [&] { EXPECT_TRUE(table.revoke(*table.register_read_sink(memory, 0))); };
  read();
  const std::size_t before = testing::heap_allocations;
  for (std::size_t i = 0; i < 2 * StagTable::kQuarantine; ++i) read();
  EXPECT_EQ(testing::heap_allocations, before);
}

}  // namespace
}  // namespace stag::iwarp::test
