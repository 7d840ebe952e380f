#include "cli/observe/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <string_view>
#include <utility>

#include "nfs/export/exports.h"
#include "nfs/proto/nfs4.h"
#include "rpc/program.h"

namespace stag::cli {
namespace {

constexpr std::uint32_t kMnt = 1, kUmnt = 3, kUmntAll = 4;

std::string peer_text(const rpc::Origin& origin) {
  return fmt::format("{} {}", origin.netid, to_string(origin.peer));
}

std::string call_text(std::size_t slot) {
  const ProcedureName name = name_of_procedure(slot);
  return fmt::format("{} {} {}", name.program, name.version, name.procedure);
}

std::int64_t microseconds(Duration time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

// The path that MNT and UMNT have as their argument; empty where that cannot be read.
std::string mounted_path(const rpc::EndedCall& call) {
  const Bytes arguments = arguments_of(call);
  if (arguments.size() < 4) return {};
  const std::size_t length = load_be<std::uint32_t>(arguments.data());
  if (length > arguments.size() - 4) return {};
  return std::string(text_of(arguments.subspan(4, length)));
}

void log_mounts(const rpc::EndedCall& call) {
  const std::uint32_t procedure = call.header->procedure;
  const std::string by = peer_text(*call.call.origin);
  const std::string xid = fmt::format("xid {:#010x}", call.header->xid);
  const std::string path = mounted_path(call);
  const std::string what = path.empty() ? xid : fmt::format("{}, {}", path, xid);
  if (procedure == kMnt)
    log_event(Event::ExportMounted, by, what);
  else if (procedure == kUmnt)
    log_event(Event::ExportUnmounted, by, what);
  else if (procedure == kUmntAll)
    log_event(Event::ExportUnmounted, by, fmt::format("all, {}", xid));
}

void log_sessions(const nfs::nfs4::EndedOperation& operation) {
  const auto log = [&](Event event) {
    log_event(event, peer_text(operation.call.origin()),
              fmt::format("{}, xid {:#010x}", name_of_operation(operation_slot(operation.number)),
                          operation.call.header().xid));
  };
  switch (operation.number) {
    case nfs::v4::OP_CREATE_SESSION:
    case nfs::v4::OP_SETCLIENTID_CONFIRM:
      return log(Event::SessionMade);
    case nfs::v4::OP_DESTROY_SESSION:
      return log(Event::SessionEnded);
    default:
      return;
  }
}

void log_step(const rpc::Origin& origin, std::uint32_t xid, std::string_view what) {
  log_event(Event::CallTraced, peer_text(origin), fmt::format("xid {:#010x} {}", xid, what));
}

std::string_view transport_text(const rpc::Origin& origin) {
  return origin.transport == rpc::TransportKind::Udp ? "UDP" : "TCP";
}

// Empty: no worker was asked.
std::string store_text(const WorkerTime& time) {
  if (time.jobs + time.refused == 0) return {};
  return fmt::format("; store: {} jobs waited {} us for workers and took {} us{}", time.jobs,
                     microseconds(time.waited), microseconds(time.worked),
                     time.refused == 0 ? "" : fmt::format(", {} were refused", time.refused));
}

// Of the operation that has ended; what comes is of the next.
std::string taken_store_text(WorkerTime* time) {
  return time == nullptr ? std::string() : store_text(std::exchange(*time, {}));
}

}  // namespace

bool Events::changes_sessions(std::uint32_t operation) {
  return operation == nfs::v4::OP_CREATE_SESSION || operation == nfs::v4::OP_DESTROY_SESSION ||
         operation == nfs::v4::OP_SETCLIENTID_CONFIRM;
}

void Events::change(EventOptions options) {
  const std::lock_guard lock(mutex_);
  traced_ = std::move(options.traced);
  traces_.store(!traced_.empty(), std::memory_order_relaxed);
  slow_.store(options.slow.count(), std::memory_order_relaxed);
}

bool Events::is_traced(const rpc::Origin& origin) const {
  if (!traces()) return false;
  const std::lock_guard lock(mutex_);
  // An empty list allows everybody (is_allowed()), and follows nobody.
  return !traced_.empty() && is_allowed(traced_, origin.peer.host);
}

void Events::on_connected(const rpc::Origin& origin) const {
  log_event(Event::ClientConnected, peer_text(origin),
            fmt::format("at {}", to_string(origin.local)));
}

void Events::on_disconnected(const rpc::Origin& origin, Reason reason) const {
  log_event(Event::ClientDisconnected, peer_text(origin), info(reason).text);
}

void Events::on_call_arrived(const rpc::Origin& origin, const rpc::ArrivedCall& call) const {
  if (!is_traced(origin)) return;
  log_step(origin, call.xid,
           fmt::format("arrived: {} bytes inline, {} by {} RDMA Reads", call.inline_bytes,
                       call.read_bytes, call.reads));
}

void Events::on_whole_call(const rpc::Origin& origin, const rpc::WholeCall& call) const {
  if (!is_traced(origin)) return;
  log_step(origin, call.xid,
           fmt::format("arrived: {} bytes by {}", call.bytes, transport_text(origin)));
}

void Events::on_call_begun(const rpc::BegunCall& call) const {
  if (!is_traced(*call.call.origin)) return;
  const oncrpc::CallHeader& header = call.header;
  log_step(
      *call.call.origin, header.xid,
      fmt::format("begins: program {} version {} procedure {}, flavor {}, {} bytes", header.program,
                  header.version, header.procedure,
                  static_cast<std::uint32_t>(header.credential.flavor), call.call.payload.size()));
}

void Events::on_call_ended(const rpc::EndedCall& call, const Statistics::Ended& ended,
                           const ExportPaths& path_of) {
  if (!call.header) return;
  if (call.header->program == kMount && ended.slot != 0 && ended.status == kDone) log_mounts(call);
  const bool slow = is_slow(ended.took);
  const rpc::Origin& origin = *call.call.origin;
  if (!slow && !is_traced(origin)) return;
  const std::string status = name_of_status(ended.slot, ended.status);
  if (is_traced(origin))
    log_step(origin, call.header->xid,
             fmt::format("ends: {} {} after {} us, {} bytes{}", call_text(ended.slot), status,
                         microseconds(ended.took), call.reply_bytes,
                         call.worker_time ? store_text(*call.worker_time) : ""));
  if (slow)
    remember(origin, {.xid = call.header->xid,
                      .what = call_text(ended.slot),
                      .export_path = path_of && ended.export_id ? path_of(*ended.export_id) : "",
                      .status = status,
                      .took = ended.took});
}

void Events::on_reply_sent(const rpc::Origin& origin, const rpc::SentReply& reply) const {
  if (!is_traced(origin)) return;
  log_step(origin, reply.xid,
           fmt::format("answered: {} bytes inline, {} to Write chunks, {} to the Reply chunk by {} "
                       "RDMA Writes, {} credits",
                       reply.inline_bytes, reply.write_chunk_bytes, reply.reply_chunk_bytes,
                       reply.writes, reply.credits));
}

void Events::on_whole_reply(const rpc::Origin& origin, const rpc::WholeReply& reply) const {
  if (!is_traced(origin)) return;
  if (reply.sent)
    return log_step(origin, reply.xid, fmt::format("answered: {} bytes", reply.bytes));
  log_step(origin, reply.xid,
           fmt::format("not answered: {}, {} bytes",
                       origin.transport == rpc::TransportKind::Udp ? "the datagram did not leave"
                                                                   : "the connection ended first",
                       reply.bytes));
}

void Events::on_operation(const nfs::nfs4::EndedOperation& operation, Duration took) {
  if (operation.status == 0) log_sessions(operation);
  const rpc::Origin& origin = operation.call.origin();
  const bool slow = is_slow(took);
  if (!slow && !is_traced(origin)) return;
  const std::string_view name = name_of_operation(operation_slot(operation.number));
  const std::string status = name_of_nfs4_status(operation.status);
  const std::string path = operation.at == nullptr ? "" : operation.at->path();
  const std::uint32_t xid = operation.call.header().xid;
  if (is_traced(origin))
    log_step(
        origin, xid,
        fmt::format("operation {} {}{}{}{}{}", name, status, path.empty() ? "" : " in ", path,
                    operation.on_filehandle ? fmt::format(" after {} us", microseconds(took)) : "",
                    taken_store_text(operation.call.worker_time())));
  if (slow)
    remember(origin, {.xid = xid,
                      .what = fmt::format("nfs 4 {}", name),
                      .export_path = path,
                      .status = status,
                      .took = took});
}

void Events::remember(const rpc::Origin& origin, SlowCall call) {
  call.ended = std::time(nullptr);
  call.client = to_string(origin.peer);
  call.address = origin.peer.host;
  call.netid = origin.netid;
  slow_count_.fetch_add(1, std::memory_order_relaxed);
  log_event(Event::CallSlow, peer_text(origin),
            fmt::format("xid {:#010x}, {}{}{}, {}, {:.3f} s", call.xid, call.what,
                        call.export_path.empty() ? "" : " in ", call.export_path, call.status,
                        std::chrono::duration<double>(call.took).count()));
  const std::lock_guard lock(mutex_);
  slow_calls_.push_front(std::move(call));
  if (slow_calls_.size() <= kRemembered) return;
  std::map<std::string_view, std::size_t> counts;
  for (const SlowCall& each : slow_calls_) ++counts[each.address];
  // The last of those that have most, in a list whose latest is the first.
  auto goes = slow_calls_.begin();
  for (auto at = goes; at != slow_calls_.end(); ++at)
    if (counts[at->address] >= counts[goes->address]) goes = at;
  slow_calls_.erase(goes);
}

std::vector<SlowCall> Events::slow_calls() const {
  const std::lock_guard lock(mutex_);
  return {slow_calls_.begin(), slow_calls_.end()};
}

}  // namespace stag::cli
