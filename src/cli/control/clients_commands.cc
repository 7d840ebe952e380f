#include "cli/control/clients_commands.h"

#include <fmt/format.h>

#include <coroutine>
#include <limits>

#include "base/reason.h"
#include "cli/control/hosts_commands.h"
#include "cli/control/removed_exports.h"
#include "cli/support/escape.h"
#include "cli/support/log.h"

namespace stag::cli {
namespace {

using nfs::nfs4::Administration;
using nfs::nfs4::EndedByAdmin;
using nfs::nfs4::ListedClient;
using nfs::state::Life;
using nfs::state::Range;
using nfs::state::StateInfo;
using Type = StateInfo::Type;

constexpr std::string_view kNotAdministrator =
    "only root and the user of the server may change anything";
constexpr std::string_view kWhichClient =
    "\"client\" is the number of a client, as a string, or the ADDRESS/NAME of a host";

std::string hex(Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

std::string_view phase_of(const nfs::state::ClientInfo& info) {
  if (!info.confirmed) return "unconfirmed";
  if (info.phase == Life::Phase::Active) return "confirmed";
  return info.phase == Life::Phase::Lapsed ? "courtesy" : "ended";
}

// Without what tells clients of version 4.0 from others.
std::string_view without_mark(std::string_view owner) {
  if (owner.starts_with(nfs::state::kOwnerWithoutSessions))
    owner.remove_prefix(nfs::state::kOwnerWithoutSessions.size());
  return owner;
}
std::string_view name_of(const nfs::state::ClientInfo& info) {
  return info.minor == 0 ? without_mark(info.co_ownerid) : std::string_view(info.co_ownerid);
}

Json to_json(const ListedClient& client, Duration lease) {
  const auto seconds = [](Duration time) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::seconds>(std::max(time, Duration())).count());
  };
  const nfs::state::ClientInfo& info = client.info;
  Json json;
  json.set_identifier("client", info.clientid)
      .set("address", info.address)
      .set_bytes("name", name_of(info))
      .set_bytes("principal", info.principal)
      .set("version", fmt::format("4.{}", info.minor))
      .set("state", phase_of(info))
      .set("idle", seconds(info.idle))
      .set("lease", seconds(lease))
      .set("opens", std::uint64_t{client.held.opens})
      .set("locks", std::uint64_t{client.held.locks})
      .set("delegations", std::uint64_t{client.held.delegations})
      .set("revoked", std::uint64_t{info.revoked})
      .set("sessions", std::uint64_t{info.sessions})
      .set("callbacks", client.callbacks);
  return json;
}

std::string share_text(std::uint32_t bits) {
  return fmt::format("{}{}", (bits & nfs::state::kShareRead) != 0 ? 'r' : '-',
                     (bits & nfs::state::kShareWrite) != 0 ? 'w' : '-');
}

std::string_view access_text(bool writes) {
  return writes ? "write" : "read";
}

// What all types have.
Json begin_row(const StateInfo& state, const Administration& clients) {
  Json json;
  json.set_identifier("client", state.clientid).set("stateid", stateid_text(state.stateid));
  set_export(json, clients, state.file);
  json.set("file", hex(state.file.handle.bytes()));
  if (state.revoked != nfs::state::Status::Ok) json.set("revoked", true);
  return json;
}

void add_locks(const StateInfo& state, const Administration& clients, ControlReply& reply) {
  if (state.revoked != nfs::state::Status::Ok) reply.add(begin_row(state, clients));
  for (const auto& [range, exclusive] : state.ranges) {
    Json json = begin_row(state, clients);
    json.set("mode", access_text(exclusive)).set_quantity("first", range.first);
    // Without it the lock is to the end of the file, however that grows.
    if (range.last != std::numeric_limits<std::uint64_t>::max())
      json.set_quantity("last", range.last);
    json.set_bytes("owner", state.owner);
    reply.add(json);
  }
}

void add_rows(const StateInfo& state, const Administration& clients, ControlReply& reply) {
  if (state.type == Type::Lock) return add_locks(state, clients, reply);
  Json json = begin_row(state, clients);
  if (state.type == Type::Open) {
    json.set("access", share_text(state.share_access))
        .set("deny", share_text(state.share_deny))
        .set_bytes("owner", state.owner);
  } else {
    const bool reads = state.delegation_type == nfs::state::DelegationType::Read;
    json.set("mode", access_text(!reads)).set("recalled", state.recalled);
  }
  reply.add(json);
}

// co_await ended(clients, id, loop): as Administration::expire(), and back on the loop.
auto ended(Administration& clients, nfs::state::ClientId id, Loop& loop) {
  struct Awaiter {
    Administration& clients;
    nfs::state::ClientId id;
    Loop& loop;
    EndedByAdmin result = EndedByAdmin::Busy;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) {
      clients.expire(id, loop.now(), [this, waiter](EndedByAdmin outcome) {
        result = outcome;
        loop.post([waiter] { waiter.resume(); });
      });
    }
    EndedByAdmin await_resume() const { return result; }
  };
  return Awaiter{clients, id, loop};
}

std::string sentence_of(EndedByAdmin outcome, nfs::state::ClientId id) {
  switch (outcome) {
    case EndedByAdmin::Yes:
      return "";
    case EndedByAdmin::Unknown:
      return fmt::format("there is no client {}", id);
    case EndedByAdmin::Busy:
      return fmt::format("client {} is being ended already, or too many are; try again", id);
    case EndedByAdmin::Failed:
      break;
  }
  return fmt::format(
      "client {} stays: its record in the state directory cannot be removed, and it could claim "
      "everything again after a restart",
      id);
}

// The clients that a request means: a client of version 4, a host with locks by NLM, or (neither)
// all.
struct Meant {
  std::optional<nfs::state::ClientId> client{};
  std::optional<nfs::lock::Client> host{};
  bool all() const { return !client && !host; }
};

// The host of that name, else the one whose name it is percent-encoded, as listings have those that
// are no text.
std::optional<nfs::lock::Client> host_meant(const nfs::lock::LockService& locks,
                                            const std::string& name) {
  const auto host = parse_host(name);
  const auto known = locks.clients();
  if (host && known.contains(*host)) return host;
  const auto bytes = percent_decoded(name);
  const auto encoded = bytes ? parse_host(*bytes) : std::nullopt;
  return encoded && known.contains(*encoded) ? encoded : host;
}

// nullopt: the request has a member "client" that is none.
std::optional<Meant> read_client(const ControlRequest& request,
                                 const nfs::lock::LockService& locks) {
  const JsonObject& members = request.members;
  Meant meant;
  if (!members.has("client") && !members.has("client_bytes")) return meant;
  meant.client = members.identifier("client");
  if (meant.client) return meant;
  if (const auto name = members.bytes("client")) meant.host = host_meant(locks, *name);
  if (meant.all()) return std::nullopt;
  return meant;
}

std::string text_of(const nfs::lock::Client& host) {
  return host.address + "/" + host.name;
}

}  // namespace

std::string stateid_text(const nfs::state::Stateid& stateid) {
  return hex(stateid.other);
}

std::optional<nfs::state::Stateid> parse_stateid(std::string_view text) {
  nfs::state::Stateid stateid;
  if (text.size() != 2 * stateid.other.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digit = std::string_view("0123456789abcdef").find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    std::byte& byte = stateid.other[i / 2];
    byte = byte << 4 | static_cast<std::byte>(digit);
  }
  return stateid;
}

Task<std::string> ClientsCommands::list_clients(const ControlRequest& request,
                                                ControlReply& reply) {
  const auto meant = read_client(request, locks_);
  if (!meant) co_return std::string(kWhichClient);
  if (meant->client) {
    const auto found = clients_.client(*meant->client, reply.loop().now());
    if (!found) co_return fmt::format("there is no client {}", *meant->client);
    reply.add(to_json(*found, clients_.lease()));
    co_return std::string();
  }
  const bool listed = list_hosts(locks_, meant->host, reply);
  if (meant->host)
    co_return listed ? std::string() : fmt::format("there is no client {}", text_of(*meant->host));
  for (std::uint32_t shard = 0; shard < nfs::state::Clients::kShards; ++shard) {
    for (const ListedClient& client : clients_.clients(shard, reply.loop().now()))
      reply.add(to_json(client, clients_.lease()));
    if (!co_await reply.flush()) break;
  }
  co_return std::string();
}

Task<std::string> ClientsCommands::list_states(const ControlRequest& request, ControlReply& reply,
                                               Type type) {
  const auto meant = read_client(request, locks_);
  if (!meant) co_return std::string(kWhichClient);
  if (type == Type::Lock && !meant->client)
    co_await list_host_locks(locks_, clients_, meant->host, reply);
  if (meant->host) co_return std::string();
  const nfs::state::StateFilter filter{meant->client, type};
  nfs::state::StateCursor at;
  nfs::state::StatePage page;
  for (bool more = true; more;) {
    more = clients_.states(at, filter, page);
    for (const StateInfo& state : page.rows()) add_rows(state, clients_, reply);
    if (!co_await reply.flush()) break;
    // Others at the control socket have their turn.
    co_await resume_on(reply.loop());
  }
  co_return std::string();
}

Task<std::string> ClientsCommands::expire(const ControlRequest& request, ControlReply& reply,
                                          const ControlPeer& peer) {
  const auto meant = read_client(request, locks_);
  if (!peer.administrator) co_return std::string(kNotAdministrator);
  if (!meant || meant->all()) co_return std::string(kWhichClient);
  if (meant->host) co_return expire_host(*meant->host, peer);
  const std::optional<nfs::state::ClientId> client = meant->client;
  const auto known = clients_.client(*client, reply.loop().now());
  const EndedByAdmin outcome = co_await ended(clients_, *client, reply.loop());
  if (outcome == EndedByAdmin::Yes)
    trace(Reason::ClientEndedByAdministrator,
          fmt::format("client {} at {}", *client, known ? known->info.address : ""), peer.text());
  co_return sentence_of(outcome, *client);
}

std::string ClientsCommands::expire_host(const nfs::lock::Client& host, const ControlPeer& peer) {
  if (!locks_.release(host)) return fmt::format("there is no client {}", text_of(host));
  trace(Reason::ClientEndedByAdministrator, "host " + text_of(host), peer.text());
  return "";
}

Task<std::string> ClientsCommands::revoke(const ControlRequest& request, ControlReply& reply,
                                          const ControlPeer& peer) {
  if (!peer.administrator) co_return std::string(kNotAdministrator);
  if (const auto path = request.members.bytes("export"))
    co_return co_await revoke_export(*path, reply, peer);
  if (request.members.has("lock")) co_return revoke_lock(request, peer);
  const auto text = request.members.text("stateid");
  const auto stateid = text ? parse_stateid(*text) : std::nullopt;
  if (!stateid)
    co_return std::string("\"stateid\" has 24 hexadecimal digits, as a listing shows them");
  if (!clients_.holds(*stateid)) co_return fmt::format("there is no stateid {}", *text);
  const bool revoked = co_await clients_.revoke(*stateid, reply.loop());
  if (!revoked)
    co_return fmt::format(
        "stateid {} stays: the records of clients cannot be written now, or it has just gone",
        *text);
  trace(Reason::StateRevokedByAdministrator, "stateid " + *text, peer.text());
  co_return std::string();
}

// What is served is used as soon as it was taken away: that frees no disk.
Task<std::string> ClientsCommands::revoke_export(const std::string& given, ControlReply& reply,
                                                 const ControlPeer& peer) {
  const std::string path = nfs::normal_path(given).value_or(given);
  const RevokedOfExport revoked = co_await revoke_removed(clients_, locks_, path, reply.loop());
  const std::size_t all = revoked.states + revoked.locks;
  if (all == 0 && !clients_.was_removed(path))
    co_return clients_.is_served(path)
        ? fmt::format("export {} is served: take it out of the exports first", path)
        : fmt::format("no export {} was removed", path);
  if (all != 0)
    trace(Reason::StateRevokedByAdministrator,
          fmt::format("all of export {}: {} opens and delegations, {} locks by NLM", path,
                      revoked.states, revoked.locks),
          peer.text());
  Json row;
  row.set("revoked", std::uint64_t{all});
  reply.add(row);
  co_return std::string();
}

// Its host is not told: NLM has no words for that.
std::string ClientsCommands::revoke_lock(const ControlRequest& request, const ControlPeer& peer) {
  const auto text = request.members.text("lock");
  const auto id = text ? parse_lock(*text) : std::nullopt;
  if (!id) return "\"lock\" has 16 hexadecimal digits, as a listing shows them";
  const auto host = locks_.release(*id);
  if (!host) return fmt::format("there is no lock {}", *text);
  trace(Reason::StateRevokedByAdministrator,
        fmt::format("lock {} of host {}", *text, text_of(*host)), peer.text());
  return "";
}

// Of very many the first do: who is away is what an administrator looks for, and the number says
// how many there are.
Task<std::string> ClientsCommands::list_awaited(ControlReply& reply) {
  constexpr std::size_t kMost = 100;
  for (const nfs::nfs4::AwaitedClient& each : clients_.awaited(kMost, reply.loop().now())) {
    Json row;
    row.set_bytes("name", without_mark(each.owner.ownerid))
        .set_bytes("principal", each.owner.principal)
        .set("state", std::string_view(each.claimed  ? "reclaiming"
                                       : each.client ? "back"
                                                     : "away"));
    if (each.client)
      row.set_identifier("client", each.client->clientid).set("address", each.client->address);
    reply.add(row);
  }
  co_return std::string();
}

// It is over once the records are written.
Task<std::string> ClientsCommands::end_grace(ControlReply& reply, const ControlPeer& peer) {
  constexpr Duration kLook = std::chrono::milliseconds(20);
  constexpr int kLooks = 250;
  if (!peer.administrator) co_return std::string(kNotAdministrator);
  const std::uint64_t awaited = clients_.count_awaited();
  if (!clients_.end_grace(reply.loop().now())) co_return std::string("there is no grace period");
  log_notice(Event::GraceEndedByAdministrator, "all exports",
             fmt::format("{} clients were awaited, asked by {}", awaited, peer.text()));
  for (int i = 0; clients_.grace() && i < kLooks; ++i) co_await sleep_for(reply.loop(), kLook);
  if (clients_.grace())
    co_return std::string(
        "the grace period ends as soon as the records of clients can be written, which takes its "
        "time: see the log");
  Json row;
  row.set("cut_off", awaited);
  reply.add(row);
  co_return std::string();
}

void ClientsCommands::add_to(ControlCommands& commands) {
  using Request = const ControlRequest&;
  using Peer = const ControlPeer&;
  commands["clients"] = [this](Request request, ControlReply& reply, Peer) {
    return list_clients(request, reply);
  };
  const std::pair<const char*, Type> listings[] = {
      {"opens", Type::Open}, {"locks", Type::Lock}, {"delegations", Type::Delegation}};
  for (const auto& [name, type] : listings)
    commands[name] = [this, type = type](Request request, ControlReply& reply, Peer) {
      return list_states(request, reply, type);
    };
  commands["expire"] = [this](Request request, ControlReply& reply, Peer peer) {
    return expire(request, reply, peer);
  };
  commands["awaited"] = [this](Request, ControlReply& reply, Peer) { return list_awaited(reply); };
  commands["end-grace"] = [this](Request, ControlReply& reply, Peer peer) {
    return end_grace(reply, peer);
  };
  commands["revoke"] = [this](Request request, ControlReply& reply, Peer peer) {
    return revoke(request, reply, peer);
  };
}

}  // namespace stag::cli
