// REMOVE and RMDIR (RFC 1813 3.3.12, 3.3.13).
#include "nfs/server/v3/procedures.h"

namespace stag::nfs::nfs3 {

namespace {

template <class Res>
Task<Res> answer_removal(const Request& request, const ExportObject& directory,
                         vfs::Outcome<vfs::Change> removed) {
  Res res;
  if (removed) {
    res.status = v3::NFS3_OK;
    res.resok().dir_wcc = to_wcc_data(*removed);
    co_return res;
  }
  res.status = request.failure(removed.error());
  res.resfail().dir_wcc = co_await wcc_now(directory);
  co_return res;
}

}  // namespace

Task<v3::REMOVE3res> remove(Request request, v3::REMOVE3args args) {
  const auto directory = co_await request.resolve(args.object.dir);
  if (!directory) co_return failed<v3::REMOVE3res>(request.failure(directory.error()));
  std::optional<vfs::Status> refused;
  if (directory->read_only())
    refused = vfs::Status::ReadOnly;
  else if (request.guarded())
    refused = co_await request.refused_remove(*directory, args.object.name);
  vfs::Outcome<vfs::Change> removed = Failure{refused.value_or(vfs::Status::ReadOnly)};
  if (!refused)
    removed = co_await directory->store().remove(directory->caller(), directory->handle,
                                                 args.object.name);
  co_return co_await answer_removal<v3::REMOVE3res>(request, *directory, std::move(removed));
}

Task<v3::RMDIR3res> rmdir(Request request, v3::RMDIR3args args) {
  const auto directory = co_await request.resolve(args.object.dir);
  if (!directory) co_return failed<v3::RMDIR3res>(request.failure(directory.error()));
  vfs::Outcome<vfs::Change> removed = Failure{vfs::Status::ReadOnly};
  if (!directory->read_only())
    removed =
        co_await directory->store().rmdir(directory->caller(), directory->handle, args.object.name);
  co_return co_await answer_removal<v3::RMDIR3res>(request, *directory, std::move(removed));
}

}  // namespace stag::nfs::nfs3
