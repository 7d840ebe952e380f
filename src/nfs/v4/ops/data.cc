// READ and WRITE (RFC 8881 18.22, 18.32).
#include <algorithm>

#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/ranges.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

namespace {

// The orders are the same, on which encoded() relies, too.
vfs::Stability to_stability(v4::stable_how4 how) {
  static_assert(v4::UNSTABLE4 == 0 && v4::DATA_SYNC4 == 1 && v4::FILE_SYNC4 == 2);
  return static_cast<vfs::Stability>(how);
}
using Reading = vfs::Operation<vfs::ReadResult>;
using Writing = vfs::Operation<vfs::WriteResult>;

v4::nfsstat4 encoded(xdr::Encoder& to, v4::nfsstat4 error) {
  to.u32(error);
  return error;
}
v4::nfsstat4 encoded(Compound& compound, xdr::Encoder& to, const vfs::ReadResult& found) {
  compound.note_moved(found.data.size());
  to.u32s(v4::NFS4_OK, found.eof);
  to.opaque(v4::item::READ4resok_data, found.data);
  return v4::NFS4_OK;
}
v4::nfsstat4 encoded(Compound& compound, xdr::Encoder& to, const vfs::WriteResult& written,
                     std::uint64_t verifier) {
  compound.note_moved(written.count);
  to.integers(static_cast<std::uint32_t>(v4::NFS4_OK), written.count,
              static_cast<std::uint32_t>(written.committed), verifier);
  return v4::NFS4_OK;
}

Task<v4::nfsstat4> read_later(Compound& compound, xdr::Encoder& to, Reading reading) {
  const auto found = co_await std::move(reading);
  if (!found) co_return encoded(to, co_await read_status(compound.object(), found.error()));
  co_return encoded(compound, to, *found);
}

Eventual<v4::nfsstat4> read_now(Compound& compound, const ReadArguments& args, xdr::Encoder& to) {
  const ExportObject& object = compound.object();
  Reading reading = object.store().read(object.caller(), object.handle, args.offset,
                                        std::min(args.count, kMaxTransfer));
  if (reading.ready() && reading.value()) return encoded(compound, to, *reading.value());
  return read_later(compound, to, std::move(reading));
}

Task<v4::nfsstat4> read_in_time(Compound& compound, ReadArguments& args, xdr::Encoder& to) {
  const ExportObject& object = compound.object();
  const auto permitted =
      co_await check_stateid_in_time(compound, object, args.stateid, state::Touch::Read);
  if (!permitted) co_return encoded(to, permitted.error());
  co_return co_await read_now(compound, args, to);
}

Task<v4::nfsstat4> write_later(Compound& compound, xdr::Encoder& to, Writing writing,
                               std::uint64_t verifier, state::FileChange change) {
  const auto written = co_await std::move(writing);
  change.end();
  if (!written) co_return encoded(to, co_await read_status(compound.object(), written.error()));
  co_return encoded(compound, to, *written, verifier);
}

Eventual<v4::nfsstat4> write_now(Compound& compound, WriteArguments& args, state::FileChange change,
                                 xdr::Encoder& to) {
  const ExportObject& object = compound.object();
  // Of more than maxwrite bytes only so many are written. They are copied: a store that keeps what
  // it is given would keep all that was received.
  if (args.data.size() > kMaxTransfer)
    args.data = Rope::copy_of(args.data.slice(0, kMaxTransfer).flatten().bytes());
  // Taken first: data lost while we write must not look safe under the later verifier.
  const std::uint64_t verifier = compound.shared().server.write_verifier(object.store());
  Writing writing = object.store().write(object.caller(), object.handle, args.offset,
                                         std::move(args.data), to_stability(args.stable));
  if (writing.ready() && writing.value()) return encoded(compound, to, *writing.value(), verifier);
  return write_later(compound, to, std::move(writing), verifier, std::move(change));
}

Task<v4::nfsstat4> write_in_time(Compound& compound, WriteArguments& args, xdr::Encoder& to) {
  auto permitted = co_await check_stateid_in_time(compound, compound.object(), args.stateid,
                                                  state::Touch::Write);
  if (!permitted) co_return encoded(to, permitted.error());
  co_return co_await write_now(compound, args, *std::move(permitted), to);
}

}  // namespace

Eventual<v4::nfsstat4> read(Compound& compound, ReadArguments& args, xdr::Encoder& results) {
  const auto permitted = check_stateid_to_read(compound, compound.object(), args.stateid);
  if (is_delayed(permitted)) return read_in_time(compound, args, results);
  if (!permitted) return encoded(results, permitted.error());
  return read_now(compound, args, results);
}

Eventual<v4::nfsstat4> write(Compound& compound, WriteArguments& args, xdr::Encoder& results) {
  const ExportObject& object = compound.object();
  if (object.read_only()) return encoded(results, v4::NFS4ERR_ROFS);
  auto permitted = check_stateid(compound, object, args.stateid, state::Touch::Write);
  if (is_delayed(permitted)) return write_in_time(compound, args, results);
  if (!permitted) return encoded(results, permitted.error());
  return write_now(compound, args, *std::move(permitted), results);
}

}  // namespace stag::nfs::nfs4
