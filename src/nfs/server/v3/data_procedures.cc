// READ, WRITE and COMMIT (RFC 1813 3.3.6, 3.3.7, 3.3.21).
#include <algorithm>

#include "nfs/server/v3/procedures.h"

namespace stag::nfs::nfs3 {

Task<v3::READ3res> read(Request request, v3::READ3args args) {
  v3::READ3res res;
  const auto object = request.resolve(args.file);
  if (!object) {
    res.status = request.failure(object.error());
    co_return res;
  }
  if (request.guarded()) {
    if (const auto refused = co_await request.refused(*object, state::Touch::Read)) {
      res.status = request.failure(*refused);
      res.resfail().file_attributes = co_await post_op_attributes(*object);
      co_return res;
    }
  }
  // 3.3.6: of a count above rtmax only rtmax bytes are returned.
  auto found = co_await object->store().read(object->caller(), object->handle, args.offset,
                                             std::min(args.count, kMaxTransfer));
  if (found) {
    res.status = v3::NFS3_OK;
    v3::READ3resok& ok = res.resok();
    ok.file_attributes = to_post_op_attr(found->attributes);
    ok.count = static_cast<std::uint32_t>(found->data.size());
    ok.eof = found->eof;
    ok.data = std::move(found->data);
    co_return res;
  }
  res.status = request.failure(found.error());
  res.resfail().file_attributes = co_await post_op_attributes(*object);
  co_return res;
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
v3::nfsstat3 refusal(const v3::WRITE3args& args, const ExportObject& object) {
  if (object.read_only()) return v3::NFS3ERR_ROFS;
  // 3.3.7: count is "the number of bytes of data to be written", and data those bytes.
  if (args.count != args.data.size()) return v3::NFS3ERR_INVAL;
  return v3::NFS3_OK;
}

}  // namespace

Task<v3::WRITE3res> write(Request request, v3::WRITE3args args) {
  v3::WRITE3res res;
  const auto object = request.resolve(args.file);
  if (!object) {
    res.status = request.failure(object.error());
    co_return res;
  }
  res.status = refusal(args, *object);
  if (res.status == v3::NFS3_OK && request.guarded())
    if (const auto refused = co_await request.refused(*object, state::Touch::Write))
      res.status = request.failure(*refused);
  if (res.status == v3::NFS3_OK) {
    // 3.3.7: of more than wtmax bytes only wtmax are written. They are copied: a store that keeps
    // the Buffer would keep all received bytes in memory.
    if (args.data.size() > kMaxTransfer)
      args.data = Rope::copy_of(args.data.slice(0, kMaxTransfer).flatten().bytes());
    // Read first: data that is lost during the write must not look safe under the later verifier.
    const v3::writeverf3 verifier = request.write_verifier(*object);
    const auto written =
        co_await object->store().write(object->caller(), object->handle, args.offset,
                                       std::move(args.data), to_stability(args.stable));
    if (written) {
      res.resok() = {to_wcc_data(written->file), written->count, to_stable_how(written->committed),
                     verifier};
      co_return res;
    }
    res.status = request.failure(written.error());
  }
  res.resfail().file_wcc = co_await wcc_now(*object);
  co_return res;
}

Task<v3::COMMIT3res> commit(Request request, v3::COMMIT3args args) {
  v3::COMMIT3res res;
  const auto object = request.resolve(args.file);
  if (!object) {
    res.status = request.failure(object.error());
    co_return res;
  }
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
