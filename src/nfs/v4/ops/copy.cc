// COPY (RFC 7862 15.2): from the saved file to the current one, on this server, in order and before
// it is answered.
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/file_copy.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/ranges.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

namespace {

// One COPY moves so many bytes at most; the client asks for the rest.
constexpr std::uint64_t kLargestAnswer = 64 << 20;

std::optional<v4::nfsstat4> refused(Compound& compound, const ExportObject& from,
                                    const ExportObject& to, const v4::COPY4args& args) {
  // Another server's file: the client falls back on READ and WRITE (11.1.2.1).
  if (!args.ca_source_server.empty()) return v4::NFS4ERR_OFFLOAD_DENIED;
  if (to.read_only()) return v4::NFS4ERR_ROFS;
  if (from.handle == to.handle && &from.store() == &to.store()) return v4::NFS4ERR_INVAL;
  if (const auto status = check_stateid(compound, from, args.ca_src_stateid, state::Touch::Read))
    return status;
  return check_stateid(compound, to, args.ca_dst_stateid, state::Touch::Write);
}

bool nobody_waits(const Compound& compound) {
  const auto& connection = compound.admission().call().connection();
  return connection != nullptr && connection->down();
}

Task<v4::nfsstat4> failed(const FileCopy& copy, vfs::Status why) {
  const v4::nfsstat4 status = co_await range_status(copy.from(), why);
  if (status == v4::NFS4ERR_WRONG_TYPE) co_return status;
  co_return co_await range_status(copy.to(), why);
}

}  // namespace

Task<v4::COPY4res> copy(Compound& compound, v4::COPY4args& args) {
  const ExportObject from = compound.saved_object();
  const ExportObject to = compound.object();
  if (const auto status = refused(compound, from, to, args)) co_return v4::COPY4res{*status, {}};
  // Taken first: data lost while we write must not look safe under the later verifier.
  const std::uint64_t verifier = compound.shared().server.write_verifier(to.store());
  FileCopy copy(from, to, {args.ca_src_offset, args.ca_dst_offset, args.ca_count});
  while (!copy.done() && copy.count() < kLargestAnswer) {
    if (copy.count() > 0) {
      if (nobody_waits(compound)) break;
      // Others have their turn between two pieces.
      co_await resume_on(compound.admission().call().loop());
    }
    const auto fault = co_await copy.step();
    // What was copied before is told, the fault to the one who asks for the rest.
    if (fault && copy.count() > 0) break;
    if (fault) co_return v4::COPY4res{co_await failed(copy, *fault), {}};
  }
  v4::COPY4res results;
  v4::COPY4resok& ok = results.cr_resok4();
  ok.cr_response.wr_count = copy.count();
  ok.cr_response.wr_committed = static_cast<v4::stable_how4>(copy.committed());
  store_be(ok.cr_response.wr_writeverf.data(), verifier);
  ok.cr_requirements = {true, true};
  co_return results;
}

}  // namespace stag::nfs::nfs4
