#include "cli/serve/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <variant>
#include <vector>

#include "base/reason.h"
#include "cli/serve/records_place.h"
#include "cli/support/log.h"
#include "net/worker_pool.h"
#include "nfs/lock/lock_service.h"

namespace stag::cli {
namespace {

using nfs::recovery::Database;
using nfs::recovery::Location;
using nfs::recovery::RadosPlace;

constexpr std::uint32_t kLongestPeriod = 3600;

std::string records_of(const std::string& state) {
  return state + "/nfs4-clients.db";
}

std::string location_text(const Location& location) {
  if (const auto* const place = std::get_if<RadosPlace>(&location)) return name_of(*place);
  return std::get<std::string>(location);
}

// Where `options` want them. They were checked.
Location location_of(const RecoveryOptions& options, const std::string& state) {
  if (options.records.empty()) return records_of(state);
  return *parse_records_place(options.records);
}

// It logs a wait for the lock of another server.
Location told_of(Location location) {
  if (auto* const place = std::get_if<RadosPlace>(&location))
    place->waiting = [name = name_of(*place)](unsigned seconds) {
      log_notice(Event::RecordsAwaited, name, fmt::format("{} s at most", seconds));
    };
  return location;
}

std::shared_ptr<Executor> record_writer(const Location& location, const std::string& state,
                                        StoreWatch& stores) {
  net::WorkerOptions options;
  // One thread writes; changes requested meanwhile go into its next transaction.
  options.limits.threads = 4;
  options.name = std::holds_alternative<RadosPlace>(location)
                     ? StoreWatch::records(location_text(location))
                     : StoreWatch::state_directory(state);
  return stores.make(options);
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Result<Ok, std::string> remove_records(const std::string& path) {
  if (!is_there(path)) return Ok{};
  const auto old = Database::open_ended(path);
  if (!old) return Failure{old.error()};
  if (const auto gone = (*old)->give_away(); !gone)
    return Failure{
        fmt::format("cannot remove the records of NFSv4 clients from {}: {}", path, gone.error())};
  return Ok{};
}

using nfs::state::GracePeriod;

void log_grace(const GracePeriod::Info& grace) {
  if (grace.active && grace.late != GracePeriod::Late::No)
    return trace(Reason::GracePeriodBegun, "all exports",
                 fmt::format("it goes on past its time, {} s more at most: {}",
                             std::chrono::ceil<std::chrono::seconds>(grace.more).count(),
                             grace.late == GracePeriod::Late::Claims
                                 ? "clients are still reclaiming"
                                 : "what clients reclaim waits for this server: for the names of "
                                   "hosts, for the groups of users, or for a store"));
  if (grace.active) {
    const auto left = grace.end - std::chrono::steady_clock::now();
    return trace(Reason::GracePeriodBegun, "all exports",
                 fmt::format("{} s{}", std::chrono::ceil<std::chrono::seconds>(left).count(),
                             grace.full_time ? "" : ", or until all have reclaimed"));
  }
  trace(Reason::GracePeriodEnded, "all exports",
        fmt::format("{}; {} clients of version 4 have reclaimed something, {} opens, locks and "
                    "delegations were reclaimed",
                    grace.by_administrator ? "at an administrator's word"
                    : grace.early          ? "early, because nobody was left who could reclaim"
                                           : "its time was over",
                    grace.clients, grace.claims));
}

}  // namespace

void RecoveryOptions::declare(Arguments& arguments) {
  arguments.text(
      "--records", records, "PLACE",
      "where the records of version 4 clients are kept, by which they reclaim their "
      "locks after a restart [in --state]; ceph:POOL/NAMESPACE: in a Ceph cluster, where "
      "another gateway finds them; after ? what is wanted, separated by &: conf=FILE, "
      "id=NAME (the Ceph user)");
  arguments.number("--lease", lease_seconds, 10, kLongestPeriod,
                   "seconds after which a version 4 client that is silent may lose what it holds");
  arguments.number(
      "--grace", grace_seconds, 1, kLongestPeriod,
      "seconds after a start in which clients may only reclaim the locks that they held "
      "before, if any did [the longer lease of this start and of the last; 45 without "
      "version 4]");
}

Result<Ok, std::string> RecoveryOptions::check() const {
  if (records.empty()) return Ok{};
  const auto place = parse_records_place(records);
  if (!place) return Failure{"--records: " + place.error()};
  return Ok{};
}

Result<std::unique_ptr<Recovery>, std::string> Recovery::open(const RecoveryOptions& options,
                                                              const std::string& state, bool nfs4,
                                                              std::uint64_t handles,
                                                              StoreWatch& stores) {
  std::unique_ptr<Recovery> made(new Recovery);
  made->options_ = options;
  made->handles_ = handles;
  made->period_->tell([](const GracePeriod::Info& grace) { log_grace(grace); });
  std::uint32_t seconds = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::seconds>(nfs::lock::LockServiceOptions{}.grace)
          .count());
  if (const auto opened = made->open_records(state, nfs4, stores); !opened)
    return Failure{opened.error()};
  // Behind the opening, so that there is what it names, and before a client is recorded or moved
  // there. Clients that a former place has recorded lose from now on what others take, and are not
  // to be found by this directory.
  if (const auto noted = made->note_place(state); !noted) return Failure{noted.error()};
  if (nfs4) seconds = std::max(options.lease_seconds, made->records_->former_lease());
  made->grace_ = std::chrono::seconds(options.grace_seconds.value_or(seconds));
  made->period_->set_more_for_claims(made->grace_);
  if (!nfs4) {
    // While NFSv4 is not served, other clients may take what its clients held.
    if (made->records_ != nullptr && !made->records_->remove_former())
      return Failure{"cannot remove the records of NFSv4 clients from " +
                     location_text(location_of(options, state))};
    made->records_ = nullptr;
    // A later start would move those of the state directory.
    if (!options.records.empty())
      if (const auto removed = remove_records(records_of(state)); !removed)
        return Failure{removed.error()};
    return made;
  }
  made->records_->begin_grace(*made->period_, std::chrono::steady_clock::now() + made->grace_);
  if (!options.records.empty())
    if (const auto moved = made->move_records(records_of(state)); !moved)
      return Failure{moved.error()};
  return made;
}

Result<Ok, std::string> Recovery::open_records(const std::string& state, bool nfs4,
                                               StoreWatch& stores) {
  const Location location = location_of(options_, state);
  if (!nfs4 && options_.records.empty() && !is_there(records_of(state))) return Ok{};
  auto records = nfs::recovery::Recovery::open(
      told_of(location), options_.lease_seconds,
      nfs4 ? record_writer(location, state, stores) : nullptr, handles_);
  if (!records) return Failure{records.error()};
  records_ = *std::move(records);
  return Ok{};
}

// Those that earlier starts have kept in the state directory: left there, they would let clients
// claim what others have had since, once the server keeps its records there again.
Result<Ok, std::string> Recovery::move_records(const std::string& from) {
  if (!is_there(from)) return Ok{};
  const auto lost = Database::open_ended(from);
  if (!lost) return Failure{lost.error()};
  if (const auto moved = adopt(**lost, from); !moved) return Failure{moved.error()};
  return Ok{};
}

Result<Ok, std::string> Recovery::note_place(const std::string& state) const {
  const Location location = location_of(options_, state);
  return note_records_place(state, std::get_if<RadosPlace>(&location));
}

bool Recovery::is_own(const RadosPlace& place) const {
  const Location own = location_of(options_, {});
  const auto* const mine = std::get_if<RadosPlace>(&own);
  return mine != nullptr && same_records(*mine, place);
}

// A server that began to keep its records in the cluster, and died while it moved them there, has
// some at both. Neither is adopted before both are open: what cannot be opened is the likely
// failure. Where the place is this server's own it has found its clients there when it started.
Result<Recovery::Adopted, std::string> Recovery::adopt(const std::string& directory) {
  const auto noted = noted_records_place(directory);
  if (!noted) return Failure{noted.error()};
  std::vector<DatabasePtr> all;
  if (*noted && !is_own(**noted)) {
    auto lost = open_noted(**noted, directory);
    if (!lost) return Failure{lost.error()};
    all.push_back(*std::move(lost));
  }
  if (is_there(records_of(directory))) {
    auto lost = Database::open_ended(records_of(directory));
    if (!lost) return Failure{lost.error()};
    all.push_back(*std::move(lost));
  }
  Adopted adopted;
  adopted.unrecorded = !*noted && all.empty();
  for (const DatabasePtr& lost : all) {
    const auto these = adopt(*lost, directory);
    if (!these) return these;
    adopted.clients += these->clients;
    adopted.grace = std::max(adopted.grace, these->grace);
  }
  return adopted;
}

Result<Recovery::DatabasePtr, std::string> Recovery::open_noted(const RadosPlace& place,
                                                                const std::string& directory) {
  auto lost = open_lost(place);
  if (lost) return lost;
  return Failure{fmt::format(
      "{}; nobody is adopted, for the version 4 clients of '{}' are recorded in {}: where that "
      "takes another conf= or id=, 'stag clients adopt {}?conf=FILE&id=NAME' goes first",
      lost.error(), directory, name_of(place), name_of(place))};
}

Result<Recovery::Adopted, std::string> Recovery::adopt(RadosPlace place) {
  if (is_own(place))
    return Failure{fmt::format("{} has the records of this server itself", name_of(place))};
  const std::string name = name_of(place);
  const auto lost = open_lost(std::move(place));
  if (!lost) return Failure{lost.error()};
  return adopt(**lost, name);
}

Result<Recovery::DatabasePtr, std::string> Recovery::open_lost(RadosPlace place) {
  const Location own = location_of(options_, {});
  const auto* const mine = std::get_if<RadosPlace>(&own);
  const RadosPlace& known = mine != nullptr ? *mine : reached_;
  if (place.configuration.empty()) place.configuration = known.configuration;
  if (place.id.empty()) place.id = known.id;
  const std::string name = name_of(place);
  auto lost = Database::open_ended(told_of(place));
  if (!lost) return lost;
  reached_ = std::move(place);
  if ((*lost)->handles() != handles_)
    return Failure{fmt::format(
        "the server of the records in '{}' had another handle.key than this one, which knows no "
        "file by the handles that clients have from there; gateways of one file system are given "
        "the same one before their first start",
        name)};
  return lost;
}

Result<Recovery::Adopted, std::string> Recovery::adopt(Database& lost, const std::string& name) {
  const Adopted adopted{.clients = lost.former().size(),
                        .grace = std::chrono::seconds(options_.grace_seconds.value_or(
                            std::max(options_.lease_seconds, lost.former_lease())))};
  if (adopted.clients == 0) return Adopted{};
  const TimePoint end = std::chrono::steady_clock::now() + adopted.grace;
  if (const auto done = records_->adopt(lost, *period_, end); !done)
    return Failure{fmt::format("cannot adopt the clients in '{}': {}", name, done.error())};
  return adopted;
}

nfs::nfs4::Nfs4Options Recovery::nfs4_options() const {
  nfs::nfs4::Nfs4Options options;
  options.lease_seconds = options_.lease_seconds;
  options.recovery = records_.get();
  options.grace = period_;
  return options;
}

}  // namespace stag::cli
