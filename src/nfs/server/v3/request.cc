#include "nfs/server/v3/request.h"

namespace stag::nfs::nfs3 {

v3::nfs_fh3 Request::handle_of(const ExportObject& relative, const vfs::Handle& object) const {
  v3::nfs_fh3 handle;
  STAG_CHECK(handle.data.assign(Admission::handle_of(relative, object).bytes()));
  return handle;
}

v3::post_op_fh3 Request::post_op_fh(const ExportObject& relative, const vfs::Handle& object) const {
  v3::post_op_fh3 handle;
  handle.handle_follows = true;
  handle.handle() = handle_of(relative, object);
  return handle;
}

v3::writeverf3 Request::write_verifier(const ExportObject& object) const {
  v3::writeverf3 verifier;
  store_be(verifier.data(), server().write_verifier(object.store()));
  return verifier;
}

Task<v3::post_op_attr> post_op_attributes(const ExportObject& object) {
  co_return to_post_op_attr(co_await attributes_now(object));
}

Task<v3::wcc_data> wcc_now(const ExportObject& object) {
  v3::wcc_data wcc;
  wcc.after = co_await post_op_attributes(object);
  co_return wcc;
}

}  // namespace stag::nfs::nfs3
