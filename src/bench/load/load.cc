#include "bench/load/load.h"

#include <unistd.h>

#include <chrono>

#include "base/task_group.h"
#include "endpoint/connector.h"
#include "endpoint/kerberos.h"

namespace stag::bench {
namespace {

namespace client = nfs::client;

constexpr std::size_t kSequentialFrom = 64 << 10;
constexpr auto kCleaningTimeout = std::chrono::seconds(5);

// Framing of a message that went inline, in bytes: FPDU length, untagged DDP header and CRC field
// (RFC 5044, 5041), and the Transport header with three empty lists (RFC 8166 4.3).
constexpr std::size_t kFraming = 2 + 18 + 4 + 28;
// The same over TCP: the record mark (RFC 5531 section 11).
constexpr std::size_t kRecordMark = 4;
// RPC replies of the NFSv3 procedures measured, with their attributes (RFC 5531, RFC 1813), without
// READ's data.
constexpr std::size_t kReplyHeader = 24;
constexpr std::size_t kAttributes = 84;

// The same of a Call with AUTH_SYS and a file handle; counted where the transport counts.
constexpr std::size_t kCallHeader = 68;
constexpr std::size_t kHandle = 40;

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

rpc::Credentials own_credentials() {
  return rpc::Credentials::sys("bench", geteuid(), getegid());
}

// What NFS is called with, as the URL says.
Result<rpc::Credentials, std::string> nfs_credentials(const client::Url& url) {
  using gss::Service;
  using Security = client::Url::Security;
  if (url.security == Security::Sys) return own_credentials();
  const Service service = url.security == Security::Krb5p   ? Service::privacy
                          : url.security == Security::Krb5i ? Service::integrity
                                                            : Service::none;
  auto credentials = endpoint::kerberos(url.host, service);
  if (!credentials) return Failure{std::string(info(credentials.error().reason).text)};
  return *std::move(credentials);
}

client::FileSystemOptions file_system_options(const rpc::Credentials& credentials,
                                              CancelToken cancel) {
  client::FileSystemOptions files;
  files.calls.credentials = credentials;
  files.mount_credentials = own_credentials();
  files.calls.cancel = cancel;
  return files;
}

}  // namespace

// One connection's part of a run, on its loop.
struct LoadGenerator::Running {
  // `ends` as nanoseconds_now() tells it; `buffer`: the first of its buffers.
  Running(Connection& on, Operation what, std::size_t size, std::uint64_t ends, std::size_t buffer)
      : connection(on),
        operation(what),
        bytes(size),
        end(ends),
        first_buffer(buffer),
        random(static_cast<std::uint32_t>(buffer) * 7919 + 1) {}

  Connection& connection;
  const Operation operation;
  const std::size_t bytes;
  const std::uint64_t end;
  const std::size_t first_buffer;
  std::uint32_t random;
  std::uint64_t next = 0;
  std::uint64_t operations = 0;
  std::string trouble{};
  Histogram latency{};
  TaskGroup group{};

  std::uint64_t offset() {
    if (bytes >= kSequentialFrom)
      return next++ % std::max<std::uint64_t>(1, kBulkBytes / bytes) * bytes;
    const std::uint64_t blocks = kFileBytes / bytes;
    random = random * 1664525 + 1013904223;
    return (random >> 8) % blocks * bytes;
  }
  client::FileSystem& files() const { return connection.session->files(); }
  template <class Outcome>
  bool good(const Outcome& outcome) {
    if (!outcome) trouble = outcome.error().sentence;
    return outcome.ok();
  }
  bool whole(std::uint64_t count) {
    if (count != bytes) trouble = "the server moved fewer bytes than it was asked to";
    return count == bytes;
  }
};

LoadGenerator::LoadGenerator(const LoadOptions& options)
    : options_(options), loops_(options.loops, options.busy_poll_us) {
  for (unsigned i = 0; i < options_.connections; ++i)
    connections_.emplace_back(loops_.at(i % loops_.size()));
}

LoadGenerator::~LoadGenerator() {
  for (Connection& each : connections_) endpoint::wait_on(each.loop, [&] { return close(each); });
}

void LoadGenerator::stop() {
  stopped_ = true;
  for (Connection& each : connections_) each.loop.post([&each] { each.stopped.cancel(); });
}

Result<Ok, std::string> LoadGenerator::open(const std::string& url) {
  client::Outcome<client::Url> parsed = client::Url::parse(url);
  if (!parsed) return Failure{parsed.error().sentence};
  for (Connection& each : connections_) {
    make_connectors(each, *parsed);
    Step connected = endpoint::wait_on(each.loop, [&] { return connect(each, *parsed); });
    if (!connected) return connected;
  }
  Step made = endpoint::wait_on(connections_.front().loop, [&] { return make_file(); });
  for (Connection& each : connections_)
    if (made && options_.nfs4) made = endpoint::wait_on(each.loop, [&] { return use_nfs4(each); });
  return made;
}

void LoadGenerator::make_connectors(Connection& connection, const client::Url& url) {
  endpoint::ConnectorOptions wiring;
  wiring.rdma.transport.crc = options_.crc;
  const bool rdma = url.protocol == client::Url::Protocol::Rdma;
  wiring.transport = rdma ? endpoint::Transport::Rdma : endpoint::Transport::Tcp;
  if (url.fabric == client::Url::Fabric::Verbs) wiring.fabric = endpoint::FabricKind::Verbs;
  if (url.fabric == client::Url::Fabric::Auto) wiring.fabric = endpoint::FabricKind::Auto;
  if (&connection == &connections_.front()) wiring.rdma.transfer_stats = &transfer_stats_;
  connection.nfs = endpoint::make_connector(connection.loop, wiring);
  wiring.transport = endpoint::Transport::Tcp;
  connection.mount = endpoint::make_connector(connection.loop, wiring);
}

Task<LoadGenerator::Step> LoadGenerator::connect(Connection& connection, client::Url url) {
  if (!url.version) url.version = options_.version;
  const client::Connectors connectors{*connection.nfs, *connection.mount};
  auto credentials = nfs_credentials(url);
  if (!credentials) co_return Failure{credentials.error()};
  connection.credentials = *std::move(credentials);
  const client::FileSystemOptions files =
      file_system_options(connection.credentials, connection.stopped);
  auto session = co_await client::Session::open(connectors, url, files);
  if (!session) co_return Failure{session.error().sentence};
  connection.session = *std::move(session);
  co_return Ok{};
}

Task<LoadGenerator::Step> LoadGenerator::make_file() {
  client::Session& session = *connections_.front().session;
  auto directory = co_await session.files().walk(session.path());
  if (!directory) co_return Failure{directory.error().sentence};
  directory_ = directory->handle;
  client::SetAttributes attributes;
  attributes.mode = 0600;
  auto file = co_await session.files().create(directory_, kFileName, attributes);
  if (!file) co_return Failure{file.error().sentence};
  file_ = file->handle;
  has_file_ = true;
  memory_.assign(kFileBytes, std::byte{0x42});
  auto written = co_await session.files().write_from(file_, 0, memory_);
  if (!written) co_return Failure{written.error().sentence};
  co_return Ok{};
}

// The file is in the root of a server of this program.
Task<LoadGenerator::Step> LoadGenerator::use_nfs4(Connection& connection) {
  connection.nfs4_file.emplace();
  co_return co_await connection.nfs4_file->open(connection.session->files().channel(),
                                                connection.credentials, kFileName);
}

// The first connection takes the file with it, also when it was stopped.
Task<Ok> LoadGenerator::close(Connection& connection) {
  if (connection.session == nullptr) co_return Ok{};
  if (has_file_ && &connection == &connections_.front())
    co_await remove_file(connection.session->files());
  co_await connection.session->close();
  connection.session.reset();
  co_return Ok{};
}

Task<void> LoadGenerator::remove_file(client::FileSystem& files) {
  client::FileSystemOptions options = file_system_options(connections_.front().credentials, {});
  options.calls.timeout = kCleaningTimeout;
  options.calls.jukebox_for = kCleaningTimeout;
  client::FileSystem cleaner = files.with(options);
  static_cast<void>(co_await cleaner.remove(directory_, kFileName));
}

bool LoadGenerator::renew() {
  Connection& first = connections_.front();
  auto written = endpoint::wait_on(
      first.loop, [&] { return first.session->files().write_from(file_, 0, memory_); });
  if (!written) trouble_ = written.error().sentence;
  return written.ok();
}

Sample LoadGenerator::run(Operation operation, std::size_t bytes, unsigned depth, double seconds,
                          pid_t server) {
  const std::uint64_t calls_before = transfer_stats_.calls,
                      inline_before = transfer_stats_.inline_bytes;
  const Stopwatch watch(server);
  const std::uint64_t end = nanoseconds_now() + static_cast<std::uint64_t>(seconds * 1e9);
  std::deque<Running> running;
  std::latch done(static_cast<std::ptrdiff_t>(connections_.size()));
  const std::size_t block = bytes == 0 ? 1 : bytes;
  for (Connection& each : connections_) {
    Running& part = running.emplace_back(each, operation, block, end, running.size() * depth);
    each.loop.post([this, &part, &done, depth] { detach(run_workers(part, depth, done)); });
  }
  done.wait();
  Sample sample = watch.stop(0, 0);
  shares_.clear();
  trouble_ = stopped_ ? "interrupted" : "";
  for (const Running& each : running) {
    sample.operations += each.operations;
    sample.latency.add(each.latency);
    shares_.push_back(each.operations);
    if (trouble_.empty()) trouble_ = each.trouble;
  }
  sample.bytes = sample.operations * bytes;
  calls_ = transfer_stats_.calls - calls_before;
  inline_bytes_ = transfer_stats_.inline_bytes - inline_before;
  return trouble_.empty() ? sample : Sample{};
}

Task<void> LoadGenerator::run_workers(Running& running, unsigned depth, std::latch& done) {
  for (unsigned i = 0; i < depth; ++i) running.group.add(worker(running, i));
  co_await running.group.join();
  done.count_down();
}

Task<void> LoadGenerator::worker(Running& running, std::size_t index) {
  const std::size_t place = (running.first_buffer + index) * running.bytes;
  const MutableBytes memory = MutableBytes(memory_).subspan(
      place % (kFileBytes - running.bytes + 1) / running.bytes * running.bytes, running.bytes);
  std::uint64_t begin = nanoseconds_now();
  // One at least, however late this begins on a busy machine.
  do {
    const bool good = co_await once(running, memory);
    if (!good) co_return;
    const std::uint64_t now = nanoseconds_now();
    running.latency.add(now - begin);
    ++running.operations;
    begin = now;
  } while (running.trouble.empty() && begin < running.end && !stopped_);
}

Task<bool> LoadGenerator::once(Running& running, MutableBytes memory) {
  if (options_.nfs4 && running.operation != Operation::Null)
    co_return co_await once_by_nfs4(running, memory);
  switch (running.operation) {
    case Operation::Null: {
      auto done = co_await running.files().ping();
      co_return running.good(done);
    }
    case Operation::Getattr: {
      auto done = co_await running.files().getattr(file_);
      co_return running.good(done);
    }
    case Operation::Read:
      co_return co_await read(running, memory);
    case Operation::Write:
      co_return co_await write(running, memory);
  }
  co_return false;
}

Task<bool> LoadGenerator::once_by_nfs4(Running& running, MutableBytes memory) {
  Nfs41File& file = *running.connection.nfs4_file;
  bool good = false;
  if (running.operation == Operation::Getattr)
    good = co_await file.getattr();
  else if (running.operation == Operation::Read)
    good = co_await file.read(running.offset(), memory);
  else
    good = co_await file.write(running.offset(), memory);
  if (!good) running.trouble = file.trouble();
  co_return good;
}

Task<bool> LoadGenerator::read(Running& running, MutableBytes memory) {
  client::FileSystem& fs = running.files();
  if (memory.size() > fs.sizes().read) {
    auto done = co_await fs.read_into(file_, running.offset(), memory);
    co_return running.good(done) && running.whole(*done);
  }
  auto done = co_await fs.read(file_, running.offset(), memory);
  co_return running.good(done) && running.whole(done->count);
}

Task<bool> LoadGenerator::write(Running& running, MutableBytes memory) {
  client::FileSystem& fs = running.files();
  if (memory.size() > fs.sizes().write) {
    auto done = co_await fs.write_from(file_, running.offset(), memory);
    co_return running.good(done) && running.whole(*done);
  }
  auto done = co_await fs.write(file_, running.offset(), memory, nfs::client::Stability::Unstable);
  co_return running.good(done) && running.whole(done->count);
}

LoadGenerator::WireBytes LoadGenerator::wire_bytes(Operation operation, std::size_t bytes) const {
  const std::size_t reply = reply_bytes(operation, bytes);
  std::size_t both = reply + kCallHeader + (operation == Operation::Null ? 0 : kHandle);
  if (operation == Operation::Write) both += bytes;
  if (calls_ > 0) both = inline_bytes_ / calls_;
  const std::size_t framing = calls_ > 0 ? kFraming : kRecordMark;
  return {framing + (both > reply ? both - reply : 0), framing + reply};
}

}  // namespace stag::bench
