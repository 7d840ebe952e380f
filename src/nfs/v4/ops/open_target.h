// The file that an OPEN is for, found or made by what it claims (RFC 8881 18.16).
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

struct OpenTarget {
  ExportObject file;
  bool made = false;
  v4::change_info4 directory{};
  AttributeSet set{};                       // what was set when it was made
  std::optional<std::uint64_t> truncate{};  // of a file that was there
  state::ReservedStates reserved{};         // for the open of one that was made
};
using OpenTargetFound = Result<OpenTarget, v4::nfsstat4>;

// By claim; the arguments outlive it.
Task<OpenTargetFound> find_target(Compound& compound, const v4::OPEN4args& args);
// OPEN4_CREATE. NFS4ERR_EXIST where the name is taken, but for UNCHECKED4. Nothing is made where
// the client could not open it for lack of room.
Task<OpenTargetFound> find_or_create(Compound& compound, const ExportObject& directory,
                                     const std::string& name, const v4::OPEN4args& args);
// What a name led to: the target, or why that cannot be opened.
OpenTargetFound existing_target(const ExportObject& directory, const vfs::Found& found);
ExportObject object_in(const ExportObject& directory, const vfs::Handle& handle);
vfs::Operation<vfs::Found> lookup_in(const ExportObject& directory, const std::string& name);

// 18.16.3: the claims that name a file in the directory that is the current filehandle.
inline bool opens_by_name(const v4::OPEN4args& args) {
  return args.claim.claim == v4::CLAIM_NULL || args.claim.claim == v4::CLAIM_DELEGATE_CUR ||
         args.claim.claim == v4::CLAIM_DELEGATE_PREV;
}

// What a client opens by a delegation that it has (18.16.3).
inline bool opens_by_delegation(const v4::OPEN4args& args) {
  return args.claim.claim == v4::CLAIM_DELEGATE_CUR || args.claim.claim == v4::CLAIM_DELEG_CUR_FH;
}

// Why OPEN is refused before its share is asked for; NFS4_OK: it is not.
v4::nfsstat4 check_arguments(const v4::OPEN4args& args);
Task<v4::nfsstat4> check_claim(Compound& compound, const v4::OPEN4args& args);
Task<v4::nfsstat4> check_permission(const OpenTarget& target, const v4::OPEN4args& args);
// The same where the current filehandle is a folder of the pseudo file system, in which no file is.
v4::nfsstat4 check_on_pseudo_fs(const Compound& compound, const v4::OPEN4args& args);
// Of the name of a folder that leads to an export, or of one that is mounted.
v4::nfsstat4 check_way(const Compound& compound, const PseudoFs::Node& named,
                       const v4::OPEN4args& args);
// Why what CLAIM_DELEGATE_CUR and CLAIM_DELEG_CUR_FH claim is not the client's.
v4::nfsstat4 check_delegation_claim(Compound& compound, const ExportObject& file,
                                    const v4::open_claim4& claim);

}  // namespace stag::nfs::nfs4
