#include "bench/load.h"

#include <unistd.h>

#include <chrono>

#include "base/task_group.h"
#include "endpoint/connector.h"

namespace stag::bench {
namespace {

namespace client = nfs::client;

constexpr std::size_t kSequentialFrom = 64 << 10;

// Framing of a message that went inline, in bytes: FPDU length, untagged DDP header and CRC field
// (RFC 5044, 5041), and the Transport header with three empty lists (RFC 8166 4.3).
constexpr std::size_t kFraming = 2 + 18 + 4 + 28;
// RPC replies of the NFSv3 procedures measured, with their attributes (RFC 5531, RFC 1813), without
// READ's data.
constexpr std::size_t kReplyHeader = 24;
constexpr std::size_t kAttributes = 84;

std::size_t reply_bytes(Operation operation, std::size_t bytes) {
  switch (operation) {
    case Operation::Null:
      return kReplyHeader;
    case Operation::Getattr:
      return kReplyHeader + 4 + kAttributes;
    case Operation::Read:
      return kReplyHeader + 4 + 4 + kAttributes + 12 + bytes;
    case Operation::Write:
      return kReplyHeader + 4 + 28 + 4 + kAttributes + 16;
  }
  return 0;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

struct Load::Running {
  Operation operation;
  std::size_t bytes;
  double end;
  std::uint64_t operations = 0;
  bool failed = false;
  std::uint32_t random = 1;
  std::uint64_t next = 0;
  TaskGroup group{};

  std::uint64_t offset() {
    if (bytes >= kSequentialFrom)
      return next++ % std::max<std::uint64_t>(1, kBulkBytes / bytes) * bytes;
    const std::uint64_t blocks = kFileBytes / bytes;
    random = random * 1664525 + 1013904223;
    return (random >> 8) % blocks * bytes;
  }
};

Load::Load(const LoadOptions& options) : loops_(1, options.busy_poll_us) {}

Load::~Load() {
  if (session_ == nullptr) return;
  endpoint::wait_on(loops_.at(0), [&] { return session_->close(); });
  endpoint::run_on(loops_.at(0), [&] { session_.reset(); });
}

Result<std::unique_ptr<Load>, std::string> Load::open(const std::string& url,
                                                      const LoadOptions& options) {
  client::Outcome<client::Url> parsed = client::Url::parse(url);
  if (!parsed) return Failure{parsed.error().sentence};
  std::unique_ptr<Load> load(new Load(options));
  Result<Ok, std::string> ready =
      endpoint::wait_on(load->loops_.at(0), [&] { return load->prepare(*parsed, options); });
  if (!ready) return Failure{ready.error()};
  return load;
}

Task<Result<Ok, std::string>> Load::prepare(client::Url url, LoadOptions options) {
  endpoint::ConnectorOptions wiring;
  wiring.rdma.moved = &moved_;
  wiring.rdma.transport.crc = options.crc;
  wiring.transport = url.protocol == client::Url::Protocol::Rdma ? endpoint::Transport::Rdma
                                                                 : endpoint::Transport::Tcp;
  auto connector = endpoint::make_connector(wiring);
  wiring.transport = endpoint::Transport::Tcp;
  auto mount_connector = endpoint::make_connector(wiring);
  if (!connector || !mount_connector)
    co_return Failure{std::string("this transport is not in this build")};
  connector_ = *std::move(connector);
  mount_connector_ = *std::move(mount_connector);
  client::FileSystemOptions files;
  files.calls.credentials = rpc::Credentials::sys("bench", geteuid(), getegid());
  auto session =
      co_await client::Session::open(loops_.at(0), {*connector_, *mount_connector_}, url, files);
  if (!session) co_return Failure{session.error().sentence};
  session_ = *std::move(session);
  client::FileSystem& fs = session_->files();
  auto directory = co_await fs.walk(session_->path());
  if (!directory) co_return Failure{directory.error().sentence};
  auto file = co_await fs.create(directory->handle, "stag-bench.data", {.mode = 0600});
  if (!file) co_return Failure{file.error().sentence};
  file_ = file->handle;
  memory_.assign(kFileBytes, std::byte{0x42});
  auto written = co_await fs.write_from(file_, 0, memory_);
  if (!written) co_return Failure{written.error().sentence};
  co_return Ok{};
}

template <class Outcome>
bool Load::good(const Outcome& outcome) {
  if (!outcome) trouble_ = outcome.error().sentence;
  return outcome.ok();
}

bool Load::renew() {
  return good(endpoint::wait_on(loops_.at(0),
                                [&] { return session_->files().write_from(file_, 0, memory_); }));
}

Sample Load::run(Operation operation, std::size_t bytes, unsigned depth, double seconds,
                 pid_t server) {
  const std::uint64_t calls_before = moved_.calls, inline_before = moved_.inline_bytes;
  const double cpu = cpu_seconds_of(getpid()) + cpu_seconds_of(server);
  const double begun = seconds_now();
  Running running{operation, bytes == 0 ? 1 : bytes, begun + seconds};
  endpoint::wait_on(loops_.at(0), [&] { return run_workers(running, depth); });
  const double wall = seconds_now() - begun;
  calls_ = moved_.calls - calls_before;
  inline_bytes_ = moved_.inline_bytes - inline_before;
  if (running.failed) return {};
  return {wall, cpu_seconds_of(getpid()) + cpu_seconds_of(server) - cpu, running.operations,
          running.operations * bytes};
}

Task<void> Load::run_workers(Running& running, unsigned depth) {
  for (unsigned i = 0; i < depth; ++i) running.group.add(worker(running, i));
  co_await running.group.join();
}

Task<void> Load::worker(Running& running, std::size_t index) {
  const MutableBytes memory =
      MutableBytes(memory_).subspan(index * running.bytes % kFileBytes, running.bytes);
  while (!running.failed && seconds_now() < running.end) {
    const bool good = co_await once(running, memory);
    if (good)
      ++running.operations;
    else
      running.failed = true;
  }
}

Task<bool> Load::once(Running& running, MutableBytes memory) {
  client::FileSystem& fs = session_->files();
  switch (running.operation) {
    case Operation::Null: {
      auto done = co_await fs.ping();
      co_return good(done);
    }
    case Operation::Getattr: {
      auto done = co_await fs.getattr(file_);
      co_return good(done);
    }
    case Operation::Read:
      co_return co_await read(running.offset(), memory);
    case Operation::Write:
      co_return co_await write(running.offset(), memory);
  }
  co_return false;
}

Task<bool> Load::read(std::uint64_t offset, MutableBytes memory) {
  client::FileSystem& fs = session_->files();
  std::uint64_t count = 0;
  if (memory.size() > fs.sizes().read) {
    auto done = co_await fs.read_into(file_, offset, memory);
    if (!good(done)) co_return false;
    count = *done;
  } else {
    auto done = co_await fs.read(file_, offset, memory);
    if (!good(done)) co_return false;
    count = done->count;
  }
  if (count != memory.size()) trouble_ = "the server gave fewer bytes than were asked for";
  co_return count == memory.size();
}

Task<bool> Load::write(std::uint64_t offset, MutableBytes memory) {
  client::FileSystem& fs = session_->files();
  std::uint64_t count = 0;
  if (memory.size() > fs.sizes().write) {
    auto done = co_await fs.write_from(file_, offset, memory);
    if (!good(done)) co_return false;
    count = *done;
  } else {
    auto done = co_await fs.write(file_, offset, memory, nfs::v3::UNSTABLE);
    if (!good(done)) co_return false;
    count = done->count;
  }
  if (count != memory.size()) trouble_ = "the server took fewer bytes than were given";
  co_return count == memory.size();
}

Load::WireBytes Load::wire_bytes(Operation operation, std::size_t bytes) const {
  const std::size_t reply = reply_bytes(operation, bytes);
  const std::size_t both = calls_ == 0 ? reply : inline_bytes_ / calls_;
  return {kFraming + (both > reply ? both - reply : 0), kFraming + reply};
}

}  // namespace stag::bench
