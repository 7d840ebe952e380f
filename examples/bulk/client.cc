#include <stag/endpoint/client.h>
#include <stag/endpoint/registered_memory.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "binding.h"

namespace {

using stag::endpoint::Client;

constexpr std::uint32_t kBlocks = 64;
constexpr int kThreads = 8;

std::byte byte_of(std::uint32_t block) {
  return static_cast<std::byte>(block * 7 + 1);
}

bool complain(const stag::rpc::CallError& error) {
  std::puts(error.message().c_str());
  return false;
}
bool complain(stag::Reason reason) {
  std::puts(std::string(stag::info(reason).text).c_str());
  return false;
}

// 1 MiB there and back. The reply's data lands in `place`, by RDMA Write where the transport has
// it.
bool move_block(Client& client, std::uint32_t number, std::vector<std::byte>& place) {
  const std::vector<std::byte> bytes(bulk::BLOCK_MAX, byte_of(number));
  const std::uint64_t offset = std::uint64_t{number} * bulk::BLOCK_MAX;
  // Borrowed: the bytes stay here until call() has returned.
  const auto stored = client.call<bulk::STORE>(
      bulk::block{offset, stag::Rope(stag::Buffer::borrow(stag::Bytes(bytes)))});
  if (!stored.ok()) return complain(stored.error());
  const stag::rpc::ResultBuffer buffer{bulk::item::block_data, stag::MutableBytes(place)};
  stag::rpc::CallOptions options;
  options.result_buffers = {&buffer, 1};
  const auto fetched = client.call<bulk::FETCH>(bulk::block_at{offset, bulk::BLOCK_MAX}, options);
  if (!fetched.ok()) return complain(fetched.error());
  stag::rpc::copy_into(fetched->data, place);
  return *stored == bulk::BLOCK_MAX && place == bytes;
}

// Threads share one connection; each has one call in progress, and memory for its results that is
// registered once.
bool move_all(Client& client, const std::shared_ptr<stag::endpoint::Loops>& loops) {
  std::atomic<std::uint32_t> next = 0;
  std::atomic<bool> good = true;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      std::vector<std::byte> place(bulk::BLOCK_MAX);
      const auto registered =
          stag::endpoint::register_memory(loops, place, stag::endpoint::MemoryAccess::ReadAndWrite);
      if (!registered.ok()) good = complain(registered.error());
      for (std::uint32_t number = next++; number < kBlocks; number = next++)
        if (!move_block(client, number, place)) good = false;
    });
  threads.clear();
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : stag::endpoint::kRdmaPort;
  stag::endpoint::ConnectOptions options;
  options.binding = bulk::kBinding;
  options.loops = std::make_shared<stag::endpoint::Loops>();
  if (argc > 2) options.connector.transport = stag::endpoint::Transport::Tcp;
  auto client = stag::endpoint::connect({"127.0.0.1", static_cast<std::uint16_t>(port)}, options);
  if (!client.ok()) return complain(client.error()), 1;
  if (!move_all(*client, options.loops)) return 1;
  std::printf("%u MiB each way, %d at a time\n", kBlocks, kThreads);

  // A deadline: the call ends when it is over, and the connection goes on.
  stag::rpc::CallOptions short_time;
  short_time.timeout = std::chrono::milliseconds(20);
  const auto late = client->call<bulk::WAIT>(60'000u, short_time);
  if (late.ok() || late.error().reason != stag::Reason::TimedOut) return 1;
  std::puts("timed out");

  // Cancellation, from another thread: source and tokens belong to the client's loop.
  stag::CancelSource source;
  std::jthread canceller([&] { client->loop().post([&] { source.cancel(); }); });
  stag::rpc::CallOptions cancellable;
  cancellable.cancel = source;
  const auto cancelled = client->call<bulk::WAIT>(60'000u, cancellable);
  if (cancelled.ok() || cancelled.error().reason != stag::Reason::Cancelled) return 1;
  std::puts("cancelled");
  return move_all(*client, options.loops) ? 0 : 1;
}
