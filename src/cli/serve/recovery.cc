#include "cli/serve/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/reason.h"
#include "net/worker_pool.h"
#include "nfs/lock/lock_service.h"

namespace stag::cli {
namespace {

constexpr std::uint32_t kLongestPeriod = 3600;

std::string records_of(const std::string& state) {
  return state + "/nfs4-clients.db";
}

std::shared_ptr<Executor> record_writer(const std::string& state, StoreWatch& stores) {
  net::WorkerOptions options;
  // One thread writes; changes requested meanwhile go into its next transaction.
  options.limits.threads = 4;
  options.name = StoreWatch::state_directory(state);
  return stores.make(options);
}

using nfs::state::GracePeriod;

void log_grace(const GracePeriod::Info& grace) {
  if (grace.active) {
    const auto left = grace.end - std::chrono::steady_clock::now();
    return trace(Reason::GracePeriodBegun, "all exports",
                 fmt::format("{} s{}", std::chrono::ceil<std::chrono::seconds>(left).count(),
                             grace.full_time ? "" : ", or until all have reclaimed"));
  }
  trace(Reason::GracePeriodEnded, "all exports",
        fmt::format(
            "{}; {} clients of version 4 have reclaimed something, {} opens, locks and "
            "delegations were reclaimed",
            grace.early ? "early, because nobody was left who could reclaim" : "its time was over",
            grace.clients, grace.claims));
}

}  // namespace

void RecoveryOptions::declare(Arguments& arguments) {
  arguments.number("--lease", lease_seconds, 10, kLongestPeriod,
                   "seconds after which a version 4 client that is silent may lose what it holds");
  arguments.number(
      "--grace", grace_seconds, 1, kLongestPeriod,
      "seconds after a start in which clients may only reclaim the locks that they held "
      "before, if any did [the longer lease of this start and of the last; 45 without "
      "version 4]");
}

Result<std::unique_ptr<Recovery>, std::string> Recovery::open(const RecoveryOptions& options,
                                                              const std::string& state, bool nfs4,
                                                              StoreWatch& stores) {
  std::unique_ptr<Recovery> made(new Recovery);
  made->options_ = options;
  made->period_->tell([](const GracePeriod::Info& grace) { log_grace(grace); });
  std::uint32_t seconds = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::seconds>(nfs::lock::LockServiceOptions{}.grace)
          .count());
  const std::string path = records_of(state);
  std::error_code ignored;
  if (nfs4 || std::filesystem::exists(path, ignored)) {
    auto records = nfs::recovery::Recovery::open(path, options.lease_seconds,
                                                 nfs4 ? record_writer(state, stores) : nullptr);
    if (!records) return Failure{records.error()};
    made->records_ = *std::move(records);
    if (nfs4) seconds = std::max(options.lease_seconds, made->records_->former_lease());
  }
  made->grace_ = std::chrono::seconds(options.grace_seconds.value_or(seconds));
  if (!nfs4) {
    // While NFSv4 is not served, other clients may take what its clients held.
    if (made->records_ != nullptr && !made->records_->remove_former())
      return Failure{"cannot remove the records of NFSv4 clients from " + path};
    made->records_ = nullptr;
  } else {
    made->records_->begin_grace(*made->period_, std::chrono::steady_clock::now() + made->grace_);
  }
  return made;
}

Result<Recovery::Adopted, std::string> Recovery::adopt(const std::string& directory) {
  std::error_code ignored;
  // It has served other versions only.
  if (!std::filesystem::exists(records_of(directory), ignored)) return Adopted{};
  auto lost = nfs::recovery::Database::open_ended(records_of(directory));
  if (!lost) return Failure{lost.error()};
  const Adopted adopted{(*lost)->former().size(),
                        std::chrono::seconds(options_.grace_seconds.value_or(
                            std::max(options_.lease_seconds, (*lost)->former_lease())))};
  if (adopted.clients == 0) return Adopted{};
  const TimePoint end = std::chrono::steady_clock::now() + adopted.grace;
  if (const auto done = records_->adopt(**lost, *period_, end); !done)
    return Failure{"cannot adopt the clients in '" + directory + "': " + done.error()};
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
