#include "cli/observe/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "nfs/export/exports.h"

namespace stag::cli {
namespace {

constexpr std::uint32_t kNfsProgram = 100003;

// Never 0, because a status that is counted is not.
std::uint64_t error_key(bool operation, std::size_t slot, std::uint32_t status) {
  return std::uint64_t{operation} << 63 | std::uint64_t{slot} << 32 | status;
}
bool is_of_operation(std::uint64_t key) {
  return key >> 63 != 0;
}

// How often each status came that is not kDone: a hash table without removal that one thread
// writes. A client that tries every status of every operation finds room: there are about 700 that
// this server can be brought to.
class ErrorCounts {
 public:
  static constexpr std::size_t kBits = 12;
  static constexpr std::size_t kMost = std::size_t{1} << kBits;

  void add(std::uint64_t key) {
    std::size_t at = (key * 0x9e3779b97f4a7c15u) >> (64 - kBits);
    for (std::size_t tried = 0; tried < kMost; ++tried, at = (at + 1) % kMost) {
      const std::uint64_t there = entries_[at].key.value();
      if (there == 0) entries_[at].key.set(key);
      if (there == 0 || there == key) return entries_[at].count.add();
    }
    (is_of_operation(key) ? operations_left_out_ : calls_left_out_).add();
  }
  template <class Each>
  void for_each(Each each) const {
    for (const Entry& entry : entries_)
      if (entry.key.value() != 0) each(entry.key.value(), entry.count.value());
  }
  std::uint64_t calls_left_out() const { return calls_left_out_.value(); }
  std::uint64_t operations_left_out() const { return operations_left_out_.value(); }

 private:
  struct Entry {
    Count key;
    Count count;
  };
  std::array<Entry, kMost> entries_{};
  Count calls_left_out_, operations_left_out_;
};

// Whether the arguments begin with a file handle.
bool begins_with_handle(const oncrpc::CallHeader& header, std::size_t slot) {
  return header.program == kNfsProgram && begins_with_status(slot) &&
         (header.version == 2 || header.version == 3);
}

// nfs/export/file_handle.h: one byte, then the export id. What a client claims is good enough to
// count by: an id that is not known is counted with all others.
std::optional<std::uint32_t> claimed_export(const rpc::EndedCall& call) {
  const std::size_t length = call.header->version == 3 ? 4 : 0;
  const std::size_t at = length + 1;
  const Bytes arguments = arguments_of(call);
  if (arguments.size() < at + 4) return std::nullopt;
  return load_be<std::uint32_t>(arguments.data() + at);
}

}  // namespace

Bytes arguments_of(const rpc::EndedCall& call) {
  if (has_protected_arguments(*call.header)) return call.plain_arguments.bytes();
  const Bytes payload = call.call.payload.bytes();
  return payload.subspan(std::min(oncrpc::header_size(*call.header), payload.size()));
}

std::string_view name_of_transport(rpc::TransportKind transport) {
  switch (transport) {
    case rpc::TransportKind::Tcp:
      return "tcp";
    case rpc::TransportKind::Udp:
      return "udp";
    case rpc::TransportKind::Rdma:
      return "rdma";
    case rpc::TransportKind::Memory:
      break;
  }
  return "memory";
}

struct Statistics::Connected {
  const std::uint64_t number = next_number();
  std::string address;
  std::uint16_t port = 0;
  rpc::TransportKind transport{};
  TimePoint since{};
  Count last;  // nanoseconds of the loop's clock
  Count calls, errors, bytes_in, bytes_out, credits;
};

// Of one thread, which alone writes it. The map is changed under the mutex, by that thread only.
struct Statistics::Stripe {
  Connected* find(const rpc::Origin* origin) {
    if (origin == latest_origin) return latest;
    const auto found = connected.find(origin);
    if (found == connected.end()) return nullptr;
    latest_origin = origin;
    return latest = &found->second;
  }

  std::array<Histogram, kProcedureSlots> calls;
  std::array<Histogram, kOperationSlots> operation_times;
  std::array<Count, kOperationSlots> operations;
  std::array<Histogram, kExportSlots + 1> exports;
  std::array<Count, kExportSlots + 1> read, written;
  std::array<Count, kTravelled> bytes;
  std::array<Count, kTransports> opened, closed;
  Count read_chunks, writes;
  ErrorCounts errors;
  mutable std::mutex mutex;
  std::unordered_map<const rpc::Origin*, Connected> connected;
  const rpc::Origin* latest_origin = nullptr;
  Connected* latest = nullptr;

  void count(Travelled how, std::uint64_t more) { bytes[static_cast<std::size_t>(how)].add(more); }
  void count(std::size_t slot, const MovedBytes& moved) {
    if (moved.read != 0) read[slot].add(moved.read);
    if (moved.written != 0) written[slot].add(moved.written);
  }
};

Statistics::Statistics(Clock clock) : clock_(clock) {}

Statistics::~Statistics() = default;

std::uint64_t Statistics::next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

constinit thread_local Statistics::Latest Statistics::latest_;

Statistics::Stripe* Statistics::find_stripe() noexcept {
  try {
    auto made = std::make_unique<Stripe>();
    const std::lock_guard lock(mutex_);
    stripes_.push_back(std::move(made));
    latest_ = {own_, stripes_.back().get()};
    return latest_.stripe;
  } catch (...) {
    return nullptr;
  }
}

void Statistics::on_connected(const rpc::Origin& origin) noexcept {
  Stripe* const own = stripe();
  const auto transport = static_cast<std::size_t>(origin.transport);
  if (own == nullptr) {
    opened_without_[transport].fetch_add(1, std::memory_order_relaxed);
    return;
  }
  own->opened[transport].add();
  try {
    const std::lock_guard lock(own->mutex);
    Connected& made = own->connected[&origin];
    made.address = origin.peer.host;
    made.port = origin.peer.port;
    made.transport = origin.transport;
    made.since = origin.loop->now();
    made.last.set(static_cast<std::uint64_t>(made.since.time_since_epoch().count()));
  } catch (...) {
    // It is served all the same, and not listed.
  }
}

void Statistics::on_disconnected(const rpc::Origin& origin) noexcept {
  Stripe* const own = stripe();
  const auto transport = static_cast<std::size_t>(origin.transport);
  if (own == nullptr) {
    closed_without_[transport].fetch_add(1, std::memory_order_release);
    return;
  }
  own->closed[transport].add_last();
  if (own->latest_origin == &origin) own->latest_origin = nullptr;
  const std::lock_guard lock(own->mutex);
  own->connected.erase(&origin);
}

std::size_t Statistics::export_slot(std::uint32_t id) const noexcept {
  const std::size_t known = exports_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < known; ++i)
    if (export_ids_[i].load(std::memory_order_relaxed) == id) return i;
  return kExportSlots;
}

Statistics::Ended Statistics::on_call_ended(const rpc::EndedCall& call) noexcept {
  Ended ended;
  ended.took = std::max(clock_() - call.began, Duration::zero());
  if (call.header)
    ended.slot = procedure_slot(call.header->program, call.header->version, call.header->procedure);
  ended.status = !call.answered
                     ? kDropped
                     : call_status(ended.slot, call.status, call.first_result.value_or(0));
  Stripe* const own = stripe();
  if (own == nullptr) return ended;
  own->calls[ended.slot].add(ended.took);
  if (ended.status != kDone) own->errors.add(error_key(false, ended.slot, ended.status));
  if (call.header)
    if (begins_with_handle(*call.header, ended.slot)) {
      ended.export_id = claimed_export(call);
      const auto at = ended.export_id ? export_slot(*ended.export_id) : kExportSlots;
      own->exports[at].add(ended.took);
      if (ended.status == kDone) own->count(at, moved_by(call));
    }
  const rpc::Origin& origin = *call.call.origin;
  const bool by_rdma = origin.transport == rpc::TransportKind::Rdma;
  // How a message came by RDMA, the Link has told.
  const std::uint64_t in = by_rdma ? 0 : call.call.payload.size();
  if (!by_rdma) {
    const bool tcp = origin.transport == rpc::TransportKind::Tcp;
    own->count(tcp ? Travelled::TcpIn : Travelled::UdpIn, in);
    own->count(tcp ? Travelled::TcpOut : Travelled::UdpOut, call.reply_bytes);
  }
  if (Connected* const connected = own->find(&origin)) {
    connected->calls.add();
    if (ended.status != kDone) connected->errors.add();
    connected->bytes_in.add(in);
    connected->bytes_out.add(call.reply_bytes);
    connected->last.set(static_cast<std::uint64_t>(call.began.time_since_epoch().count()));
  }
  return ended;
}

void Statistics::on_call_arrived(const rpc::Origin& origin, const rpc::ArrivedCall& call) noexcept {
  Stripe* const own = stripe();
  if (own == nullptr) return;
  own->count(Travelled::InlineIn, call.inline_bytes);
  if (call.reads != 0) {
    own->count(Travelled::ReadChunk, call.read_bytes - call.position_zero_bytes);
    own->count(Travelled::ZeroChunk, call.position_zero_bytes);
    own->read_chunks.add(call.reads);
  }
  if (Connected* const connected = own->find(&origin))
    connected->bytes_in.add(call.inline_bytes + call.read_bytes);
}

void Statistics::on_reply_sent(const rpc::Origin& origin, const rpc::SentReply& reply) noexcept {
  Stripe* const own = stripe();
  if (own == nullptr) return;
  own->count(Travelled::InlineOut, reply.inline_bytes);
  if (reply.writes != 0) {
    own->count(Travelled::WriteChunk, reply.write_chunk_bytes);
    own->count(Travelled::ReplyChunk, reply.reply_chunk_bytes);
    own->writes.add(reply.writes);
  }
  if (Connected* const connected = own->find(&origin)) connected->credits.set(reply.credits);
}

TimePoint Statistics::on_operation(const nfs::nfs4::EndedOperation& operation) noexcept {
  Stripe* const own = stripe();
  if (own == nullptr) return operation.began;
  const std::size_t slot = operation_slot(operation.number);
  own->operations[slot].add();
  if (operation.status != 0) own->errors.add(error_key(true, slot, operation.status));
  if (!operation.on_filehandle) return operation.began;
  const TimePoint now = clock_();
  const Duration took = std::max(now - operation.began, Duration::zero());
  own->operation_times[slot].add(took);
  if (operation.at == nullptr) return now;
  const std::size_t at = export_slot(operation.at->id);
  own->exports[at].add(took);
  own->count(at, moved_by(operation));
  return now;
}

StatisticsSums Statistics::sums() const {
  StatisticsSums sums;
  std::map<std::uint64_t, std::uint64_t> errors;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < kTransports; ++i) {
    sums.disconnected[i] = closed_without_[i].load(std::memory_order_acquire);
    for (const std::unique_ptr<Stripe>& each : stripes_)
      sums.disconnected[i] += each->closed[i].value_first();
    sums.connected[i] = opened_without_[i].load(std::memory_order_relaxed);
  }
  for (const std::unique_ptr<Stripe>& each : stripes_) {
    const auto add = [](auto& to, const auto& from) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i].value();
    };
    for (std::size_t i = 0; i < sums.calls.size(); ++i) each->calls[i].add_to(sums.calls[i]);
    for (std::size_t i = 0; i < sums.exports.size(); ++i) each->exports[i].add_to(sums.exports[i]);
    for (std::size_t i = 0; i < sums.operation_times.size(); ++i)
      each->operation_times[i].add_to(sums.operation_times[i]);
    add(sums.operations, each->operations);
    add(sums.bytes, each->bytes);
    add(sums.connected, each->opened);
    sums.read_chunks += each->read_chunks.value();
    sums.writes += each->writes.value();
    sums.uncounted_call_errors += each->errors.calls_left_out();
    sums.uncounted_operation_errors += each->errors.operations_left_out();
    each->errors.for_each([&](std::uint64_t key, std::uint64_t count) { errors[key] += count; });
  }
  for (std::size_t i = 0; i < sums.moved.size(); ++i) sums.moved[i] = moved_in(i);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    sums.exports[i].subtract(slots_[i].before);
    sums.moved[i].read -= slots_[i].moved_before.read;
    sums.moved[i].written -= slots_[i].moved_before.written;
    sums.export_paths.push_back(slots_[i].path);
  }
  for (const auto& [key, count] : errors)
    sums.errors.push_back({.operation = is_of_operation(key),
                           .slot = static_cast<std::size_t>(key >> 32 & 0x7fffffff),
                           .status = static_cast<std::uint32_t>(key),
                           .count = count});
  return sums;
}

std::vector<ConnectionRow> Statistics::connections() const {
  std::vector<ConnectionRow> rows;
  const TimePoint now = clock_();
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Stripe>& each : stripes_) {
    const std::lock_guard listed(each->mutex);
    for (const auto& [origin, connected] : each->connected) {
      const TimePoint last{Duration(static_cast<Duration::rep>(connected.last.value()))};
      rows.push_back({.number = connected.number,
                      .address = connected.address,
                      .port = connected.port,
                      .transport = connected.transport,
                      .age = std::max(now - connected.since, Duration::zero()),
                      .idle = std::max(now - last, Duration::zero()),
                      .calls = connected.calls.value(),
                      .errors = connected.errors.value(),
                      .bytes_in = connected.bytes_in.value(),
                      .bytes_out = connected.bytes_out.value(),
                      .credits = static_cast<std::uint32_t>(connected.credits.value())});
    }
  }
  return rows;
}

std::string Statistics::name_of(const void* origin) const {
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Stripe>& each : stripes_) {
    const std::lock_guard listed(each->mutex);
    const auto found = each->connected.find(static_cast<const rpc::Origin*>(origin));
    if (found == each->connected.end()) continue;
    const Connected& connected = found->second;
    return fmt::format("{} {}", name_of_transport(connected.transport),
                       to_string(Address{connected.address, connected.port}));
  }
  return {};
}

MovedBytes Statistics::moved_in(std::size_t slot) const {
  MovedBytes moved;
  for (const std::unique_ptr<Stripe>& each : stripes_) {
    moved.read += each->read[slot].value();
    moved.written += each->written[slot].value();
  }
  return moved;
}

// The longest gone goes: it is the least likely to come back.
std::size_t Statistics::slot_for(const std::string& path) {
  const auto found = std::ranges::find(slots_, path, &ExportSlot::path);
  if (found != slots_.end()) return static_cast<std::size_t>(found - slots_.begin());
  if (slots_.size() < kExportSlots) {
    slots_.push_back({.path = path});
    return slots_.size() - 1;
  }
  std::size_t at = kExportSlots;
  for (std::size_t i = 0; i < kExportSlots; ++i)
    if (slots_[i].gone != 0 && (at == kExportSlots || slots_[i].gone < slots_[at].gone)) at = i;
  if (at == kExportSlots) return at;
  slots_[at] = {.path = path, .moved_before = moved_in(at)};
  for (const std::unique_ptr<Stripe>& each : stripes_) each->exports[at].add_to(slots_[at].before);
  return at;
}

void Statistics::know(const std::vector<KnownExport>& exports) {
  const std::lock_guard lock(mutex_);
  ++looks_;
  for (ExportSlot& slot : slots_)
    if (slot.gone == 0 && std::ranges::count(exports, slot.path, &KnownExport::path) == 0)
      slot.gone = looks_;
  for (const KnownExport& each : exports) {
    const std::size_t at = slot_for(each.path);
    if (at == kExportSlots) continue;
    slots_[at].gone = 0;
    // Another path may have had it until now.
    for (std::atomic<std::uint64_t>& id : export_ids_)
      if (id.load(std::memory_order_relaxed) == each.id)
        id.store(kNoExport, std::memory_order_relaxed);
    export_ids_[at].store(each.id, std::memory_order_relaxed);
    exports_.store(slots_.size(), std::memory_order_release);
  }
}

}  // namespace stag::cli
