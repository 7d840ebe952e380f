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

using Reading = vfs::Operation<vfs::ReadResult>;
using Writing = vfs::Operation<vfs::WriteResult>;

v4::READ4res to_results(vfs::ReadResult&& found) {
  v4::READ4res results;
  results.resok4() = {found.eof, std::move(found.data)};
  return results;
}

Task<v4::READ4res> read_later(const ExportObject& object, Reading reading) {
  auto found = co_await std::move(reading);
  if (!found) co_return v4::READ4res{co_await read_status(object, found.error()), {}};
  co_return to_results(*std::move(found));
}

Eventual<v4::READ4res> read_now(const ExportObject& object, const v4::READ4args& args) {
  Reading reading = object.store().read(object.caller(), object.handle, args.offset,
                                        std::min(args.count, kMaxTransfer));
  if (reading.ready() && reading.value()) return to_results(*std::move(reading.value()));
  return read_later(object, std::move(reading));
}

Task<v4::READ4res> read_in_time(Compound& compound, v4::READ4args& args) {
  const ExportObject& object = compound.object();
  const auto permitted =
      co_await check_stateid_in_time(compound, object, args.stateid, state::Touch::Read);
  if (!permitted) co_return v4::READ4res{permitted.error(), {}};
  co_return co_await read_now(object, args);
}

v4::WRITE4res to_results(const vfs::WriteResult& written, std::uint64_t verifier) {
  v4::WRITE4res results;
  v4::WRITE4resok& ok = results.resok4();
  ok.count = written.count;
  ok.committed = to_stable_how4(written.committed);
  store_be(ok.writeverf.data(), verifier);
  return results;
}

Task<v4::WRITE4res> write_later(const ExportObject& object, Writing writing, std::uint64_t verifier,
                                state::FileChange change) {
  const auto written = co_await std::move(writing);
  change.end();
  if (!written) co_return v4::WRITE4res{co_await read_status(object, written.error()), {}};
  co_return to_results(*written, verifier);
}

Eventual<v4::WRITE4res> write_now(Compound& compound, v4::WRITE4args& args,
                                  state::FileChange change) {
  const ExportObject& object = compound.object();
  // Of more than maxwrite bytes only so many are written. They are copied: a store that keeps what
  // it is given would keep all that was received.
  if (args.data.size() > kMaxTransfer)
    args.data = Rope::copy_of(args.data.slice(0, kMaxTransfer).flatten().bytes());
  // Taken first: data lost while we write must not look safe under the later verifier.
  const std::uint64_t verifier = compound.shared().server.write_verifier(object.store());
  Writing writing = object.store().write(object.caller(), object.handle, args.offset,
                                         std::move(args.data), to_stability(args.stable));
  if (writing.ready() && writing.value()) return to_results(*writing.value(), verifier);
  return write_later(object, std::move(writing), verifier, std::move(change));
}

Task<v4::WRITE4res> write_in_time(Compound& compound, v4::WRITE4args& args) {
  auto permitted = co_await check_stateid_in_time(compound, compound.object(), args.stateid,
                                                  state::Touch::Write);
  if (!permitted) co_return v4::WRITE4res{permitted.error(), {}};
  co_return co_await write_now(compound, args, *std::move(permitted));
}

}  // namespace

Eventual<v4::READ4res> read(Compound& compound, v4::READ4args& args) {
  const ExportObject& object = compound.object();
  const auto permitted = check_stateid_to_read(compound, object, args.stateid);
  if (is_delayed(permitted)) return read_in_time(compound, args);
  if (!permitted) return v4::READ4res{permitted.error(), {}};
  return read_now(object, args);
}

Eventual<v4::WRITE4res> write(Compound& compound, v4::WRITE4args& args) {
  const ExportObject& object = compound.object();
  if (object.read_only()) return v4::WRITE4res{v4::NFS4ERR_ROFS, {}};
  auto permitted = check_stateid(compound, object, args.stateid, state::Touch::Write);
  if (is_delayed(permitted)) return write_in_time(compound, args);
  if (!permitted) return v4::WRITE4res{permitted.error(), {}};
  return write_now(compound, args, *std::move(permitted));
}

}  // namespace stag::nfs::nfs4
