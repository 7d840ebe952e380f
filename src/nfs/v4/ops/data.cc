// READ and WRITE (RFC 8881 18.22, 18.32).
#include <algorithm>

#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/ranges.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

namespace {

// The orders are the same.
vfs::Stability to_stability(v4::stable_how4 how) {
  static_assert(v4::UNSTABLE4 == 0 && v4::DATA_SYNC4 == 1 && v4::FILE_SYNC4 == 2);
  return static_cast<vfs::Stability>(how);
}
v4::stable_how4 to_stable_how4(vfs::Stability stability) {
  return static_cast<v4::stable_how4>(stability);
}

}  // namespace

Task<v4::READ4res> read(Compound& compound, v4::READ4args& args) {
  const ExportObject object = compound.object();
  auto refused = check_stateid(compound, object, args.stateid, state::Touch::Read);
  if (refused == v4::NFS4ERR_DELAY)
    refused = co_await check_stateid_in_time(compound, object, args.stateid, state::Touch::Read);
  if (refused) co_return v4::READ4res{*refused, {}};
  auto found = co_await object.store().read(object.caller(), object.handle, args.offset,
                                            std::min(args.count, kMaxTransfer));
  if (!found) co_return v4::READ4res{co_await read_status(object, found.error()), {}};
  v4::READ4res results;
  results.resok4() = {found->eof, std::move(found->data)};
  co_return results;
}

Task<v4::WRITE4res> write(Compound& compound, v4::WRITE4args& args) {
  const ExportObject object = compound.object();
  if (object.read_only()) co_return v4::WRITE4res{v4::NFS4ERR_ROFS, {}};
  auto refused = check_stateid(compound, object, args.stateid, state::Touch::Write);
  if (refused == v4::NFS4ERR_DELAY)
    refused = co_await check_stateid_in_time(compound, object, args.stateid, state::Touch::Write);
  if (refused) co_return v4::WRITE4res{*refused, {}};
  // Of more than maxwrite bytes only so many are written. They are copied: a store that keeps what
  // it is given would keep all that was received.
  if (args.data.size() > kMaxTransfer)
    args.data = Rope::copy_of(args.data.slice(0, kMaxTransfer).flatten().bytes());
  // Taken first: data lost while we write must not look safe under the later verifier.
  const std::uint64_t verifier = compound.shared().server.write_verifier(object.store());
  const auto written = co_await object.store().write(
      object.caller(), object.handle, args.offset, std::move(args.data), to_stability(args.stable));
  if (!written) co_return v4::WRITE4res{co_await read_status(object, written.error()), {}};
  v4::WRITE4res results;
  v4::WRITE4resok& ok = results.resok4();
  ok.count = written->count;
  ok.committed = to_stable_how4(written->committed);
  store_be(ok.writeverf.data(), verifier);
  co_return results;
}

}  // namespace stag::nfs::nfs4
