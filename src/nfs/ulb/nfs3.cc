#include "nfs/ulb/nfs3.h"

#include <algorithm>

#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs3.h"

namespace stag::nfs::ulb {

namespace {

using rpc::bind;
using rpc::ProcedureBinding;
using rpc::ReplyBound;

// Encoded sizes in bytes (RFC 1813 2.5).
constexpr std::uint32_t kStatus = 4;
constexpr std::uint32_t kPostOpAttr = 4 + 84;

// No server fills more than this, whatever a client asks for; sums with it cannot wrap.
constexpr std::uint32_t kMaxListing = 1u << 30;

constexpr std::uint32_t padded(std::uint32_t length) {
  return (std::min(length, kMaxListing) + 3) / 4 * 4;
}

// RFC 1813 3.3.16, 3.3.17: count and maxcount limit the whole resok structure. Linux's server takes
// them for the list alone, and has attributes and verifier before it. With a count that is too
// small, the Reply still has the smallest list (its end, eof).
ReplyBound listing(std::uint32_t count) {
  constexpr std::uint32_t kBefore = kPostOpAttr + 8, kEmptyList = 4 + 4;
  return ReplyBound{kStatus + kBefore + padded(std::max(count, kEmptyList))};
}

ReplyBound mount_list() {
  return ReplyBound{kMaxMountList};
}

// RFC 8267 section 4 names exactly four eligible items; RFC 1813 section 4.5 the procedures that
// must not run twice. All other procedures need no entry: no item is eligible, and the result type
// bounds the Reply.
constexpr std::array kNfs3{
    bind<v3::NFSPROC3_READ>(
        {}, {v3::item::READ3resok_data},
        [](const v3::READ3args& args) {
          return ReplyBound{kStatus + kPostOpAttr + 12, {{v3::item::READ3resok_data, args.count}}};
        }),
    bind<v3::NFSPROC3_READLINK>({}, {v3::item::READLINK3resok_data},
                                [](const v3::READLINK3args&) {
                                  return ReplyBound{
                                      kStatus + kPostOpAttr + 4,
                                      {{v3::item::READLINK3resok_data, kMaxLinkText}}};
                                }),
    bind<v3::NFSPROC3_WRITE>({v3::item::WRITE3args_data}),
    bind<v3::NFSPROC3_SYMLINK>({v3::item::symlinkdata3_symlink_data}).once_only(),
    bind<v3::NFSPROC3_READDIR>({}, {},
                               [](const v3::READDIR3args& args) { return listing(args.count); }),
    bind<v3::NFSPROC3_READDIRPLUS>(
        {}, {}, [](const v3::READDIRPLUS3args& args) { return listing(args.maxcount); }),
    bind<v3::NFSPROC3_SETATTR>().once_only(),
    bind<v3::NFSPROC3_CREATE>().once_only(),
    bind<v3::NFSPROC3_MKDIR>().once_only(),
    bind<v3::NFSPROC3_MKNOD>().once_only(),
    bind<v3::NFSPROC3_REMOVE>().once_only(),
    bind<v3::NFSPROC3_RMDIR>().once_only(),
    bind<v3::NFSPROC3_RENAME>().once_only(),
    bind<v3::NFSPROC3_LINK>().once_only(),
};

constexpr std::array kMount3{
    bind<mount3::MOUNTPROC3_MNT>({}, {},
                                 [](const mount3::dirpath&) {
                                   ReplyBound bound;
                                   // Status, handle, and up to 64 flavors.
                                   bound.payload_max = kStatus + 68 + 4 + 64 * 4;
                                   return bound;
                                 }),
    bind<mount3::MOUNTPROC3_DUMP>({}, {}, [](const xdr::Void&) { return mount_list(); }),
    bind<mount3::MOUNTPROC3_EXPORT>({}, {}, [](const xdr::Void&) { return mount_list(); }),
    bind<mount3::MOUNTPROC1_DUMP>({}, {}, [](const xdr::Void&) { return mount_list(); }),
    bind<mount3::MOUNTPROC1_EXPORT>({}, {}, [](const xdr::Void&) { return mount_list(); }),
    bind<mount3::MOUNTPROC1_EXPORTALL>({}, {}, [](const xdr::Void&) { return mount_list(); }),
    bind<mount3::MOUNTPROC2_DUMP>({}, {}, [](const xdr::Void&) { return mount_list(); }),
    bind<mount3::MOUNTPROC2_EXPORT>({}, {}, [](const xdr::Void&) { return mount_list(); }),
    bind<mount3::MOUNTPROC2_EXPORTALL>({}, {}, [](const xdr::Void&) { return mount_list(); }),
};

}  // namespace

rpc::Binding nfs3() {
  return rpc::Binding(kNfs3);
}

rpc::Binding mount3() {
  return rpc::Binding(kMount3);
}

}  // namespace stag::nfs::ulb
