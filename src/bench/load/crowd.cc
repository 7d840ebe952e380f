#include "bench/load/crowd.h"

#include <unistd.h>

#include <fstream>

#include "base/task_group.h"
#include "nfs/proto/nfs3.h"
#include "rpc/client.h"

namespace stag::bench {
namespace {

// Connections that are being made at a time.
constexpr std::size_t kWindow = 64;

}  // namespace

Crowd::Crowd(Address server)
    : server_(std::move(server)), connector_(endpoint::make_connector(loops_.at(0), {})) {}

Crowd::~Crowd() {
  endpoint::wait_on(loops_.at(0), [this] { return close(); });
}

Result<Ok, std::string> Crowd::grow(std::size_t count) {
  const std::size_t from = channels_.size();
  channels_.resize(from + count);
  endpoint::wait_on(loops_.at(0), [&] { return join_all(from); });
  if (!trouble_.empty()) return Failure{trouble_};
  return Ok{};
}

std::uint64_t Crowd::knock(std::size_t index) {
  const std::uint64_t begin = nanoseconds_now();
  const bool good = endpoint::wait_on(loops_.at(0), [&] { return ping(*channels_[index]); });
  return good ? nanoseconds_now() - begin : 0;
}

Task<Ok> Crowd::join_all(std::size_t from) {
  TaskGroup group;
  for (std::size_t i = from; i < channels_.size() && trouble_.empty(); ++i) {
    group.add(join(i));
    co_await group.at_most(kWindow - 1);
  }
  co_await group.join();
  co_return Ok{};
}

Task<void> Crowd::join(std::size_t index) {
  const CancelToken never;
  auto channel = co_await connector_->connect(server_, never);
  if (!channel) {
    trouble_ = channel.error().message();
    co_return;
  }
  channels_[index] = *std::move(channel);
  const bool answered = co_await ping(*channels_[index]);
  if (!answered) trouble_ = "a new connection gave no answer";
}

Task<bool> Crowd::ping(rpc::Channel& channel) {
  rpc::Client client(channel);
  auto answer = co_await client.ping(nfs::v3::NFS_PROGRAM, nfs::v3::NFS_V3);
  co_return answer.ok();
}

Task<Ok> Crowd::close() {
  for (std::unique_ptr<rpc::Channel>& channel : channels_)
    if (channel != nullptr) co_await channel->close();
  channels_.clear();
  co_return Ok{};
}

std::uint64_t resident_bytes_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  std::uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace stag::bench
