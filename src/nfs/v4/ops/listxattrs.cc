// LISTXATTRS (RFC 8276 8.4.3). Names are listed in the order of their hashes; the cookie is the
// hash of the one that was listed last, so that it keeps its place whatever comes and goes, also
// over a restart, or at another gateway.
#include <algorithm>
#include <utility>

#include "base/siphash.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/xattr_status.h"

namespace stag::nfs::nfs4 {

namespace {

// LISTXATTRS4resok without names: cookie, their number, eof.
constexpr std::uint64_t kEmptyNames = 8 + 4 + 4;

std::uint64_t encoded_size(const std::string& name) {
  return 4 + (name.size() + 3) / 4 * 4;
}

// Cookie 0 is in front of all.
std::uint64_t cookie_of(const std::string& name) {
  return std::max<std::uint64_t>(1, siphash(SipKey{}, bytes_of(name)));
}

using Names = std::vector<std::pair<std::uint64_t, std::string>>;

Names behind(std::uint64_t cookie, std::vector<std::string>&& all) {
  Names names;
  for (std::string& name : all)
    if (const std::uint64_t own = cookie_of(name); own > cookie)
      names.emplace_back(own, std::move(name));
  std::sort(names.begin(), names.end());
  return names;
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
  Names names = behind(args.lxa_cookie, *std::move(found));
  v4::LISTXATTRS4res results;
  v4::LISTXATTRS4resok& list = results.lxr_value();
  list.lxr_cookie = args.lxa_cookie;
  auto next = names.begin();
  std::uint64_t left = room - kEmptyNames;
  for (; next != names.end() && encoded_size(next->second) <= left; ++next) {
    left -= encoded_size(next->second);
    list.lxr_cookie = next->first;
    list.lxr_names.push_back(std::move(next->second));
  }
  list.lxr_eof = next == names.end();
  if (!list.lxr_eof && list.lxr_names.empty())
    co_return v4::LISTXATTRS4res{v4::NFS4ERR_TOOSMALL, {}};
  co_return results;
}

}  // namespace stag::nfs::nfs4
