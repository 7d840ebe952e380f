#include "nfs/v4/nfs4_server.h"

#include "nfs/proto/nfs4.h"
#include "nfs/ulb/nfs4.h"
#include "nfs/v4/administration.h"
#include "nfs/v4/callback/callbacks.h"
#include "nfs/v4/compound/lease_timer.h"
#include "nfs/v4/interpreter.h"
#include "nfs/v4/ops/offloads.h"
#include "rpc/server.h"

namespace stag::nfs::nfs4 {

Nfs4Server::Nfs4Server(const ServerContext& context, const Nfs4Options& options)
    : shared_(std::make_unique<SharedState>(context, options)) {}

Nfs4Server::~Nfs4Server() = default;

Administration Nfs4Server::administration() {
  return Administration(*shared_);
}

void Nfs4Server::change(const Nfs4Options& now) {
  shared_->callback_networks.replace(now.callback_networks);
  shared_->clients.change_courtesy(std::chrono::seconds(now.courtesy_seconds));
  shared_->clients.change_limits(now.clients);
  shared_->files.change_limits(now.states);
  shared_->copies = now.copies;
  shared_->copies_of_client = now.copies_of_client;
}

void Nfs4Server::watch_leases(Loop& home) {
  lease_timer_ = std::make_unique<LeaseTimer>(*shared_, home);
}

void Nfs4Server::start_callbacks(Loop& home, rpc::Connector* connector, SourceServers* sources) {
  callbacks_ = std::make_unique<Callbacks>(*shared_, home, connector);
  offloads_ = std::make_unique<Offloads>(*shared_, *callbacks_, sources);
}

void Nfs4Server::stop_copies_from_servers() {
  if (offloads_ != nullptr) offloads_->stop_sources();
}

void Nfs4Server::stop_callbacks() {
  offloads_.reset();
  callbacks_.reset();
  lease_timer_.reset();
}

namespace {

Task<void> wait_and_tell(Loop& home, std::shared_ptr<std::atomic<std::size_t>> questions,
                         UniqueFunction<void()> done) {
  constexpr Duration kLook = std::chrono::milliseconds(20);
  while (*questions != 0) co_await sleep_for(home, kLook);
  done();
}

Task<void> stop_and_tell(Callbacks& callbacks, UniqueFunction<void()> done) {
  co_await callbacks.stop();
  done();
}

}  // namespace

void Nfs4Server::wind_up(UniqueFunction<void()> done) {
  if (lease_timer_ == nullptr) return wind_up_copies(std::move(done));
  lease_timer_->lapsed_locks().stop([this, done = std::move(done)]() mutable {
    wind_up_copies([this, done = std::move(done)]() mutable {
      detach(wait_and_tell(lease_timer_->home(), shared_->questions, std::move(done)));
    });
  });
}

void Nfs4Server::wind_up_copies(UniqueFunction<void()> done) {
  if (offloads_ == nullptr) return done();
  offloads_->stop([this, done = std::move(done)]() mutable {
    detach(stop_and_tell(*callbacks_, std::move(done)));
  });
}

void Nfs4Server::add_program(rpc::Server& server, OperationObserver* observer) {
  rpc::Program program(v4::NFS4_PROGRAM, v4::NFS_V4, ulb::nfs4());
  program.add(v4::NFSPROC4_COMPOUND::number, compound_handler(*shared_, observer));
  program.replays(rpc::ReplayPolicy::OwnedByProgram);
  program.absent_from(rpc::TransportKind::Udp);
  server.add(std::move(program));
}

}  // namespace stag::nfs::nfs4
