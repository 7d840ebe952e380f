#include "nfs/lock/nsm.h"

#include <memory>
#include <mutex>

#include "base/reason.h"
#include "nfs/proto/nsm.h"

namespace stag::nfs::lock {

namespace {

using namespace nsm;

// What changes this host's own state is for those who are on it and may use a reserved port.
bool is_local_root(const rpc::CallContext& call) {
  const Address& peer = call.origin().peer;
  const bool reserved = peer.port > 0 && peer.port < 1024;
  return reserved && (peer.host.starts_with("127.") || peer.host == "::1");
}

// Lets one through, and the next one only after a while.
class Seldom {
 public:
  bool pass(TimePoint now, TimePoint next) {
    const std::scoped_lock lock(mutex_);
    if (now < next_) return false;
    next_ = next;
    return true;
  }

 private:
  std::mutex mutex_;
  TimePoint next_{};
};

Task<xdr::Void> notify(NlmContext& desk, rpc::CallContext& call, stat_chge news) {
  const std::string& address = call.origin().peer.host;
  if (desk.manager.restarted(address, news.mon_name, news.state, call.loop().now()))
    trace(Reason::LockClientRestarted, address, news.mon_name);
  co_return xdr::Void{};
}

Task<sm_stat_res> status(NlmContext& desk, sm_res res) {
  co_return sm_stat_res{res, desk.records.state()};
}

Task<sm_stat> own_state(NlmContext& desk) {
  co_return sm_stat{desk.records.state()};
}

// Who has just reclaimed his locks does not have to do it again at once.
Task<xdr::Void> simulate_crash(NlmContext& desk, rpc::CallContext& call, Duration grace,
                               std::shared_ptr<Seldom> seldom) {
  const TimePoint now = call.loop().now();
  const TimePoint end = now + grace;
  if (!is_local_root(call) || !seldom->pass(now, end)) co_return xdr::Void{};
  // Not in the call: braces and co_await do not go together in every compiler.
  const Result<Ok, StateError> not_done = Failure{StateError{"too much waits to be written"}};
  const auto done = co_await offloaded_to(
      desk.records.worker(), &call.origin(), call.loop(), [&] { return restart(desk, end); },
      not_done);
  if (done) desk.outbox.tell_of_restart();
  co_return xdr::Void{};
}

}  // namespace

Result<Ok, StateError> restart(NlmContext& desk, TimePoint grace_end) {
  auto kept = desk.records.restart();
  if (!kept) return kept;
  desk.manager.clear();
  if (!desk.records.untold().empty()) desk.manager.begin_grace(grace_end);
  return kept;
}

rpc::Program nsm1(NlmContext& desk, Duration grace) {
  rpc::Program program(SM_NOTIFY::program, SM_NOTIFY::version);
  // RFC 8267 5.1: NSM is not on RDMA.
  program.absent_from(rpc::TransportKind::Rdma);
  program.add<SM_STAT>(
      [&desk](rpc::CallContext&, const sm_name&) { return status(desk, STAT_SUCC); });
  program.add<SM_MON>([&desk](rpc::CallContext&, const mon&) { return status(desk, STAT_FAIL); });
  program.add<SM_UNMON>([&desk](rpc::CallContext&, const mon_id&) { return own_state(desk); });
  program.add<SM_UNMON_ALL>([&desk](rpc::CallContext&, const my_id&) { return own_state(desk); });
  const auto seldom = std::make_shared<Seldom>();
  program.add<SM_SIMU_CRASH>([&desk, grace, seldom](rpc::CallContext& call, xdr::Void) {
    return simulate_crash(desk, call, grace, seldom);
  });
  program.add<SM_NOTIFY>([&desk](rpc::CallContext& call, stat_chge news) {
    return notify(desk, call, std::move(news));
  });
  return program;
}

}  // namespace stag::nfs::lock
