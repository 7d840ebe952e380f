#include "cli/observe/metrics.h"

#include <limits>
#include <set>
#include <string>
#include <utility>

#include "base/reason.h"
#include "cli/support/commit.h"
#include "cli/support/escape.h"
#include "cli/support/event.h"
#include "fabric/registrations.h"

namespace stag::cli {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using MetricLabels = std::vector<ClientMetric::Label>;

double in_seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

// Families as they are added to.
class MetricFamilies {
 public:
  void begin(std::string name, std::string help, MetricType type) {
    made_.push_back({std::move(name), std::move(help), type, {}});
  }
  void counter(MetricLabels labels, double value) { add(std::move(labels)).counter.value = value; }
  void counter(MetricLabels labels, std::uint64_t value) {
    counter(std::move(labels), static_cast<double>(value));
  }
  void gauge(MetricLabels labels, double value) { add(std::move(labels)).gauge.value = value; }
  void gauge(MetricLabels labels, std::uint64_t value) {
    gauge(std::move(labels), static_cast<double>(value));
  }
  void histogram(MetricLabels labels, const HistogramSum& sum) {
    ClientMetric::Histogram& to = add(std::move(labels)).histogram;
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < kBuckets.size(); ++i) {
      below += sum.buckets[i];
      to.bucket.push_back({below, in_seconds(kBuckets[i])});
    }
    to.sample_count = below + sum.buckets.back();
    to.bucket.push_back({to.sample_count, std::numeric_limits<double>::infinity()});
    to.sample_sum = static_cast<double>(sum.nanoseconds) / 1e9;
  }
  // A gauge without labels.
  void single(std::string name, std::string help, double value) {
    begin(std::move(name), std::move(help), MetricType::Gauge);
    gauge({}, value);
  }
  std::vector<MetricFamily> finish() && { return std::move(made_); }

 private:
  ClientMetric& add(MetricLabels labels) {
    // Paths of exports may be any bytes; Prometheus refuses the whole scrape for one such label.
    for (ClientMetric::Label& each : labels) each.value = as_utf8(each.value);
    ClientMetric& made = made_.back().metric.emplace_back();
    made.label = std::move(labels);
    return made;
  }
  std::vector<MetricFamily> made_;
};

MetricLabels procedure_labels(std::size_t slot) {
  const ProcedureName name = name_of_procedure(slot);
  return {{"program", std::string(name.program)},
          {"version", std::to_string(name.version)},
          {"procedure", std::string(name.procedure)}};
}

MetricLabels with_label(MetricLabels labels, std::string name, std::string value) {
  labels.push_back({std::move(name), std::move(value)});
  return labels;
}

MetricLabels operation_labels(std::size_t slot) {
  return {{"operation", std::string(name_of_operation(slot))}};
}

// Procedures that nobody has called have no series: most servers never see most of them.
void add_calls(MetricFamilies& to, const StatisticsSums& sums) {
  to.begin("stag_calls_total", "RPC calls that ended, by procedure.", MetricType::Counter);
  for (std::size_t i = 0; i < sums.calls.size(); ++i)
    if (const std::uint64_t count = sums.calls[i].count()) to.counter(procedure_labels(i), count);
  to.begin("stag_call_errors_total",
           "RPC calls that ended with a status other than success, by procedure and status.",
           MetricType::Counter);
  for (const StatisticsSums::Error& error : sums.errors)
    if (!error.operation)
      to.counter(with_label(procedure_labels(error.slot), "status",
                            name_of_status(error.slot, error.status)),
                 error.count);
  to.begin("stag_call_duration_seconds",
           "Time from the arrival of an RPC call to the end of its execution.",
           MetricType::Histogram);
  for (std::size_t i = 0; i < sums.calls.size(); ++i)
    if (sums.calls[i].count() != 0) to.histogram(procedure_labels(i), sums.calls[i]);
}

void add_operations(MetricFamilies& to, const StatisticsSums& sums) {
  to.begin("stag_nfs4_operations_total", "Operations of NFSv4 COMPOUNDs that ended.",
           MetricType::Counter);
  for (std::size_t i = 0; i < sums.operations.size(); ++i)
    if (sums.operations[i] != 0) to.counter(operation_labels(i), sums.operations[i]);
  to.begin("stag_nfs4_operation_errors_total",
           "Operations of NFSv4 that ended with a status other than NFS4_OK.", MetricType::Counter);
  for (const StatisticsSums::Error& error : sums.errors)
    if (error.operation)
      to.counter(
          with_label(operation_labels(error.slot), "status", name_of_nfs4_status(error.status)),
          error.count);
  to.begin("stag_nfs4_operation_duration_seconds",
           "Time of the operations of NFSv4 that work on a filehandle.", MetricType::Histogram);
  for (std::size_t i = 0; i < sums.operation_times.size(); ++i)
    if (sums.operation_times[i].count() != 0)
      to.histogram(operation_labels(i), sums.operation_times[i]);
}

void add_exports(MetricFamilies& to, const StatisticsSums& sums) {
  to.begin("stag_export_call_duration_seconds",
           "Time of calls of NFSv2 and NFSv3, and of operations of NFSv4, by export.",
           MetricType::Histogram);
  for (std::size_t i = 0; i < sums.export_paths.size(); ++i)
    to.histogram({{"export", sums.export_paths[i]}}, sums.exports[i]);
  if (sums.exports[kExportSlots].count() != 0)
    to.histogram({{"export", "other"}}, sums.exports[kExportSlots]);
}

void add_moved(MetricFamilies& to, const StatisticsSums& sums, std::uint64_t MovedBytes::*bytes) {
  for (std::size_t i = 0; i < sums.export_paths.size(); ++i)
    to.counter({{"export", sums.export_paths[i]}}, sums.moved[i].*bytes);
  if (sums.moved[kExportSlots].*bytes != 0)
    to.counter({{"export", "other"}}, sums.moved[kExportSlots].*bytes);
}

void add_moved(MetricFamilies& to, const StatisticsSums& sums) {
  to.begin("stag_export_read_bytes_total", "Bytes of files that clients have read, by export.",
           MetricType::Counter);
  add_moved(to, sums, &MovedBytes::read);
  to.begin("stag_export_written_bytes_total",
           "Bytes of files that clients have written, by export.", MetricType::Counter);
  add_moved(to, sums, &MovedBytes::written);
}

void add_bytes(MetricFamilies& to, const StatisticsSums& sums) {
  const auto of = [&](Travelled how) { return sums.bytes[static_cast<std::size_t>(how)]; };
  const auto kind = [](std::string transport, std::string name) {
    return MetricLabels{{"transport", std::move(transport)}, {"kind", std::move(name)}};
  };
  to.begin("stag_received_bytes_total",
           "Bytes of RPC calls by how they came: inline, or by RDMA Read, as arguments or, from "
           "Position Zero, as whole calls.",
           MetricType::Counter);
  to.counter(kind("rdma", "inline"), of(Travelled::InlineIn));
  to.counter(kind("rdma", "read"), of(Travelled::ReadChunk));
  to.counter(kind("rdma", "position_zero_read"), of(Travelled::ZeroChunk));
  to.counter(kind("tcp", "record"), of(Travelled::TcpIn));
  to.counter(kind("udp", "datagram"), of(Travelled::UdpIn));
  to.begin("stag_sent_bytes_total",
           "Bytes of RPC replies by how they left: inline, to Write chunks or to Reply chunks.",
           MetricType::Counter);
  to.counter(kind("rdma", "inline"), of(Travelled::InlineOut));
  to.counter(kind("rdma", "write"), of(Travelled::WriteChunk));
  to.counter(kind("rdma", "reply"), of(Travelled::ReplyChunk));
  to.counter(kind("tcp", "record"), of(Travelled::TcpOut));
  to.counter(kind("udp", "datagram"), of(Travelled::UdpOut));
  to.begin("stag_rdma_read_chunks_total",
           "Arguments, or whole calls, that were fetched by RDMA Read into registered memory.",
           MetricType::Counter);
  to.counter({}, sums.read_chunks);
  to.begin("stag_rdma_writes_total", "RDMA Writes for Write chunks and Reply chunks.",
           MetricType::Counter);
  to.counter({}, sums.writes);
}

void add_registrations(MetricFamilies& to) {
  const std::pair<const char*, fabric::RegistrationCount::Counts> all[] = {
      {"iwarp", fabric::RegistrationCount::of_iwarp().counts()},
      {"verbs", fabric::RegistrationCount::of_verbs().counts()}};
  to.begin("stag_rdma_registered_ranges",
           "Ranges of memory that are registered: memory regions of RDMA devices, STags of "
           "software iWARP.",
           MetricType::Gauge);
  for (const auto& [name, counts] : all) to.gauge({{"fabric", name}}, counts.now);
  to.begin("stag_rdma_registrations_total", "Ranges of memory registered since the start.",
           MetricType::Counter);
  for (const auto& [name, counts] : all) to.counter({{"fabric", name}}, counts.made);
}

void add_connections(MetricFamilies& to, const Observation& observation,
                     const StatisticsSums& sums) {
  const auto transport = [](std::size_t i) {
    return MetricLabels{
        {"transport", std::string(name_of_transport(static_cast<rpc::TransportKind>(i)))}};
  };
  const auto has_connections = [](std::size_t i) {
    const auto kind = static_cast<rpc::TransportKind>(i);
    return kind == rpc::TransportKind::Tcp || kind == rpc::TransportKind::Rdma;
  };
  to.begin("stag_connections", "Connections of clients that are open.", MetricType::Gauge);
  for (std::size_t i = 0; i < kTransports; ++i)
    if (has_connections(i)) to.gauge(transport(i), sums.connected[i] - sums.disconnected[i]);
  to.begin("stag_connections_opened_total", "Connections of clients since the start.",
           MetricType::Counter);
  for (std::size_t i = 0; i < kTransports; ++i)
    if (has_connections(i)) to.counter(transport(i), sums.connected[i]);
  std::uint64_t credits = 0;
  std::set<std::string> addresses;
  for (const ConnectionRow& row : observation.statistics().connections()) {
    credits += row.credits;
    addresses.insert(row.address);
  }
  to.single("stag_client_addresses", "Addresses that have connections.",
            static_cast<double>(addresses.size()));
  to.single("stag_rdma_credits_granted",
            "Credits that the last reply on each RDMA connection granted, together.",
            static_cast<double>(credits));
}

void add_events(MetricFamilies& to, const Observation& observation, const StatisticsSums& sums) {
  to.begin("stag_events_total",
           "What the server logs, by the name of the line, whatever the log level.",
           MetricType::Counter);
  for (std::size_t i = 1; i < kReasonCount; ++i) {
    const auto reason = static_cast<Reason>(i);
    to.counter({{"reason", std::string(to_string(reason))}}, reason_counters().of(reason));
  }
  for (std::size_t i = 0; i < kEventCount; ++i) {
    const auto event = static_cast<Event>(i);
    to.counter({{"reason", std::string(info(event).name)}}, event_count(event));
  }
  to.begin("stag_slow_calls_total", "Calls and operations that took longer than --slow-call.",
           MetricType::Counter);
  to.counter({}, observation.events().slow_count());
  to.begin("stag_uncounted_errors_total",
           "Errors missing in the families of errors, because those have too many statuses.",
           MetricType::Counter);
  to.counter({}, sums.uncounted_call_errors + sums.uncounted_operation_errors);
}

void add_stores(MetricFamilies& to, const Gauges& gauges) {
  using Load = net::WorkerPool::Load;
  const auto each = [&](const char* name, const char* help, auto value) {
    to.begin(name, help, MetricType::Gauge);
    for (const StoreQueues& store : gauges.stores) {
      to.gauge({{"store", store.name}, {"queue", "plain"}}, value(store.plain));
      to.gauge({{"store", store.name}, {"queue", "sync"}}, value(store.syncing));
    }
  };
  each("stag_store_operations_waiting", "Operations that wait for a thread of the store.",
       [](const Load& load) { return static_cast<double>(load.waiting); });
  each("stag_store_operations_running", "Operations that the store is doing.",
       [](const Load& load) { return static_cast<double>(load.under_way); });
  each("stag_store_oldest_operation_seconds",
       "How long the oldest of these operations has taken so far.",
       [](const Load& load) { return in_seconds(load.oldest); });
}

void add_state(MetricFamilies& to, const Gauges& gauges) {
  to.begin("stag_nfs4_clients", "Clients of NFSv4, as `stag clients` lists them.",
           MetricType::Gauge);
  to.gauge({{"state", "confirmed"}}, gauges.confirmed);
  to.gauge({{"state", "unconfirmed"}}, gauges.unconfirmed);
  to.gauge({{"state", "courtesy"}}, gauges.courtesy);
  const auto single = [&](const char* name, const char* help, std::uint64_t value) {
    to.single(name, help, static_cast<double>(value));
  };
  single("stag_nfs4_sessions", "Sessions of clients of NFSv4.", gauges.sessions);
  single("stag_nfs4_opens", "Opens of NFSv4.", gauges.opens);
  single("stag_nfs4_locks", "Locked ranges of NFSv4.", gauges.locks);
  single("stag_nfs4_delegations", "Delegations that clients of NFSv4 hold.", gauges.delegations);
  to.single("stag_grace_remaining_seconds",
            "Time until the grace period ends, unless claims come in still then; 0: there is none.",
            in_seconds(gauges.grace_left));
  single("stag_grace_clients",
         "Clients of NFSv4 that have reclaimed something in this grace period, or the last.",
         gauges.grace.clients);
  single("stag_grace_reclaims",
         "Opens, locks and delegations reclaimed in this grace period, or the last.",
         gauges.grace.claims);
  single("stag_nlm_hosts", "Hosts with locks by NLM.", gauges.lock_hosts);
  single("stag_nlm_locks", "Locks by NLM.", gauges.nlm_locks);
  to.begin("stag_gss_contexts", "Security contexts of RPCSEC_GSS.", MetricType::Gauge);
  to.gauge({{"state", "established"}}, gauges.contexts);
  to.gauge({{"state", "half_open"}}, gauges.half_open_contexts);
}

// The names that the libraries of Prometheus have for every process.
void add_process(MetricFamilies& to, const ProcessUsage& process) {
  to.single("process_resident_memory_bytes", "Resident memory of the process.",
            static_cast<double>(process.memory_bytes));
  to.single("process_open_fds", "Open descriptors of the process.",
            static_cast<double>(process.open_files));
  to.single("process_max_fds", "How many descriptors the process may have open.",
            static_cast<double>(process.max_files));
  to.begin("process_cpu_seconds_total",
           "Processor time of all threads of the process, in the kernel, too.",
           MetricType::Counter);
  to.counter({}, in_seconds(process.processor_time));
  to.single("process_start_time_seconds", "When the process began, since 1970 (UTC).",
            in_seconds(process.began.time_since_epoch()));
}

void add_server(MetricFamilies& to, const Observation& observation, bool reload_succeeded) {
  to.begin("stag_build_info",
           "The version of the server, and the commit it was built from; always 1.",
           MetricType::Gauge);
  to.gauge({{"version", STAG_VERSION}, {"commit", std::string(commit())}}, std::uint64_t{1});
  to.single("stag_uptime_seconds", "Time since the start of the server.",
            in_seconds(observation.uptime()));
  to.single("stag_config_last_reload_successful",
            "Whether the configuration was taken on when it was last read; 1 also before that.",
            reload_succeeded ? 1 : 0);
  to.single("stag_config_settings_awaiting_restart",
            "Settings of the configuration that take effect when the server is started again.",
            static_cast<double>(observation.awaiting_restart().size()));
}

}  // namespace

std::vector<MetricFamily> to_metrics(const Observation& observation, const Gauges& gauges) {
  const StatisticsSums sums = observation.statistics().sums();
  MetricFamilies families;
  add_calls(families, sums);
  add_operations(families, sums);
  add_exports(families, sums);
  add_moved(families, sums);
  add_bytes(families, sums);
  add_registrations(families);
  add_connections(families, observation, sums);
  add_events(families, observation, sums);
  add_stores(families, gauges);
  add_state(families, gauges);
  add_server(families, observation, gauges.reload_succeeded);
  add_process(families, gauges.process);
  return std::move(families).finish();
}

}  // namespace stag::cli
