#include "cli/control/hosts_commands.h"

#include <fmt/format.h>

#include <charconv>

#include "cli/control/removed_exports.h"

namespace stag::cli {
namespace {

using nfs::lock::Client;
using nfs::lock::FileKey;
using nfs::lock::Held;
using nfs::lock::LockService;

std::string host_text(const Client& host) {
  return host.address + "/" + host.name;
}

Json host_row(const Client& host, std::size_t held) {
  Json json;
  json.set_bytes("client", host_text(host))
      .set("address", host.address)
      .set_bytes("name", host.name)
      .set("version", std::string_view("nlm"))
      .set("state", std::string_view("host"))
      .set("locks", static_cast<std::uint64_t>(held));
  return json;
}

Json lock_row(const nfs::nfs4::Administration& clients, const FileKey& file, const Held& held) {
  Json json;
  json.set_bytes("client", host_text(held.owner->client))
      .set("lock", fmt::format("{:016x}", LockService::id_of(file, held)));
  set_export(json, clients, file);
  std::string handle;
  for (const std::byte byte : file.handle.bytes())
    handle += fmt::format("{:02x}", static_cast<unsigned>(byte));
  json.set("file", handle).set("mode", std::string_view(held.exclusive ? "write" : "read"));
  json.set_quantity("first", held.range.first);
  if (held.range.last != nfs::state::Range::kEnd) json.set_quantity("last", held.range.last);
  json.set_bytes("owner", held.owner->handle);
  return json;
}

}  // namespace

// An address has no slash; what a host calls itself may.
std::optional<Client> parse_host(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0) return std::nullopt;
  return Client{std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

std::optional<LockService::LockId> parse_lock(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  LockService::LockId id = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, id, 16);
  if (text.size() != kDigits || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return id;
}

bool list_hosts(const LockService& locks, const std::optional<Client>& only, ControlReply& reply) {
  bool found = false;
  for (const auto& [host, held] : locks.clients()) {
    if (only && host != *only) continue;
    reply.add(host_row(host, held));
    found = true;
  }
  return found;
}

// File by file: a client that locks meanwhile waits for one of them at most.
Task<void> list_host_locks(const LockService& locks, nfs::nfs4::Administration clients,
                           std::optional<Client> only, ControlReply& reply) {
  for (const FileKey& file : locks.files()) {
    for (const Held& held : locks.held(file))
      if (!only || held.owner->client == *only) reply.add(lock_row(clients, file, held));
    const bool read = co_await reply.flush();
    if (!read) co_return;
    co_await resume_on(reply.loop());
  }
}

}  // namespace stag::cli
