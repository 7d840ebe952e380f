// FSSTAT, FSINFO and PATHCONF (RFC 1813 3.3.18 to 3.3.20).
#include "nfs/server/v3/procedures.h"

namespace stag::nfs::nfs3 {

namespace {

// Larger ones save few calls and make Linux ask for a name at a time for long (decision 0021).
constexpr std::uint32_t kPreferredListing = 128 * 1024;
constexpr std::uint32_t kTransferMultiple = 4096;

std::uint32_t properties(const vfs::Limits& limits) {
  std::uint32_t bits = v3::FSF3_HOMOGENEOUS;
  if (limits.hard_links) bits |= v3::FSF3_LINK;
  if (limits.symlinks) bits |= v3::FSF3_SYMLINK;
  if (limits.times_can_be_set) bits |= v3::FSF3_CANSETTIME;
  return bits;
}

// The attributes of the object, from the store; STALE when the object does not exist any more.
// nullopt: `res` has the error.
template <class Res>
Task<std::optional<ExportObject>> begin(const Request& request, v3::nfs_fh3 handle, Res& res,
                                        Request::Security security = Request::Security::Checked) {
  const auto object = co_await request.resolve(handle, security);
  if (!object) {
    res.status = request.failure(object.error());
    co_return std::nullopt;
  }
  const auto found = co_await object->store().attributes(object->caller(), object->handle);
  if (!found) {
    res.status = request.failure(found.error());
    co_return std::nullopt;
  }
  res.status = v3::NFS3_OK;
  res.resok().obj_attributes = to_post_op_attr(*found);
  co_return *object;
}

}  // namespace

Task<v3::FSSTAT3res> fsstat(Request request, v3::FSSTAT3args args) {
  v3::FSSTAT3res res;
  const auto object = co_await begin(request, args.fsroot, res);
  if (!object) co_return res;
  const auto usage = co_await object->store().usage(object->caller());
  if (!usage) {
    const v3::post_op_attr attributes = res.resok().obj_attributes;
    res.status = request.failure(usage.error());
    res.resfail().obj_attributes = attributes;
    co_return res;
  }
  v3::FSSTAT3resok& ok = res.resok();
  ok.tbytes = usage->total_bytes;
  ok.fbytes = usage->free_bytes;
  ok.abytes = usage->available_bytes;
  ok.tfiles = usage->total_files;
  ok.ffiles = usage->free_files;
  ok.afiles = usage->available_files;
  ok.invarsec = 0;  // May change at any time.
  co_return res;
}

Task<v3::FSINFO3res> fsinfo(Request request, v3::FSINFO3args args) {
  v3::FSINFO3res res;
  const auto object = co_await begin(request, args.fsroot, res, Request::Security::Mounting);
  if (!object) co_return res;
  const vfs::Limits limits = object->store().limits();
  v3::FSINFO3resok& ok = res.resok();
  ok.rtmax = ok.rtpref = ok.wtmax = ok.wtpref = kMaxTransfer;
  ok.rtmult = ok.wtmult = kTransferMultiple;
  ok.dtpref = kPreferredListing;
  ok.maxfilesize = limits.max_file_size;
  ok.time_delta = to_nfstime3(limits.time_granularity);
  ok.properties = properties(limits);
  co_return res;
}

Task<v3::PATHCONF3res> pathconf(Request request, v3::PATHCONF3args args) {
  v3::PATHCONF3res res;
  const auto object = co_await begin(request, args.object, res);
  if (!object) co_return res;
  const vfs::Limits limits = object->store().limits();
  v3::PATHCONF3resok& ok = res.resok();
  ok.linkmax = limits.max_links;
  ok.name_max = limits.max_name;
  ok.no_trunc = true;
  ok.chown_restricted = limits.chown_restricted;
  ok.case_insensitive = limits.case_insensitive;
  ok.case_preserving = limits.case_preserving;
  co_return res;
}

}  // namespace stag::nfs::nfs3
