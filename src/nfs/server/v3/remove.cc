// REMOVE and RMDIR (RFC 1813 3.3.12, 3.3.13).
#include "nfs/server/v3/procedures.h"

namespace stag::nfs::nfs3 {

Task<v3::REMOVE3res> remove(Request request, v3::REMOVE3args args) {
  v3::REMOVE3res res;
  const auto directory = co_await request.resolve(args.object.dir);
  if (!directory) {
    res.status = request.failure(directory.error());
    co_return res;
  }
  std::optional<vfs::Status> refused;
  if (directory->read_only())
    refused = vfs::Status::ReadOnly;
  else if (request.guarded())
    refused = co_await request.refused_remove(*directory, args.object.name);
  if (refused) {
    res.status = request.failure(*refused);
  } else {
    const auto removed = co_await directory->store().remove(directory->caller(), directory->handle,
                                                            args.object.name);
    if (removed) {
      res.status = v3::NFS3_OK;
      res.resok().dir_wcc = to_wcc_data(*removed);
      co_return res;
    }
    res.status = request.failure(removed.error());
  }
  res.resfail().dir_wcc = co_await wcc_now(*directory);
  co_return res;
}

Task<v3::RMDIR3res> rmdir(Request request, v3::RMDIR3args args) {
  v3::RMDIR3res res;
  const auto directory = co_await request.resolve(args.object.dir);
  if (!directory) {
    res.status = request.failure(directory.error());
    co_return res;
  }
  res.status = v3::NFS3ERR_ROFS;
  if (!directory->read_only()) {
    const auto removed =
        co_await directory->store().rmdir(directory->caller(), directory->handle, args.object.name);
    if (removed) {
      res.status = v3::NFS3_OK;
      res.resok().dir_wcc = to_wcc_data(*removed);
      co_return res;
    }
    res.status = request.failure(removed.error());
  }
  res.resfail().dir_wcc = co_await wcc_now(*directory);
  co_return res;
}

}  // namespace stag::nfs::nfs3
