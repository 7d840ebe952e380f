#include "cli/serve/adoption.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/serve/process.h"
#include "cli/serve/records_place.h"
#include "cli/support/log.h"
#include "nfs/export/state/durable_file.h"
#include "nfs/lock/lock_service.h"

namespace stag::cli {
namespace {

// File handles that clients have got there mean something here only with the same key. Empty: it
// is the same.
std::string key_trouble(const std::string& directory, const std::string& state) {
  const auto there = nfs::read_small_file(directory + "/handle.key");
  if (!there) return there.error().message;
  if (!*there) return fmt::format("'{}' is no state directory: there is no handle.key", directory);
  const auto here = nfs::read_small_file(state + "/handle.key");
  if (!here) return here.error().message;
  if (*here == *there) return {};
  return fmt::format(
      "the handle.key in '{}' is not the one of this server, which knows no file by the handles "
      "that clients have from there; gateways of one file system are given the same one before "
      "their first start",
      directory);
}

}  // namespace

// Blocking.
Result<Recovery::Adopted, std::string> Adoption::adopt(const std::string& from) {
  if (!is_records_place(from)) return adopt_directory(from);
  auto place = parse_records_place(from);
  if (!place) return Failure{place.error()};
  return recovery_.adopt(*std::move(place));
}

Result<Recovery::Adopted, std::string> Adoption::adopt_directory(const std::string& directory) {
  if (std::string trouble = key_trouble(directory, state_); !trouble.empty())
    return Failure{std::move(trouble)};
  // Kept until all is done: its server does not begin meanwhile.
  const auto lock = StateLock::take_ended(directory);
  if (!lock)
    return Failure{fmt::format("cannot adopt the clients in '{}': {}", directory, lock.error())};
  return adopt_all(directory);
}

Result<Recovery::Adopted, std::string> Adoption::adopt_all(const std::string& directory) {
  auto adopted = recovery_.adopt(directory);
  if (!adopted) return adopted;
  const Duration grace = std::max(adopted->grace, recovery_.grace());
  const auto hosts = locks_.adopt(directory, std::chrono::steady_clock::now() + grace);
  if (!hosts)
    return Failure{fmt::format("cannot adopt the hosts with locks by NLM in '{}': {}", directory,
                               hosts.error().message)};
  if (*hosts == 0) return adopted;
  return Recovery::Adopted{adopted->clients + *hosts, grace, adopted->unrecorded};
}

Task<Result<Recovery::Adopted, std::string>> Adoption::adopt_apart(const std::string& from,
                                                                   Loop& loop) {
  net::WorkerOptions one;
  one.limits.threads = one.limits.threads_each = 1;
  one.idle = Duration::zero();
  one.name = is_records_place(from) ? StoreWatch::records(from) : StoreWatch::state_directory(from);
  const auto worker = stores_.make(one);
  using Outcome = Result<Recovery::Adopted, std::string>;
  const auto work = [this, &from] { return adopt(from); };
  const Outcome refused =
      Failure{std::string("the system has no thread or no memory left for it; raise its limits "
                          "(TasksMax=, ulimit -u), and try again")};
  const struct Ended {
    Adoption& adoption;
    ~Ended() {
      adoption.under_way_.clear();
      adoption.running_ = false;
    }
  } ended{*this};
  under_way_ = from;
  running_ = true;
  const Outcome adopted = co_await offloaded_to(worker.get(), nullptr, loop, work, refused);
  co_return adopted;
}

Task<std::string> Adoption::adopt(const ControlRequest& request, ControlReply& reply,
                                  const ControlPeer& peer) {
  if (!peer.administrator)
    co_return std::string("only root and the user of the server may adopt clients");
  const auto directory = request.members.bytes("directory");
  if (!directory || (!directory->starts_with('/') && !is_records_place(*directory)))
    co_return std::string(
        "\"directory\" is the absolute path of a state directory, or ceph:POOL/NAMESPACE");
  if (!recovery_.serves_nfs4())
    co_return std::string("the server has no clients of version 4 (--no-nfs4)");
  if (!under_way_.empty())
    co_return fmt::format(
        "another 'stag clients adopt' still waits for '{}', maybe one that was interrupted; try "
        "again once that has answered",
        under_way_);
  const Result<Recovery::Adopted, std::string> adopted =
      co_await adopt_apart(*directory, reply.loop());
  if (!adopted) co_return adopted.error();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(adopted->grace).count();
  Json row;
  row.set("adopted", std::uint64_t{adopted->clients})
      .set("grace", static_cast<std::uint64_t>(seconds));
  if (adopted->unrecorded) row.set("unrecorded", true);
  reply.add(row);
  log_notice(Event::ClientsAdopted, *directory,
             fmt::format("{} of them, {} s, asked by {}", adopted->clients, seconds, peer.text()));
  co_return std::string();
}

void Adoption::add_to(ControlCommands& commands) {
  commands["adopt"] = [this](const ControlRequest& request, ControlReply& reply,
                             const ControlPeer& peer) { return adopt(request, reply, peer); };
}

}  // namespace stag::cli
