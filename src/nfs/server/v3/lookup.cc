// LOOKUP and READLINK (RFC 1813 3.3.3, 3.3.5).
#include "nfs/server/v3/procedures.h"

namespace stag::nfs::nfs3 {

Task<v3::LOOKUP3res> lookup(Request request, v3::LOOKUP3args args) {
  const auto directory = co_await request.resolve(args.what.dir);
  if (!directory) co_return failed<v3::LOOKUP3res>(request.failure(directory.error()));
  v3::LOOKUP3res res;
  const auto found =
      co_await directory->store().lookup(directory->caller(), directory->handle, args.what.name);
  if (found) {
    res.status = v3::NFS3_OK;
    v3::LOOKUP3resok& ok = res.resok();
    ok.object = request.handle_of(*directory, found->node.handle);
    ok.obj_attributes = to_post_op_attr(found->node.attributes);
    ok.dir_attributes = to_post_op_attr(found->directory);
    co_return res;
  }
  res.status = request.failure(found.error());
  res.resfail().dir_attributes = co_await post_op_attributes(*directory);
  co_return res;
}

Task<v3::READLINK3res> readlink(Request request, v3::READLINK3args args) {
  const auto object = co_await request.resolve(args.symlink);
  if (!object) co_return failed<v3::READLINK3res>(request.failure(object.error()));
  v3::READLINK3res res;
  auto found = co_await object->store().readlink(object->caller(), object->handle);
  if (found) {
    res.status = v3::NFS3_OK;
    res.resok().symlink_attributes = to_post_op_attr(found->attributes);
    res.resok().data = std::move(found->target);
    co_return res;
  }
  res.status = request.failure(found.error());
  res.resfail().symlink_attributes = co_await post_op_attributes(*object);
  co_return res;
}

}  // namespace stag::nfs::nfs3
