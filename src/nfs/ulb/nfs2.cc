#include "nfs/ulb/nfs2.h"

#include <algorithm>

#include "nfs/proto/nfs2.h"

namespace stag::nfs::ulb {

namespace {

using rpc::bind;
using rpc::ReplyBound;

// Encoded sizes in bytes (RFC 1094 2.3).
constexpr std::uint32_t kStatus = 4;
constexpr std::uint32_t kAttributes = 68;
constexpr std::uint32_t kLength = 4;
// End of the list and eof.
constexpr std::uint32_t kEmptyList = 8;

// RFC 1094 2.2.17: entries "with a total size of up to count bytes". Servers count the end of the
// list as well; the bound adds two words for it.
ReplyBound listing(std::uint32_t count) {
  return ReplyBound{kStatus + (std::min(count, v2::MAXDATA) + 3) / 4 * 4 + kEmptyList};
}

constexpr std::array kNfs2{
    bind<v2::NFSPROC_READ>({}, {v2::item::readok_data},
                           [](const v2::readargs& args) {
                             // 2.3: no READ brings more than MAXDATA, whatever was asked for.
                             return ReplyBound{
                                 kStatus + kAttributes + kLength,
                                 {{v2::item::readok_data, std::min(args.count, v2::MAXDATA)}}};
                           }),
    bind<v2::NFSPROC_READLINK>(
        {}, {v2::item::linktext_data},
        [](const v2::fhandle&) {
          return ReplyBound{kStatus + kLength, {{v2::item::linktext_data, v2::MAXPATHLEN}}};
        }),
    bind<v2::NFSPROC_WRITE>({v2::item::writeargs_data}),
    bind<v2::NFSPROC_SYMLINK>({v2::item::symlinkargs_to}).once_only(),
    bind<v2::NFSPROC_READDIR>({}, {},
                              [](const v2::readdirargs& args) { return listing(args.count); }),
    bind<v2::NFSPROC_SETATTR>().once_only(),
    bind<v2::NFSPROC_CREATE>().once_only(),
    bind<v2::NFSPROC_REMOVE>().once_only(),
    bind<v2::NFSPROC_RENAME>().once_only(),
    bind<v2::NFSPROC_LINK>().once_only(),
    bind<v2::NFSPROC_MKDIR>().once_only(),
    bind<v2::NFSPROC_RMDIR>().once_only(),
};

}  // namespace

rpc::Binding nfs2() {
  return rpc::Binding(kNfs2);
}

}  // namespace stag::nfs::ulb
