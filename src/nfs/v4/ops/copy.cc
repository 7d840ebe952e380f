// COPY (RFC 7862 15.2): from the saved file to the current one, on this server, in order. What
// takes more than a piece goes on after the answer where the client lets it. copy_from_server.cc
// has copies from others.
#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/ops/offloads.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

namespace {

Task<Permitted> may_copy(Compound& compound, const ExportObject& from, const ExportObject& to,
                         const v4::COPY4args& args) {
  if (to.read_only()) co_return Failure{v4::NFS4ERR_ROFS};
  if (from.key() == to.key()) co_return Failure{v4::NFS4ERR_INVAL};
  const auto read =
      co_await check_stateid_patiently(compound, from, args.ca_src_stateid, state::Touch::Read);
  if (!read) co_return Failure{read.error()};
  co_return co_await check_stateid_patiently(compound, to, args.ca_dst_stateid,
                                             state::Touch::Write);
}

bool nobody_waits(const Compound& compound) {
  const auto& connection = compound.admission().call().connection();
  return connection != nullptr && connection->down();
}

// The stateid of what goes on by itself; nullopt: it does not.
Task<std::optional<state::Stateid>> leave(Compound& compound, FileCopy& copy,
                                          const v4::COPY4args& args, std::uint64_t verifier,
                                          const state::FileChange& change) {
  Offloads* const offloads = compound.shared().offloads.load(std::memory_order_acquire);
  if (offloads == nullptr) co_return std::nullopt;
  const bool can_go_on = co_await offloads->can_go_on(compound, args);
  if (!can_go_on) co_return std::nullopt;
  const state::Limit limit = offloads->limit_at(compound.life()->clientid);
  if (limit != state::Limit::None) {
    note_limit(compound, Reason::Nfs4CopiesTooMany, limit);
    co_return std::nullopt;
  }
  const auto from = compound.meant(args.ca_src_stateid);
  const auto to = compound.meant(args.ca_dst_stateid);
  if (!from || !to) co_return std::nullopt;
  OffloadedCopy left = offloaded_copy(compound, copy, *to, verifier, change);
  left.from_stateid = *from;
  co_return offloads->begin(std::move(left));
}

// As far as one answer goes.
Task<void> copy_here(Compound& compound, FileCopy& copy) {
  while (!copy.done() && copy.count() < kLargestAnswer) {
    if (nobody_waits(compound)) break;
    // Others have their turn between two pieces.
    co_await resume_on(compound.admission().call().loop());
    const v4::nfsstat4 status = co_await copy.step();
    // What was copied before is told, the fault to the one who asks for the rest.
    if (status != v4::NFS4_OK) break;
  }
}

}  // namespace

Task<v4::COPY4res> copy(Compound& compound, v4::COPY4args& args) {
  if (!args.ca_source_server.empty()) co_return co_await copy_from_server(compound, args);
  if (is_foreign(compound.saved())) co_return v4::COPY4res{v4::NFS4ERR_STALE, {}};
  const ExportObject from = compound.saved_object();
  const ExportObject to = compound.object();
  const auto permitted = co_await may_copy(compound, from, to, args);
  if (!permitted) co_return v4::COPY4res{permitted.error(), {}};
  // Taken first: data lost while we write must not look safe under the later verifier.
  const std::uint64_t verifier = compound.shared().server.write_verifier(to.store());
  FileCopy copy(from, to, {args.ca_src_offset, args.ca_dst_offset, args.ca_count});
  if (const v4::nfsstat4 status = co_await copy.step(); status != v4::NFS4_OK)
    co_return v4::COPY4res{status, {}};
  v4::COPY4res results;
  v4::COPY4resok& ok = results.cr_resok4();
  ok.cr_requirements = {true, true};
  std::optional<state::Stateid> left;
  if (!copy.done()) left = co_await leave(compound, copy, args, verifier, *permitted);
  if (left) {
    ok.cr_response.wr_callback_id.push_back(to_stateid4(*left));
    ok.cr_requirements.cr_synchronous = false;
  } else {
    co_await copy_here(compound, copy);
  }
  ok.cr_response.wr_count = copy.count();
  ok.cr_response.wr_committed = static_cast<v4::stable_how4>(copy.committed());
  store_be(ok.cr_response.wr_writeverf.data(), verifier);
  co_return results;
}

}  // namespace stag::nfs::nfs4
