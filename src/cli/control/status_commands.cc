#include "cli/control/status_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/reason.h"
#include "cli/support/commit.h"
#include "cli/support/event.h"

namespace stag::cli {
namespace {

template <class Unit>
std::uint64_t whole(Duration time) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<Unit>(time).count());
}
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// What an operator has to know of: refusals because there is too much of something, of which what
// is too low may be raised, and behind these what is broken.
constexpr Reason kLimits[] = {Reason::TooManyConnections,
                              Reason::RpcTooManyConnections,
                              Reason::TooManyConnectionsOfPeer,
                              Reason::TooManyOpenFiles,
                              Reason::TooManyThreads,
                              Reason::OutOfMemory,
                              Reason::WorkersBusy,
                              Reason::VerbsMemlockTooLow,
                              Reason::VerbsDeviceFull,
                              Reason::RegistrationsExhausted,
                              Reason::RdmaChunkTooLarge,
                              Reason::RdmaChunksTooMany,
                              Reason::RdmaReadsStalled,
                              Reason::RpcNoRoom,
                              Reason::RpcTooManyCalls,
                              Reason::RpcPeerTooSlow,
                              Reason::PeerStalled,
                              Reason::PeerMessageUnfinished,
                              Reason::GssContextEvicted,
                              Reason::CallbacksTooMany,
                              Reason::LocksTooMany,
                              Reason::LockClientUnrecorded,
                              Reason::Nfs4ClientsTooMany,
                              Reason::Nfs4UnconfirmedEvicted,
                              Reason::Nfs4SessionsTooMany,
                              Reason::Nfs4SlotsReduced,
                              Reason::Nfs4CachesFull,
                              Reason::Nfs4OperationsTooMany,
                              Reason::Nfs4ReplyTooLongToKeep,
                              Reason::Nfs4StatesTooMany,
                              Reason::Nfs4DelegationsTooMany,
                              Reason::Nfs4CopiesTooMany,
                              Reason::Nfs4CopyNoticesTooMany,
                              Reason::Nfs4CourtesyEnded,
                              Reason::ControlTooManyConnections,
                              Reason::StoreHangs,
                              Reason::ClientRecordsUnwritten,
                              Reason::InodeTableUnwritten,
                              Reason::InodeTableSetAside,
                              Reason::FpduCrcWrong,
                              Reason::TaskFailed,
                              Reason::LoopFunctionFailed};
// The same of what is no Reason.
constexpr Event kTroubles[] = {Event::ExportFolderClosed, Event::ExportFilesUnserved,
                               Event::ExportClientUnknown, Event::LogLinesLost};

std::uint64_t sum_of(const std::array<std::uint64_t, kTransports>& counts) {
  std::uint64_t sum = 0;
  for (const std::uint64_t each : counts) sum += each;
  return sum;
}

Json row_of(const ConnectionRow& from) {
  Json row;
  row.set("number", from.number)
      .set("address", from.address)
      .set("port", std::uint64_t{from.port})
      .set("transport", name_of_transport(from.transport))
      .set("age", whole<seconds>(from.age))
      .set("idle", whole<seconds>(from.idle))
      .set("calls", from.calls)
      .set("errors", from.errors)
      .set_quantity("bytes_in", from.bytes_in)
      .set_quantity("bytes_out", from.bytes_out);
  if (from.transport == rpc::TransportKind::Rdma) row.set("credits", std::uint64_t{from.credits});
  return row;
}

Json row_of(std::string_view program, std::uint32_t version, std::string_view procedure,
            std::uint64_t calls, const HistogramSum& times) {
  Json row;
  row.set("program", program)
      .set("version", std::uint64_t{version})
      .set("procedure", procedure)
      .set("calls", calls)
      .set("timed", times.count())
      .set_quantity("microseconds", times.nanoseconds / 1000);
  return row;
}

Json row_of(const SlowCall& from) {
  Json row;
  row.set("ended", static_cast<std::uint64_t>(from.ended))
      .set("client", from.client)
      .set("netid", from.netid)
      .set("xid", fmt::format("{:#010x}", from.xid))
      .set("call", from.what)
      .set_bytes("export", from.export_path)
      .set("status", from.status)
      .set("microseconds", whole<microseconds>(from.took));
  return row;
}

Task<std::string> no_error() {
  co_return std::string();
}

}  // namespace

void StatusCommands::status(ControlReply& reply) const {
  const StatisticsSums sums = observation_.statistics().sums();
  const Gauges gauges = take_gauges(sources_, reply.loop().now());
  std::uint64_t calls = 0, errors = sums.uncounted_call_errors;
  for (const HistogramSum& each : sums.calls) calls += each.count();
  for (const StatisticsSums::Error& each : sums.errors)
    if (!each.operation) errors += each.count;
  std::set<std::string> addresses;
  for (const ConnectionRow& row : observation_.statistics().connections())
    addresses.insert(row.address);
  Json awaiting = Json::array();
  for (const std::string& setting : observation_.awaiting_restart()) awaiting.add(setting);
  Json row;
  row.set("version", std::string_view(STAG_VERSION))
      .set("commit", commit())
      .set("settings_awaiting_restart", std::move(awaiting))
      .set("last_reload_error", observation_.reload_error())
      .set("uptime", whole<seconds>(observation_.uptime()))
      .set("calls", calls)
      .set("errors", errors)
      .set("slow_calls", observation_.events().slow_count())
      .set("slow_call_microseconds", whole<microseconds>(observation_.events().slow()))
      .set("connections", sum_of(sums.connected) - sum_of(sums.disconnected))
      .set("addresses", static_cast<std::uint64_t>(addresses.size()))
      .set("mounts", static_cast<std::uint64_t>(sources_.nfs.mounts().size()))
      .set("nfs4_clients", gauges.confirmed + gauges.courtesy)
      .set("sessions", gauges.sessions)
      .set("opens", gauges.opens)
      .set("locks", gauges.locks + gauges.nlm_locks)
      .set("delegations", gauges.delegations)
      .set("gss_contexts", gauges.contexts)
      .set("grace_seconds",
           static_cast<std::uint64_t>(std::chrono::ceil<seconds>(gauges.grace_left).count()))
      .set("grace_clients", gauges.grace.clients)
      .set("grace_reclaims", gauges.grace.claims)
      .set("grace_awaited", static_cast<std::uint64_t>(sources_.clients.count_awaited()))
      .set_quantity("memory_bytes", gauges.process.memory_bytes)
      .set("open_files", gauges.process.open_files);
  reply.add(row);
}

void StatusCommands::list_connections(ControlReply& reply) const {
  for (const ConnectionRow& row : observation_.statistics().connections()) reply.add(row_of(row));
}

void StatusCommands::list_procedures(ControlReply& reply) const {
  const StatisticsSums sums = observation_.statistics().sums();
  for (std::size_t i = 0; i < sums.calls.size(); ++i) {
    const ProcedureName name = name_of_procedure(i);
    if (const std::uint64_t calls = sums.calls[i].count())
      reply.add(row_of(name.program, name.version, name.procedure, calls, sums.calls[i]));
  }
  for (std::size_t i = 0; i < sums.operations.size(); ++i)
    if (sums.operations[i] != 0)
      reply.add(row_of("nfs operation", 4, name_of_operation(i), sums.operations[i],
                       sums.operation_times[i]));
}

// An export in memory has no threads that wait for it, and so no row. State directories have one.
void StatusCommands::list_stores(ControlReply& reply) const {
  for (const StoreQueues& store : sources_.stores(reply.loop().now())) {
    Json row;
    row.set_bytes("store", store.name)
        .set("waiting", std::uint64_t{store.plain.waiting})
        .set("running", std::uint64_t{store.plain.under_way})
        .set("sync_waiting", std::uint64_t{store.syncing.waiting})
        .set("sync_running", std::uint64_t{store.syncing.under_way})
        .set("oldest_milliseconds",
             whole<milliseconds>(std::max(store.plain.oldest, store.syncing.oldest)));
    reply.add(row);
  }
}

void StatusCommands::list_mounts(ControlReply& reply) const {
  for (const auto& [host, path] : sources_.nfs.mounts()) {
    Json row;
    row.set("address", host).set_bytes("export", path);
    reply.add(row);
  }
}

void StatusCommands::list_slow(ControlReply& reply) const {
  for (const SlowCall& call : observation_.events().slow_calls()) reply.add(row_of(call));
}

void StatusCommands::list_limits(ControlReply& reply) const {
  const auto list = [&reply](const ReasonInfo& what, std::uint64_t count) {
    if (count == 0) return;
    Json row;
    row.set("reason", what.name).set("count", count).set("text", what.text);
    reply.add(row);
  };
  for (const Reason reason : kLimits) list(info(reason), reason_counters().of(reason));
  for (const Event event : kTroubles) list(info(event), event_count(event));
}

void StatusCommands::add_to(ControlCommands& commands) const {
  using List = void (StatusCommands::*)(ControlReply&) const;
  static constexpr std::pair<const char*, List> kCommands[] = {
      {"status", &StatusCommands::status},
      {"connections", &StatusCommands::list_connections},
      {"procedures", &StatusCommands::list_procedures},
      {"stores", &StatusCommands::list_stores},
      {"mounts", &StatusCommands::list_mounts},
      {"slow", &StatusCommands::list_slow},
      {"limits", &StatusCommands::list_limits}};
  for (const auto& [name, list] : kCommands)
    commands[name] = [this, list = list](const ControlRequest&, ControlReply& reply,
                                         const ControlPeer&) {
      (this->*list)(reply);
      return no_error();
    };
}

}  // namespace stag::cli
