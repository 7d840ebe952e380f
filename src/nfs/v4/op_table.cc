// The table of operations (RFC 8881 17, RFC 7862 13).
#include <array>

#include "nfs/v4/operation.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

namespace {

constexpr v4::nfsstat4 kReadOnly = v4::NFS4ERR_ROFS;
constexpr v4::nfsstat4 kIsDirectory = v4::NFS4ERR_ISDIR;

// Bytes of the longest results of operations that change something, behind the operation number.
constexpr std::uint32_t kChangeInfo = 20;
constexpr std::uint32_t kBitmap = 4 + 4 * AttributeSet::kWords;
constexpr std::uint32_t kStatus = 4;
constexpr std::uint32_t kStateid = 16;
// A write delegation with its space limit and an access control entry for nobody by name.
constexpr std::uint32_t kDelegation = 4 + kStateid + 4 + 12 + 16;
constexpr std::uint32_t kDenied = 20 + 8 + 4 + v4::NFS4_OPAQUE_LIMIT;
constexpr std::uint32_t kSessionResults = 128;

constexpr Operation kFilehandles[] = {
    operation<&v4::PUTROOTFH4res::status, putrootfh>({v4::OP_PUTROOTFH, "PUTROOTFH"}),
    operation<&v4::PUTPUBFH4res::status, putpubfh>({v4::OP_PUTPUBFH, "PUTPUBFH"}),
    encoding_operation<putfh>({v4::OP_PUTFH, "PUTFH"}),
    operation<&v4::GETFH4res::status, getfh>({v4::OP_GETFH, "GETFH", Needs::Current}),
    operation<&v4::SAVEFH4res::status, savefh>({v4::OP_SAVEFH, "SAVEFH", Needs::Current}),
    operation<&v4::RESTOREFH4res::status, restorefh>({v4::OP_RESTOREFH, "RESTOREFH"}),
    operation<&v4::LOOKUP4res::status, lookup>({v4::OP_LOOKUP, "LOOKUP", Needs::Current}),
    operation<&v4::LOOKUPP4res::status, lookupp>({v4::OP_LOOKUPP, "LOOKUPP", Needs::Current}),
    operation<&v4::SECINFO4res::status, secinfo>({v4::OP_SECINFO, "SECINFO", Needs::Current}),
    operation<&v4::SECINFO_NO_NAME4res::status, secinfo_no_name>(
        {v4::OP_SECINFO_NO_NAME, "SECINFO_NO_NAME", Needs::Current}),
};

constexpr Operation kAttributes[] = {
    encoding_operation<getattr>({v4::OP_GETATTR, "GETATTR", Needs::Current}),
    operation<&v4::SETATTR4res::status, setattr>(
        {v4::OP_SETATTR, "SETATTR", Needs::Current, kReadOnly, {}, kStatus + kBitmap}),
    operation<&v4::ACCESS4res::status, access>({v4::OP_ACCESS, "ACCESS", Needs::Current}),
    operation<&v4::VERIFY4res::status, verify>({v4::OP_VERIFY, "VERIFY", Needs::Current}),
    operation<&v4::NVERIFY4res::status, nverify>({v4::OP_NVERIFY, "NVERIFY", Needs::Current}),
};

constexpr Operation kNames[] = {
    operation<&ReaddirResults::status, readdir>({v4::OP_READDIR, "READDIR", Needs::Current}),
    operation<&v4::CREATE4res::status, create>(
        {v4::OP_CREATE, "CREATE", Needs::Current, kReadOnly, {}, kStatus + kChangeInfo + kBitmap}),
    operation<&v4::REMOVE4res::status, remove>(
        {v4::OP_REMOVE, "REMOVE", Needs::Current, kReadOnly, {}, kStatus + kChangeInfo}),
    operation<&v4::RENAME4res::status, rename>({v4::OP_RENAME,
                                                "RENAME",
                                                Needs::CurrentAndSaved,
                                                kReadOnly,
                                                {},
                                                kStatus + 2 * kChangeInfo}),
    operation<&v4::LINK4res::status, link>(
        {v4::OP_LINK, "LINK", Needs::CurrentAndSaved, kReadOnly, {}, kStatus + kChangeInfo}),
    operation<&v4::READLINK4res::status, readlink>({v4::OP_READLINK,
                                                    "READLINK",
                                                    Needs::Current,
                                                    v4::NFS4ERR_WRONG_TYPE,
                                                    {},
                                                    0,
                                                    v4::item::READLINK4resok_link}),
};

constexpr Operation kData[] = {
    encoding_operation<read>(
        {v4::OP_READ, "READ", Needs::Current, kIsDirectory, {}, 0, v4::item::READ4resok_data}),
    encoding_operation<write>(
        {v4::OP_WRITE, "WRITE", Needs::Current, kIsDirectory, {}, kStatus + 16}),
    operation<&v4::COMMIT4res::status, commit>(
        {v4::OP_COMMIT, "COMMIT", Needs::Current, kIsDirectory, {}, kStatus + 8}),
};

constexpr v4::nfsstat4 kWrongType = v4::NFS4ERR_WRONG_TYPE;
constexpr std::uint32_t kWriteResponse = 4 + kStateid + 8 + 4 + 8;
// A list of one netloc4 of type NL4_NETADDR.
constexpr std::uint32_t kNetloc = 4 + 4 + (4 + 8) + (4 + 64);

constexpr Operation kRanges[] = {
    operation<&v4::SEEK4res::sa_status, seek>({v4::OP_SEEK, "SEEK", Needs::Current, kIsDirectory}),
    operation<&v4::ALLOCATE4res::ar_status, allocate>(
        {v4::OP_ALLOCATE, "ALLOCATE", Needs::Current, kWrongType, {}, kStatus}),
    operation<&v4::DEALLOCATE4res::dr_status, deallocate>(
        {v4::OP_DEALLOCATE, "DEALLOCATE", Needs::Current, kWrongType, {}, kStatus}),
    operation<&v4::CLONE4res::cl_status, clone>(
        {v4::OP_CLONE, "CLONE", Needs::CurrentAndSaved, kWrongType, {}, kStatus}),
    operation<&v4::COPY4res::cr_status, copy>({v4::OP_COPY,
                                               "COPY",
                                               Needs::CurrentAndSaved,
                                               kWrongType,
                                               {},
                                               kStatus + kWriteResponse + 8}),
    operation<&v4::COPY_NOTIFY4res::cnr_status, copy_notify>({v4::OP_COPY_NOTIFY,
                                                              "COPY_NOTIFY",
                                                              Needs::Current,
                                                              kWrongType,
                                                              {},
                                                              kStatus + 12 + kStateid + kNetloc}),
    operation<&v4::OFFLOAD_STATUS4res::osr_status, offload_status>(
        {v4::OP_OFFLOAD_STATUS, "OFFLOAD_STATUS", Needs::Current, v4::NFS4ERR_BAD_STATEID}),
    operation<&v4::OFFLOAD_CANCEL4res::ocr_status, offload_cancel>({v4::OP_OFFLOAD_CANCEL,
                                                                    "OFFLOAD_CANCEL",
                                                                    Needs::Current,
                                                                    v4::NFS4ERR_BAD_STATEID,
                                                                    {},
                                                                    kStatus}),
    operation<&v4::READ_PLUS4res::rp_status, read_plus>(
        {v4::OP_READ_PLUS, "READ_PLUS", Needs::Current, kIsDirectory}),
    operation<&v4::IO_ADVISE4res::ior_status, io_advise>(
        {v4::OP_IO_ADVISE, "IO_ADVISE", Needs::Current, kWrongType}),
};

// RFC 8276 8.4: not supported where xattr_support is false, as in the pseudo file system.
constexpr v4::nfsstat4 kNoXattrs = v4::NFS4ERR_NOTSUPP;

constexpr Operation kXattrs[] = {
    operation<&v4::GETXATTR4res::gxr_status, getxattr>(
        {v4::OP_GETXATTR, "GETXATTR", Needs::Current, kNoXattrs}),
    operation<&v4::SETXATTR4res::sxr_status, setxattr>(
        {v4::OP_SETXATTR, "SETXATTR", Needs::Current, kNoXattrs, {}, kStatus + kChangeInfo}),
    operation<&v4::LISTXATTRS4res::lxr_status, listxattrs>(
        {v4::OP_LISTXATTRS, "LISTXATTRS", Needs::Current, kNoXattrs}),
    operation<&v4::REMOVEXATTR4res::rxr_status, removexattr>(
        {v4::OP_REMOVEXATTR, "REMOVEXATTR", Needs::Current, kNoXattrs, {}, kStatus + kChangeInfo}),
};

constexpr Operation kState[] = {
    operation<&v4::OPEN4res::status, open>(
        {v4::OP_OPEN,
         "OPEN",
         Needs::Current,
         {},
         {},
         kStatus + kStateid + kChangeInfo + 4 + kBitmap + kDelegation}),
    operation<&v4::DELEGRETURN4res::status, delegreturn>(
        {v4::OP_DELEGRETURN, "DELEGRETURN", Needs::Current, v4::NFS4ERR_BAD_STATEID, {}, kStatus}),
    operation<&v4::CLOSE4res::status, close>(
        {v4::OP_CLOSE, "CLOSE", Needs::Current, v4::NFS4ERR_BAD_STATEID, {}, kStatus + kStateid}),
    operation<&v4::OPEN_DOWNGRADE4res::status, open_downgrade>({v4::OP_OPEN_DOWNGRADE,
                                                                "OPEN_DOWNGRADE",
                                                                Needs::Current,
                                                                v4::NFS4ERR_BAD_STATEID,
                                                                {},
                                                                kStatus + kStateid}),
    operation<&v4::LOCK4res::status, lock>(
        {v4::OP_LOCK, "LOCK", Needs::Current, kIsDirectory, {}, kStatus + kDenied}),
    operation<&v4::LOCKT4res::status, lockt>({v4::OP_LOCKT, "LOCKT", Needs::Current, kIsDirectory}),
    operation<&v4::LOCKU4res::status, locku>(
        {v4::OP_LOCKU, "LOCKU", Needs::Current, kIsDirectory, {}, kStatus + kStateid}),
    operation<&v4::TEST_STATEID4res::tsr_status, test_stateid>(
        {v4::OP_TEST_STATEID, "TEST_STATEID"}),
    operation<&v4::FREE_STATEID4res::fsr_status, free_stateid>(
        {v4::OP_FREE_STATEID, "FREE_STATEID", {}, {}, {}, kStatus}),
};

// SEQUENCE is run before the others; its row is for those that stand elsewhere.
v4::SEQUENCE4res misplaced_sequence(Compound&, SequenceArguments&) {
  return {v4::NFS4ERR_SEQUENCE_POS, {}};
}

constexpr Operation kSessions[] = {
    operation<&v4::SEQUENCE4res::sr_status, misplaced_sequence>(
        {v4::OP_SEQUENCE, "SEQUENCE", {}, {}, Place::First}),
    operation<&v4::EXCHANGE_ID4res::eir_status, exchange_id>(
        {v4::OP_EXCHANGE_ID, "EXCHANGE_ID", {}, {}, Place::Alone, kSessionResults}),
    operation<&v4::CREATE_SESSION4res::csr_status, create_session>(
        {v4::OP_CREATE_SESSION, "CREATE_SESSION", {}, {}, Place::Alone, kSessionResults}),
    operation<&v4::BIND_CONN_TO_SESSION4res::bctsr_status, bind_conn_to_session>(
        {v4::OP_BIND_CONN_TO_SESSION, "BIND_CONN_TO_SESSION", {}, {}, Place::OnlyOne, 32}),
    operation<&v4::BACKCHANNEL_CTL4res::bcr_status, backchannel_ctl>(
        {v4::OP_BACKCHANNEL_CTL, "BACKCHANNEL_CTL", {}, {}, Place::InSession, kStatus}),
    operation<&v4::DESTROY_SESSION4res::dsr_status, destroy_session>(
        {v4::OP_DESTROY_SESSION, "DESTROY_SESSION", {}, {}, Place::Alone, kStatus}),
    operation<&v4::DESTROY_CLIENTID4res::dcr_status, destroy_clientid>(
        {v4::OP_DESTROY_CLIENTID, "DESTROY_CLIENTID", {}, {}, Place::Alone, kStatus}),
    operation<&v4::RECLAIM_COMPLETE4res::rcr_status, reclaim_complete>(
        {v4::OP_RECLAIM_COMPLETE, "RECLAIM_COMPLETE", {}, {}, Place::InSession, kStatus}),
};

// The last operation of each minor version; the first is ACCESS.
constexpr std::uint32_t kLastOf[] = {v4::OP_RELEASE_LOCKOWNER, v4::OP_RECLAIM_COMPLETE,
                                     v4::OP_REMOVEXATTR};

constexpr auto kOperations = [] {
  std::array<Operation, v4::OP_REMOVEXATTR + 1> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) table[i].number = i;
  const auto add = [&](const auto& rows) {
    for (const Operation& row : rows) table[row.number] = row;
  };
  add(kFilehandles);
  add(kAttributes);
  add(kNames);
  add(kData);
  add(kRanges);
  add(kXattrs);
  add(kState);
  add(kSessions);
  return table;
}();

}  // namespace

const Operation* find_operation(std::uint32_t minor, std::uint32_t number) {
  if (minor >= std::size(kLastOf) || number < v4::OP_ACCESS || number > kLastOf[minor])
    return nullptr;
  const Operation* const row = minor == 0 ? find_v40_operation(number) : nullptr;
  return row != nullptr ? row : &kOperations[number];
}

}  // namespace stag::nfs::nfs4
