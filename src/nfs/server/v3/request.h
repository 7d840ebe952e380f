// What every NFSv3 procedure starts from: the Call, what is served, and the object its file handle
// names for this caller.
#pragma once

#include "nfs/export/export_table.h"
#include "nfs/export/file_handle.h"
#include "nfs/server/v3/attributes.h"
#include "nfs/server/v3/status.h"
#include "rpc/program.h"

namespace stag::nfs {

// Transfer sizes offered in FSINFO (RFC 1813 3.3.19), bytes.
inline constexpr std::uint32_t kMaxTransfer = 1 << 20;

// What all Calls share; constant while serving, but for the exports.
struct Served {
  Served(const FileHandles& with, std::uint64_t verifier)
      : handles(with), boot_verifier(verifier) {}

  const FileHandles handles;
  const std::uint64_t boot_verifier;
  ExportTable exports;

  // Another value after each start of the server, and whenever the store says that unstable data
  // may be lost (RFC 1813 3.3.7, 3.3.21).
  v3::writeverf3 write_verifier(const vfs::FileSystem& file_system) const;
};

// One object as one caller reaches it; used within the Call that resolved it, whose Request keeps
// the export.
struct Object {
  const Export* export_ = nullptr;
  const ExportOptions* options = nullptr;
  vfs::Handle handle;
  vfs::Credentials credentials;
  Loop* loop = nullptr;
  const void* connection = nullptr;  // its share of the store's workers is taken

  vfs::FileSystem& store() const { return export_->file_system(); }
  vfs::Caller caller() const { return {*loop, credentials, connection}; }
  bool read_only() const { return options->read_only; }
};

// The object on its export's terms for this Call; nothing, and traced, when the export is not open
// to it. `found` outlives the Object.
std::optional<Object> admit(const Export& found, const vfs::Handle& handle,
                            const rpc::CallContext& call);

class Request {
 public:
  // `procedure` is the number of the NFSv3 procedure that is executed.
  Request(const Served& served, const rpc::CallContext& call, std::uint32_t procedure)
      : served_(served), call_(call), procedure_(procedure), exports_(served.exports.current()) {}

  const Served& served() const { return served_; }

  // BADHANDLE for a handle this server did not make, STALE when its export is gone, ACCES when the
  // export does not let this Call in.
  Result<Object, v3::nfsstat3> resolve(const v3::nfs_fh3& handle) const;

  // The statuses this procedure may return.
  v3::nfsstat3 failure(vfs::Status status) const { return to_nfsstat3(procedure_, status); }
  v3::nfsstat3 failure(v3::nfsstat3 status) const { return permitted(procedure_, status); }

  v3::nfs_fh3 handle_of(const Object& relative, const vfs::Handle& object) const;
  v3::post_op_fh3 post_op_fh(const Object& relative, const vfs::Handle& object) const;

 private:
  const Served& served_;
  const rpc::CallContext& call_;
  std::uint32_t procedure_;
  std::shared_ptr<const Exports> exports_;
};

// The attributes that go with an error; absent when they cannot be had.
Task<v3::post_op_attr> attributes_now(const Object& object);
// wcc_data that goes with an error: only what holds after it.
Task<v3::wcc_data> wcc_now(const Object& object);

}  // namespace stag::nfs
