// LISTXATTRS (RFC 8276 8.4.3). The cookie is the number of names that were listed before, in the
// order of their bytes.
#include <algorithm>

#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/xattr_status.h"

namespace stag::nfs::nfs4 {

namespace {

// LISTXATTRS4resok without names: cookie, their number, eof.
constexpr std::uint64_t kEmptyNames = 8 + 4 + 4;

std::uint64_t encoded_size(const std::string& name) {
  return 4 + (name.size() + 3) / 4 * 4;
}

}  // namespace

Task<v4::LISTXATTRS4res> listxattrs(Compound& compound, v4::LISTXATTRS4args& args) {
  const ExportObject object = compound.object();
  auto found = co_await object.store().list_xattrs(object.caller(), object.handle);
  if (!found) {
    const v4::nfsstat4 status = co_await xattr_status(object, found.error());
    // What can have none has none, as on a local disk. Linux's client makes EIO of the other word.
    if (status != v4::NFS4ERR_WRONG_TYPE) co_return v4::LISTXATTRS4res{status, {}};
    found = std::vector<std::string>();
  }
  const std::uint64_t room = std::min<std::uint64_t>(args.lxa_maxcount, compound.results_left());
  if (room < kEmptyNames) co_return v4::LISTXATTRS4res{v4::NFS4ERR_TOOSMALL, {}};
  std::sort(found->begin(), found->end());
  v4::LISTXATTRS4res results;
  v4::LISTXATTRS4resok& list = results.lxr_value();
  // Names may have gone meanwhile: then the list ends here.
  std::uint64_t next = std::min<std::uint64_t>(args.lxa_cookie, found->size());
  std::uint64_t left = room - kEmptyNames;
  for (; next < found->size() && encoded_size((*found)[next]) <= left; ++next) {
    left -= encoded_size((*found)[next]);
    list.lxr_names.push_back(std::move((*found)[next]));
  }
  list.lxr_eof = next == found->size();
  list.lxr_cookie = next;
  if (!list.lxr_eof && list.lxr_names.empty())
    co_return v4::LISTXATTRS4res{v4::NFS4ERR_TOOSMALL, {}};
  co_return results;
}

}  // namespace stag::nfs::nfs4
