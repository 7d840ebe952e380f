#include "nfs/lock/nsm.h"

#include <memory>
#include <mutex>

#include "base/reason.h"
#include "nfs/proto/nsm.h"

namespace stag::nfs::lock {

namespace {

using namespace nsm;

// Only root of this host may change the host's own state: a loopback address and a reserved port.
bool is_local_root(const rpc::CallContext& call) {
  const Address& peer = call.origin().peer;
  const bool reserved = peer.port > 0 && peer.port < 1024;
  return reserved && (peer.host.starts_with("127.") || peer.host == "::1");
}

// Lets one request pass, and the next one only from the time that the last one named.
class RateLimit {
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

Task<xdr::Void> notify(NlmContext& context, rpc::CallContext& call, stat_chge news) {
  const std::string& address = call.origin().peer.host;
  if (context.manager.restarted(address, news.mon_name, news.state, call.loop().now()))
    trace(Reason::LockClientRestarted, address, news.mon_name);
  co_return xdr::Void{};
}

Task<sm_stat_res> status(NlmContext& context, sm_res res) {
  co_return sm_stat_res{res, context.records.state()};
}

Task<sm_stat> own_state(NlmContext& context) {
  co_return sm_stat{context.records.state()};
}

// At most once per grace period, so that clients are not made to reclaim again and again.
Task<xdr::Void> simulate_crash(NlmContext& context, rpc::CallContext& call, Duration grace,
                               std::shared_ptr<RateLimit> limit) {
  const TimePoint now = call.loop().now();
  const TimePoint end = now + grace;
  if (!is_local_root(call) || !limit->pass(now, end)) co_return xdr::Void{};
  // Not in the call: braces and co_await do not go together in every compiler.
  const Result<Ok, StateError> not_done = Failure{StateError{"too much waits to be written"}};
  const auto done = co_await offloaded_to(
      context.records.worker(), &call.origin(), call.loop(), [&] { return restart(context, end); },
      not_done);
  if (done) context.callbacks.notify_restart();
  co_return xdr::Void{};
}

}  // namespace

Result<Ok, StateError> restart(NlmContext& context, TimePoint grace_end) {
  auto kept = context.records.restart();
  if (!kept) return kept;
  // Before the locks are gone: in between anybody could get what their holders will claim.
  if (context.records.any_unnotified()) context.manager.begin_grace(grace_end);
  context.manager.clear();
  return kept;
}

rpc::Program nsm1(NlmContext& context, Duration grace) {
  rpc::Program program(SM_NOTIFY::program, SM_NOTIFY::version);
  // RFC 8267 5.1: NSM is not on RDMA.
  program.absent_from(rpc::TransportKind::Rdma);
  program.add<SM_STAT>(
      [&context](rpc::CallContext&, const sm_name&) { return status(context, STAT_SUCC); });
  program.add<SM_MON>(
      [&context](rpc::CallContext&, const mon&) { return status(context, STAT_FAIL); });
  program.add<SM_UNMON>(
      [&context](rpc::CallContext&, const mon_id&) { return own_state(context); });
  program.add<SM_UNMON_ALL>(
      [&context](rpc::CallContext&, const my_id&) { return own_state(context); });
  const auto limit = std::make_shared<RateLimit>();
  program.add<SM_SIMU_CRASH>([&context, grace, limit](rpc::CallContext& call, xdr::Void) {
    return simulate_crash(context, call, grace, limit);
  });
  program.add<SM_NOTIFY>([&context](rpc::CallContext& call, stat_chge news) {
    return notify(context, call, std::move(news));
  });
  return program;
}

}  // namespace stag::nfs::lock
