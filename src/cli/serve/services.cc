#include "cli/serve/services.h"

#include "nfs/export/server_context.h"
#include "nfs/lock/lock_service.h"

namespace stag::cli {

using Trouble = ExportSet::Trouble;

Result<std::unique_ptr<Services>, Trouble> Services::open(ServeOptions& options, StoreWatch& stores,
                                                          std::vector<ExportLine> lines) {
  const Result<nfs::ServerState, nfs::StateError> state = nfs::ServerState::open(options.state);
  if (!state) return Failure{Trouble{state.error().message}};
  std::unique_ptr<Services> made(new Services(*state, stores, options.state));
  if (const auto added = made->exports_.replace(std::move(lines)); !added)
    return Failure{added.error()};
  if (const std::string error = made->add_programs(options); !error.empty())
    return Failure{Trouble{error}};
  return made;
}

std::string Services::add_programs(ServeOptions& options) {
  auto recovery = Recovery::open(options.recovery, options.state, options.nfs4,
                                 nfs_.context().handles.file_system_id("/"), stores_);
  if (!recovery) return recovery.error();
  recovery_ = *std::move(recovery);
  auto users = options.id_mapping.open();
  if (!users) return users.error();
  users_ = *std::move(users);
  nfs::nfs4::Nfs4Options nfs4_options = recovery_->nfs4_options();
  options.nfs4_limits.apply(nfs4_options);
  options.nfs4_limits.limit_local_delegations();
  options.callbacks.apply(nfs4_options);
  nfs4_options.id_map = users_.owners;
  nfs4_.emplace(nfs_.context(), nfs4_options);
  auto locking = Locking::open(nfs_, options.state, *recovery_, stores_);
  if (!locking) return locking.error();
  locking_ = *std::move(locking);
  auto kerberos = options.kerberos.open(takes_kerberos(exports_.lines()), users_.principals,
                                        stores_, options.loops);
  if (!kerberos) return kerberos.error();
  const auto queues = [&stores = stores_](TimePoint now) { return stores.queues(now); };
  observing_.emplace(options.observe, GaugeSources{nfs4_->administration(), locking_->service(),
                                                   queues, contexts_of(kerberos->get()), nfs_,
                                                   *recovery_->period(), process_});
  server_.observe(observing_->observation());
  stores_.name_clients_by([&statistics = observing_->observation().statistics()](
                              const void* client) { return statistics.name_of(client); });
  if (*kerberos != nullptr) server_.add(*std::move(kerberos));
  if (users_.groups != nullptr) server_.add(nfs::auth_sys_with(users_.groups));
  nfs_.add_programs(server_);
  if (options.nfs4) nfs4_->add_program(server_, &observing_->observation());
  locking_->add_programs(server_);
  return {};
}

void Services::change(const ServeOptions& now) {
  nfs::nfs4::Nfs4Options options;
  now.nfs4_limits.apply(options);
  now.callbacks.apply(options);
  nfs4_->change(options);
}

Services::~Services() {
  stores_.name_clients_by({});
}

void Services::close_unused() {
  const auto exports = nfs_.exports();
  for (const nfs::Export& each : exports->all()) each.file_system().close_unused();
}

void Services::remove_idle_records() {
  recovery_->drain();
  nfs4_->remove_idle_records();
  locking_->service().remove_idle_records();
}

void Services::end_waits() {
  nfs_.context().deferred->end();
}

}  // namespace stag::cli
