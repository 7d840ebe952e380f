// READ, WRITE and COMMIT (RFC 1813 3.3.6, 3.3.7, 3.3.21).
#include <algorithm>

#include "nfs/server/v3/procedures.h"

namespace stag::nfs::nfs3 {

namespace {

using ReadCall = Running<v3::NFSPROC3_READ>;
using WriteCall = Running<v3::NFSPROC3_WRITE>;
using Reading = vfs::Operation<vfs::ReadResult>;
using Writing = vfs::Operation<vfs::WriteResult>;
using Permitted = Admission::Permitted;

Task<v3::READ3res> read_failed(const ReadCall& call, vfs::Status status) {
  v3::READ3res res;
  res.status = call.request.failure(status);
  res.resfail().file_attributes = co_await post_op_attributes(*call.object);
  co_return res;
}

Eventual<v3::READ3res> read_done(vfs::ReadResult& found) {
  Eventual<v3::READ3res> made(std::in_place);
  v3::READ3resok& ok = made.value().resok();
  ok.file_attributes = to_post_op_attr(found.attributes);
  ok.count = static_cast<std::uint32_t>(found.data.size());
  ok.eof = found.eof;
  ok.data = std::move(found.data);
  return made;
}

Task<v3::READ3res> read_later(const ReadCall& call, Reading reading) {
  auto found = co_await std::move(reading);
  if (found) co_return std::move(read_done(*found).value());
  co_return co_await read_failed(call, found.error());
}

Eventual<v3::READ3res> read_now(const ReadCall& call) {
  const ExportObject& object = *call.object;
  // 3.3.6: of a count above rtmax only rtmax bytes are returned.
  Reading reading = object.store().read(object.caller(), object.handle, call.args.offset,
                                        std::min(call.args.count, kMaxTransfer));
  if (reading.ready() && reading.value()) return read_done(*reading.value());
  return read_later(call, std::move(reading));
}

Task<v3::READ3res> read_guarded(const ReadCall& call) {
  const auto permitted = co_await call.request.permit(*call.object, kToRead);
  if (!permitted) co_return co_await read_failed(call, permitted.error());
  co_return co_await read_now(call);
}

}  // namespace

Eventual<v3::READ3res> read(ReadCall& call) {
  if (!call.object) {
    if (call.undecided())
      return when_decided<read, &v3::READ3args::file>(call, Request::Security::Checked);
    return v3::READ3res{call.request.failure(call.object.error()), {}};
  }
  if (call.request.guarded()) return read_guarded(call);
  return read_now(call);
}

namespace {

vfs::Stability to_stability(v3::stable_how how) {
  switch (how) {
    case v3::UNSTABLE:
      return vfs::Stability::Unstable;
    case v3::DATA_SYNC:
      return vfs::Stability::DataSync;
    case v3::FILE_SYNC:
      return vfs::Stability::FileSync;
  }
  return vfs::Stability::FileSync;
}

v3::stable_how to_stable_how(vfs::Stability stability) {
  switch (stability) {
    case vfs::Stability::Unstable:
      return v3::UNSTABLE;
    case vfs::Stability::DataSync:
      return v3::DATA_SYNC;
    case vfs::Stability::FileSync:
      return v3::FILE_SYNC;
  }
  return v3::UNSTABLE;
}

// Why a WRITE is refused before the store is called.
v3::nfsstat3 refusal(const WriteCall& call) {
  if (!call.object) return call.request.failure(call.object.error());
  if (call.object->read_only()) return v3::NFS3ERR_ROFS;
  // 3.3.7: count is "the number of bytes of data to be written", and data those bytes.
  if (call.args.count != call.args.data.size()) return v3::NFS3ERR_INVAL;
  return v3::NFS3_OK;
}

Task<v3::WRITE3res> write_failed(const WriteCall& call, v3::nfsstat3 status) {
  v3::WRITE3res res;
  res.status = status;
  if (call.object) res.resfail().file_wcc = co_await wcc_now(*call.object);
  co_return res;
}

Eventual<v3::WRITE3res> write_done(const vfs::WriteResult& written, v3::writeverf3 verifier) {
  Eventual<v3::WRITE3res> made(std::in_place);
  v3::WRITE3resok& ok = made.value().resok();
  ok.file_wcc = to_wcc_data(written.file);
  ok.count = written.count;
  ok.committed = to_stable_how(written.committed);
  ok.verf = verifier;
  return made;
}

Task<v3::WRITE3res> write_later(const WriteCall& call, Writing writing, v3::writeverf3 verifier,
                                state::FileChange change) {
  const auto written = co_await std::move(writing);
  change.end();
  if (written) co_return std::move(write_done(*written, verifier).value());
  co_return co_await write_failed(call, call.request.failure(written.error()));
}

Eventual<v3::WRITE3res> write_now(WriteCall& call, state::FileChange change) {
  const ExportObject& object = *call.object;
  // 3.3.7: of more than wtmax bytes only wtmax are written. They are copied: a store that keeps the
  // Buffer would keep all received bytes in memory.
  Rope& data = call.args.data;
  if (data.size() > kMaxTransfer)
    data = Rope::copy_of(data.slice(0, kMaxTransfer).flatten().bytes());
  // Read first: data that is lost during the write must not look safe under the later verifier.
  const v3::writeverf3 verifier = call.request.write_verifier(object);
  Writing writing = object.store().write(object.caller(), object.handle, call.args.offset,
                                         std::move(data), to_stability(call.args.stable));
  if (writing.ready() && writing.value()) return write_done(*writing.value(), verifier);
  return write_later(call, std::move(writing), verifier, std::move(change));
}

Task<v3::WRITE3res> write_in_time(WriteCall& call, Eventual<Permitted> asked) {
  auto permitted = co_await std::move(asked);
  if (!permitted) co_return co_await write_failed(call, call.request.failure(permitted.error()));
  co_return co_await write_now(call, *std::move(permitted));
}

}  // namespace

Eventual<v3::WRITE3res> write(WriteCall& call) {
  const v3::nfsstat3 refused = refusal(call);
  if (refused != v3::NFS3_OK) {
    if (call.undecided())
      return when_decided<write, &v3::WRITE3args::file>(call, Request::Security::Checked);
    return write_failed(call, refused);
  }
  Eventual<Permitted> asked = call.request.permit(*call.object, kToWrite);
  if (!asked.ready()) return write_in_time(call, std::move(asked));
  return write_now(call, *std::move(asked.value()));
}

Task<v3::COMMIT3res> commit(Request request, v3::COMMIT3args args) {
  const auto object = co_await request.resolve(args.file);
  if (!object) co_return failed<v3::COMMIT3res>(request.failure(object.error()));
  v3::COMMIT3res res;
  const auto committed =
      co_await object->store().commit(object->caller(), object->handle, args.offset, args.count);
  if (committed) {
    res.status = v3::NFS3_OK;
    res.resok().file_wcc = to_wcc_data(*committed);
    // Taken last: a loss that this commit found out about must show in it.
    res.resok().verf = request.write_verifier(*object);
    co_return res;
  }
  res.status = request.failure(committed.error());
  res.resfail().file_wcc = co_await wcc_now(*object);
  co_return res;
}

}  // namespace stag::nfs::nfs3
