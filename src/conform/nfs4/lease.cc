#include "conform/nfs4/lease.h"

#include "base/pause.h"
#include "xdr/decoder.h"

namespace stag::conform::nfs4 {
namespace {

constexpr std::chrono::seconds kBetweenAsks(1);
// A server may look now and then only which leases have run out.
constexpr std::chrono::seconds kLittleMore(15);
constexpr std::uint32_t kLongest = 3600;  // seconds

}  // namespace

Task<std::optional<std::chrono::seconds>> lease_time(Scene& scene) {
  Steps steps;
  steps.push_back(at("work"));
  steps.push_back(getattr(bits({kLeaseTime})));
  const Reply reply = co_await send(scene, steps);
  if (!reply.ok()) co_return std::nullopt;
  const v4::fattr4& came = reply.results.resarray.back().opgetattr().resok4().obj_attributes;
  xdr::Decoder decoder(came.attr_vals.flatten());
  std::uint32_t seconds = 0;
  v4::bitmap4 mask = came.attrmask;
  while (!mask.empty() && mask.back() == 0) mask.pop_back();  // some send words that say nothing
  if (!decoder.u32(seconds) || mask != bits({kLeaseTime}) || seconds > kLongest)
    co_return std::nullopt;
  co_return std::chrono::seconds(seconds);
}

Task<bool> wait_for_lease(Scene& scene, std::chrono::seconds lease,
                          std::function<Task<bool>()> ask) {
  const ClientOptions& options = scene.client.options();
  Loop& loop = scene.client.channel().loop();
  const TimePoint until = loop.now() + 2 * lease + kLittleMore;
  while (loop.now() < until && !options.cancel.cancelled()) {
    if (options.on_wait)
      options.on_wait(std::chrono::duration_cast<std::chrono::seconds>(until - loop.now()));
    const bool over = co_await ask();
    if (over) co_return true;
    co_await pause(loop, kBetweenAsks, options.cancel);
  }
  co_return false;
}

Task<std::optional<std::uint32_t>> status_flags(Client& client) {
  Operations operations;
  operations.push_back(op(v4::OP_SEQUENCE, &Op::opsequence, client.sequence()));
  const Reply reply = co_await client.bare(std::move(operations));
  client.note(reply);
  if (!reply.ok()) co_return std::nullopt;
  co_return reply.results.resarray.front().opsequence().sr_resok4().sr_status_flags;
}

}  // namespace stag::conform::nfs4
