#include "nfs/lock/lock_service.h"

#include "nfs/lock/nsm.h"
#include "rpc/server.h"

namespace stag::nfs::lock {

struct LockService::Parts {
  Parts(const ServerContext& server, std::unique_ptr<Records> kept,
        const LockServiceOptions& options, Loop& loop, Peers& peers)
      : grace(options.grace),
        records(std::move(kept)),
        manager(options.limits),
        callbacks(manager, *records, options.host_name, loop, peers),
        context{server, stores, manager, *records, callbacks} {}

  const Duration grace;
  std::unique_ptr<Records> records;
  FsidMap stores;
  LockManager manager;
  CallbackSender callbacks;
  NlmContext context;
};

LockService::LockService(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LockService::~LockService() = default;

Result<std::unique_ptr<LockService>, StateError> LockService::open(
    const ServerContext& server, const LockServiceOptions& options, Loop& loop, Peers& peers) {
  auto records =
      Records::open(options.state_directory.empty() ? "" : options.state_directory + "/locks",
                    options.records_worker);
  if (!records) return Failure{records.error()};
  auto parts = std::make_unique<Parts>(server, *std::move(records), options, loop, peers);
  Parts& made = *parts;
  made.manager.on_grant(
      [&made](const Client& client, Ticket ticket) { made.callbacks.granted(client, ticket); });
  if (server.gate->files() != nullptr) made.manager.share_with(*server.gate, made.stores);
  if (options.grace_period != nullptr) made.manager.share_grace(options.grace_period);
  if (!made.records->unnotified().empty()) made.manager.begin_grace(loop.now() + made.grace);
  return std::unique_ptr<LockService>(new LockService(std::move(parts)));
}

void LockService::add_programs(rpc::Server& server) {
  server.add(nlm1(parts_->context));
  server.add(nlm3(parts_->context));
  server.add(nlm4(parts_->context));
  server.add(nsm1(parts_->context, parts_->grace));
}

void LockService::start() {
  if (!parts_->records->unnotified().empty()) parts_->callbacks.notify_restart();
}

Task<void> LockService::stop() {
  return parts_->callbacks.stop();
}

std::size_t LockService::size() const {
  return parts_->manager.size();
}

}  // namespace stag::nfs::lock
