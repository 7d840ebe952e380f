#include "cli/serve/registration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "cli/support/local_file.h"
#include "cli/support/services.h"
#include "cli/support/text_file.h"
#include "nfs/export/state/durable_file.h"
#include "rpcbind/universal_address.h"

namespace stag::cli {
namespace {

using rpcbind::Registration;

// The address where the local rpcbind accepts registrations.
constexpr const char* kSocket = "/run/rpcbind.sock";
constexpr auto kPatience = std::chrono::seconds(5);

Address own_rpcbind() {
  std::error_code ignored;
  if (std::filesystem::exists(kSocket, ignored)) return {kSocket, 0};
  return {"127.0.0.1", rpcbind::kPort};
}

rpc::CallOptions patient() {
  rpc::CallOptions options;
  options.timeout = kPatience;
  return options;
}

std::string_view transport_name(rpc::TransportKind kind, std::string_view rdma_netid) {
  if (kind == rpc::TransportKind::Rdma) return rdma_netid;
  return kind == rpc::TransportKind::Udp ? rpcbind::kUdp : rpcbind::kTcp;
}

// Ranks a listener's address; a smaller rank is reachable by more hosts.
int reach(const Address& address) {
  if (address.host == "::" || address.host == "0.0.0.0") return 0;
  return address.host.starts_with("127.") || address.host == "::1" ? 2 : 1;
}

void add(std::vector<Registration>& all, const Registration& entry) {
  const auto in_the_way = [&](const Registration& there) {
    return there.program == entry.program && there.version == entry.version &&
           there.netid == entry.netid;
  };
  if (std::none_of(all.begin(), all.end(), in_the_way)) all.push_back(entry);
}

Task<void> unset(rpcbind::Registrar& registrar, bool& gone) {
  gone = co_await registrar.unset();
}

constexpr const char* kRecord = "rpcbind";

}  // namespace

Result<Ok, std::string> record_registrations(const std::string& state_directory,
                                             const std::vector<Registration>& registrations) {
  // What is recorded must outlive a disk that is full.
  const auto done = nfs::replace_file(state_directory, kRecord, rpcbind::to_text(registrations));
  if (!done) return Failure{done.error().message};
  return Ok{};
}

Result<std::vector<Registration>, std::string> recorded_registrations(
    const std::string& state_directory) {
  const std::string path = state_directory + "/" + kRecord;
  const std::optional<std::string> text = text_of_file(path);
  if (!text && errno != ENOENT) return Failure{local_trouble("read", path, errno)};
  return rpcbind::from_text(text.value_or(""));
}

std::vector<Registration> registrations_of(const rpc::Server& server,
                                           std::vector<ServedAt> listeners,
                                           std::string_view rdma_netid) {
  std::stable_sort(listeners.begin(), listeners.end(), [](const ServedAt& a, const ServedAt& b) {
    return reach(a.address) < reach(b.address);
  });
  std::vector<Registration> all;
  for (const rpc::Program* program : server.programs())
    for (const ServedAt& at : listeners) {
      if (!program->present_on(at.transport)) continue;
      const std::string_view name = transport_name(at.transport, rdma_netid);
      const auto add_at = [&](const Address& address) {
        add(all,
            {program->program(), program->version(),
             rpcbind::netid(name, rpcbind::is_ipv6(address.host)), rpcbind::to_universal(address)});
      };
      add_at(at.address);
      if (at.address.host == "::") add_at({"0.0.0.0", at.address.port});
    }
  return all;
}

RegisteredPrograms::RegisteredPrograms(endpoint::Client client, std::string record)
    : client_(std::move(client)),
      record_(std::move(record)),
      registrar_(client_.rpc().channel(), patient()) {}

Result<std::unique_ptr<RegisteredPrograms>, std::string> RegisteredPrograms::make(
    std::vector<Registration> wanted, const std::string& state_directory,
    std::shared_ptr<endpoint::Loops> loops) {
  endpoint::ConnectOptions options;
  options.connector.transport = endpoint::Transport::Tcp;
  options.connector.tcp.connect_timeout = kPatience;
  options.loops = std::move(loops);
  const Address at = own_rpcbind();
  Result<endpoint::Client, rpc::CallError> client = endpoint::connect(at, options);
  if (!client)
    return Failure{
        fmt::format("cannot register with rpcbind at {}: {}; start rpcbind, or leave "
                    "--rpcbind out and name the ports in URLs",
                    to_string(at), info(client.error().reason).text)};
  const auto recorded = recorded_registrations(state_directory);
  if (!recorded) return Failure{recorded.error()};
  const std::vector<Registration>& previous = *recorded;
  // Recorded before registering, so that a crash in between leaves no unrecorded entry.
  std::vector<Registration> both = previous;
  both.insert(both.end(), wanted.begin(), wanted.end());
  if (const auto written = record_registrations(state_directory, both); !written)
    return Failure{
        fmt::format("{}; is there room, and may the server write there?", written.error())};
  std::unique_ptr<RegisteredPrograms> made(
      new RegisteredPrograms(*std::move(client), state_directory + "/" + kRecord));
  const Result<Ok, std::string> done = endpoint::wait_on(
      made->client_.loop(), [&] { return made->registrar_.set(wanted, previous); });
  // Entries that could not be removed stay recorded.
  static_cast<void>(record_registrations(state_directory, done ? wanted : previous));
  if (!done) return Failure{done.error()};
  return made;
}

RegisteredPrograms::~RegisteredPrograms() {
  if (registrar_.registered().empty()) return;
  bool gone = false;
  endpoint::finish_on(client_.loop(), [&] { return unset(registrar_, gone); });
  if (gone) std::remove(record_.c_str());
}

std::vector<std::string> RegisteredPrograms::summary() const {
  std::vector<std::string> lines;
  const std::vector<Registration>& all = registrar_.registered();
  for (std::size_t i = 0; i < all.size();) {
    const Registration& first = all[i];
    const std::string_view name = program_name(first.program);
    std::string netids;
    for (; i < all.size() && all[i].program == first.program && all[i].version == first.version;
         ++i)
      netids += (netids.empty() ? "" : ", ") + all[i].netid;
    lines.push_back(fmt::format("{} {} ({})", name.empty() ? std::to_string(first.program) : name,
                                first.version, netids));
  }
  return lines;
}

}  // namespace stag::cli
