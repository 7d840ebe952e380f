// What the server has revoked, as the flags of SEQUENCE say: which of what this client holds it is,
// so that its holders are told and the server forgets it (RFC 8881 8.3, 18.38, 18.46.3, 18.48).
#include <algorithm>

#include "base/pause.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"
#include "nfs/client/v4/status.h"

namespace stag::nfs::client::nfs4 {
namespace {

constexpr OperationContext kTesting{"find out what the server has revoked", {}};
// Of one TEST_STATEID, and bytes of its results in front of the statuses.
constexpr std::size_t kTestedAtOnce = 256;
constexpr std::size_t kTestFrame = 128;

}  // namespace

Task<Outcome<std::vector<v4::nfsstat4>>> SessionClient::test(std::vector<v4::stateid4> stateids,
                                                             const ProtocolOptions& options) {
  const std::size_t count = stateids.size();
  Request request;
  request.results_max = static_cast<std::uint32_t>(kTestFrame + 4 * count);
  const std::size_t at =
      request.add(v4::OP_TEST_STATEID, &Op::optest_stateid, {std::move(stateids)});
  Outcome<Reply> reply = co_await run(kTesting, request, options);
  if (!reply) co_return Failure{reply.error()};
  auto* tested = reply->whatever(at, &OpResult::optest_stateid);
  if (tested == nullptr || tested->tsr_status != v4::NFS4_OK ||
      tested->tsr_resok4().tsr_status_codes.size() != count)
    co_return Failure{Error::of_protocol(kTesting, "tested other stateids than it was asked for")};
  co_return std::move(tested->tsr_resok4().tsr_status_codes);
}

Task<Outcome<Ok>> SessionClient::test_opens(const ProtocolOptions& options) {
  session::Opens::Id from = 0;
  for (;;) {
    const std::vector<session::Opens::Given> given = opens_.given(from, kTestedAtOnce);
    if (given.empty()) co_return Ok{};
    from = given.back().open + 1;
    std::vector<v4::stateid4> stateids;
    for (const session::Opens::Given& each : given) stateids.push_back(each.stateid);
    const auto statuses = co_await test(std::move(stateids), options);
    if (!statuses) co_return Failure{statuses.error()};
    // It has restarted meanwhile: all is reclaimed.
    if (claimed_from_ != session_.incarnation()) co_return Ok{};
    for (std::size_t i = 0; i < given.size(); ++i)
      if (means_lost_state((*statuses)[i])) opens_.on_bad_stateid(given[i].open, given[i].stateid);
  }
}

Task<Outcome<Ok>> SessionClient::test_delegations(const ProtocolOptions& options) {
  const std::vector<v4::stateid4> held = delegations_.stateids();
  for (std::size_t from = 0; from < held.size(); from += kTestedAtOnce) {
    const std::size_t to = std::min(from + kTestedAtOnce, held.size());
    const std::vector<v4::stateid4> some(held.begin() + static_cast<std::ptrdiff_t>(from),
                                         held.begin() + static_cast<std::ptrdiff_t>(to));
    const auto statuses = co_await test(some, options);
    if (!statuses) co_return Failure{statuses.error()};
    for (std::size_t i = 0; i < some.size(); ++i) {
      if ((*statuses)[i] == v4::NFS4_OK) continue;
      if (const auto delegation = delegations_.take(some[i])) begin_return(*delegation);
    }
  }
  co_return Ok{};
}

// What is lost is freed and opened again by recovery, or told to whoever uses it.
Task<void> SessionClient::find_revoked() {
  const Underway finding(finding_);
  ProtocolOptions options = background_options();
  options.cancel = CancelToken(stop_);
  Outcome<Ok> done = co_await test_delegations(options);
  if (done) done = co_await test_opens(options);
  if (done) static_cast<void>(co_await recover(kTesting, options));
  // Not again at once, where that did not help.
  co_await pause(channel().loop(), session_.lease() / 9, CancelToken(stop_));
}

}  // namespace stag::nfs::client::nfs4
