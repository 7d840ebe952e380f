#include <stag/endpoint/listener.h>
#include <stag/rpc/server.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "binding.h"

using stag::Task;
using stag::rpc::CallContext;

namespace {

// 64 MiB that all clients share. Handlers run on the loops' threads, several at a time.
class Memory {
 public:
  bool contains(std::uint64_t offset, std::uint64_t length) const {
    return offset <= bytes_.size() && length <= bytes_.size() - offset;
  }
  stag::Rope copy(std::uint64_t offset, std::uint32_t length) {
    const std::lock_guard lock(mutex_);
    return stag::Rope::copy_of(stag::Bytes(bytes_).subspan(offset, length));
  }
  void store(std::uint64_t offset, const stag::Rope& data) {
    const std::lock_guard lock(mutex_);
    data.copy_to(stag::MutableBytes(bytes_).subspan(offset, data.size()));
  }

 private:
  std::mutex mutex_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(64 << 20);
};

// What does not fit is refused as GARBAGE_ARGS.
const stag::rpc::CallRefusal kOutside{
    stag::oncrpc::ReplyStatus::accepted(stag::oncrpc::AcceptStat::GARBAGE_ARGS)};

}  // namespace

int main(int argc, char** argv) {
  Memory memory;
  stag::rpc::Program program(bulk::BULK_PROGRAM, bulk::BULK_V1, bulk::kBinding);
  program.add<bulk::FETCH>(
      [&](CallContext&,
          bulk::block_at at) -> Task<stag::Result<bulk::block, stag::rpc::CallRefusal>> {
        if (at.length > bulk::BLOCK_MAX || !memory.contains(at.offset, at.length))
          co_return stag::Failure{kOutside};
        co_return bulk::block{at.offset, memory.copy(at.offset, at.length)};
      });
  program.add<bulk::STORE>(
      [&](CallContext&,
          bulk::block from) -> Task<stag::Result<std::uint32_t, stag::rpc::CallRefusal>> {
        if (!memory.contains(from.offset, from.data.size())) co_return stag::Failure{kOutside};
        memory.store(from.offset, from.data);
        co_return static_cast<std::uint32_t>(from.data.size());
      });
  // A handler that waits gives its thread to others meanwhile.
  program.add<bulk::WAIT>(
      [](CallContext& call, std::uint32_t milliseconds) -> Task<stag::xdr::Void> {
        co_await stag::sleep_for(call.loop(), std::chrono::milliseconds(milliseconds));
        co_return stag::xdr::Void{};
      });
  stag::rpc::Server server;
  server.add(std::move(program));
  stag::endpoint::ListenOptions options;
  options.loops = std::make_shared<stag::endpoint::Loops>(2);
  const int port = argc > 1 ? std::atoi(argv[1]) : stag::endpoint::kRdmaPort;
  auto listener =
      stag::endpoint::listen(server, {"127.0.0.1", static_cast<std::uint16_t>(port)}, options);
  if (!listener.ok()) return std::puts(stag::info(listener.error()).text.data()), 1;
  std::printf("%d\n", listener->address().port);
  std::fflush(stdout);
  std::getchar();
}
