#include "nfs/server/v3/request.h"

#include "base/reason.h"

namespace stag::nfs {

v3::writeverf3 Served::write_verifier(const vfs::FileSystem& file_system) const {
  v3::writeverf3 verifier;
  store_be(verifier.data(), boot_verifier + file_system.losses());
  return verifier;
}

std::optional<Object> admit(const Export& found, const vfs::Handle& handle,
                            const rpc::CallContext& call) {
  const ExportOptions* options = found.options_for(call.origin());
  if (options == nullptr) {
    trace(Reason::NfsClientNotAdmitted, to_string(call.origin().peer), found.path());
    return std::nullopt;
  }
  return Object{&found,       options,       handle, acting_as(*options, call.caller()),
                &call.loop(), &call.origin()};
}

Result<Object, v3::nfsstat3> Request::resolve(const v3::nfs_fh3& handle) const {
  const auto opened = served_.handles.open(handle.data.bytes());
  if (!opened) return Failure{failure(v3::NFS3ERR_BADHANDLE)};
  const Export* found = exports_->find(opened->export_id);
  if (found == nullptr) return Failure{failure(v3::NFS3ERR_STALE)};
  std::optional<Object> object = admit(*found, opened->object, call_);
  if (!object) return Failure{failure(v3::NFS3ERR_ACCES)};
  return *std::move(object);
}

v3::nfs_fh3 Request::handle_of(const Object& relative, const vfs::Handle& object) const {
  const FileHandles::Sealed sealed = served_.handles.seal(relative.export_->id, object);
  v3::nfs_fh3 handle;
  STAG_CHECK(handle.data.assign(sealed.bytes()));
  return handle;
}

v3::post_op_fh3 Request::post_op_fh(const Object& relative, const vfs::Handle& object) const {
  v3::post_op_fh3 handle;
  handle.handle_follows = true;
  handle.handle() = handle_of(relative, object);
  return handle;
}

Task<v3::post_op_attr> attributes_now(const Object& object) {
  const auto found = co_await object.store().attributes(object.caller(), object.handle);
  if (!found) co_return v3::post_op_attr{};
  co_return to_post_op_attr(*found);
}

Task<v3::wcc_data> wcc_now(const Object& object) {
  v3::wcc_data wcc;
  wcc.after = co_await attributes_now(object);
  co_return wcc;
}

}  // namespace stag::nfs
