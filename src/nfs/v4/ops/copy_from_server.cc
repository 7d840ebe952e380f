// COPY from another server (RFC 7862 4.5, 4.6.2, 15.2): this one reads there as a client of its
// own, by the copy stateid that the client was given (COPY_NOTIFY), and as the user who the
// client's is here (decision 0072). Offloads copies; here is what waits for it.
#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/ops/copy_source.h"
#include "nfs/v4/ops/offloads.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {
namespace {

// How often a COPY that waits looks whether it has missed something.
constexpr Duration kLook = std::chrono::seconds(1);

v4::COPY4res results_of(const Offloads::Answer& answer, const state::Stateid& stateid,
                        std::uint64_t verifier) {
  if (answer.status != v4::NFS4_OK) return {answer.status, {}};
  v4::COPY4res results;
  v4::COPY4resok& ok = results.cr_resok4();
  ok.cr_requirements = {true, !answer.goes_on};
  if (answer.goes_on) ok.cr_response.wr_callback_id.push_back(to_stateid4(stateid));
  ok.cr_response.wr_count = answer.count;
  ok.cr_response.wr_committed = static_cast<v4::stable_how4>(answer.committed);
  store_be(ok.cr_response.wr_writeverf.data(), verifier);
  return results;
}

// A copy that was begun for a COPY, until the client is answered. Where there is no memory for the
// answer, nobody would know of the copy.
class Unanswered {
 public:
  Unanswered(Offloads& offloads, const state::Stateid& stateid)
      : offloads_(&offloads), stateid_(stateid) {}
  Unanswered(const Unanswered&) = delete;
  ~Unanswered() {
    if (offloads_ != nullptr) offloads_->give_up(stateid_);
  }
  void answered() { offloads_ = nullptr; }

 private:
  Offloads* offloads_;
  const state::Stateid stateid_;
};

// Until answer() says something. What ends may lack the memory to tell it.
Task<Offloads::Answer> answer_of(Compound& compound, Offloads& offloads,
                                 const state::Stateid& stateid) {
  bool ready = false;
  while (!ready)
    ready = co_await told_in_time(
        compound, compound.now() + kLook,
        [&](UniqueFunction<void()> done) { return offloads.answerable(stateid, std::move(done)); });
  co_return offloads.answer(stateid);
}

// It would hold a connection. A client that has many waits for these; copies of strangers may go on
// for hours, and it copies by other means (RFC 7862 11.1.2.1).
v4::nfsstat4 refusal_of_one_more(Compound& compound, const Offloads& offloads) {
  const state::Limit limit = offloads.limit_at(compound.life()->clientid);
  note_limit(compound, Reason::Nfs4CopiesTooMany, limit);
  return limit == state::Limit::All ? v4::NFS4ERR_OFFLOAD_DENIED : v4::NFS4ERR_DELAY;
}

}  // namespace

Task<v4::COPY4res> copy_from_server(Compound& compound, v4::COPY4args& args) {
  Offloads* const offloads = compound.shared().offloads.load(std::memory_order_acquire);
  auto source = source_of(compound, offloads, args);
  if (!source) co_return v4::COPY4res{source.error(), {}};
  const ExportObject to = compound.object();
  if (to.read_only()) co_return v4::COPY4res{v4::NFS4ERR_ROFS, {}};
  const Permitted permitted =
      co_await check_stateid_patiently(compound, to, args.ca_dst_stateid, state::Touch::Write);
  if (!permitted) co_return v4::COPY4res{permitted.error(), {}};
  const bool can_go_on = co_await offloads->can_go_on(compound, args);
  source->synchronous = !can_go_on;
  const auto to_stateid = compound.meant(args.ca_dst_stateid);
  const std::uint64_t verifier = compound.shared().server.write_verifier(to.store());
  const FileCopy copy(to, {args.ca_src_offset, args.ca_dst_offset, args.ca_count});
  OffloadedCopy apart = offloaded_copy(compound, copy, *to_stateid, verifier, *permitted);
  apart.source = *std::move(source);
  const auto begun = offloads->begin(std::move(apart));
  if (!begun) co_return v4::COPY4res{refusal_of_one_more(compound, *offloads), {}};
  Unanswered unanswered(*offloads, *begun);
  const Offloads::Answer answer = co_await answer_of(compound, *offloads, *begun);
  v4::COPY4res results = results_of(answer, *begun, verifier);
  unanswered.answered();
  co_return results;
}

}  // namespace stag::nfs::nfs4
