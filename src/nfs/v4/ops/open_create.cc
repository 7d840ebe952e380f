// OPEN4_CREATE (RFC 8881 18.16): a file is made, or the one that has the name is taken.
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/open_share.h"
#include "nfs/v4/ops/open_target.h"
#include "nfs/v4/ops/set_acl.h"

namespace stag::nfs::nfs4 {

namespace {

// Where the verifier of an exclusive create is (vfs/exclusive.h): the client sets these anew.
constexpr AttributeSet kOfVerifier{v4::FATTR4_TIME_ACCESS, v4::FATTR4_TIME_MODIFY};

// What a file is to be made with.
struct Creation {
  vfs::CreateHow how;
  AttributeSet set;
  std::optional<Aces> acl;
  bool unchecked = false;
  Buffer owner{};  // of the open
};

Task<Result<Creation, v4::nfsstat4>> to_creation(const Compound& compound,
                                                 const v4::createhow4& how) {
  Creation creation;
  const v4::fattr4* attributes = nullptr;
  switch (how.mode) {
    case v4::UNCHECKED4:
      creation.unchecked = true;
      [[fallthrough]];
    case v4::GUARDED4:
      attributes = &how.createattrs();
      break;
    case v4::EXCLUSIVE4:
      creation.how.mode = vfs::CreateMode::Exclusive;
      creation.how.verifier = how.createverf();
      creation.set = kOfVerifier;
      co_return creation;
    case v4::EXCLUSIVE4_1:
      creation.how.mode = vfs::CreateMode::Exclusive;
      creation.how.verifier = how.ch_createboth().cva_verf;
      creation.set = kOfVerifier;
      attributes = &how.ch_createboth().cva_attrs;
      break;
  }
  auto wanted = decode_attributes(*attributes);
  if (!wanted) co_return Failure{wanted.error()};
  if (const v4::nfsstat4 bad = co_await compound.resolve_names(*wanted); bad != v4::NFS4_OK)
    co_return Failure{bad};
  if (creation.how.mode == vfs::CreateMode::Exclusive &&
      !(wanted->set - exclusive_create_attributes()).empty())
    co_return Failure{v4::NFS4ERR_INVAL};
  creation.how.attributes = wanted->values;
  creation.set = creation.set | wanted->set;
  creation.acl = wanted->acl;
  co_return creation;
}

Task<OpenTargetFound> make(Compound& compound, const ExportObject& directory,
                           const std::string& name, const Creation& creation) {
  // First: who is told NFS4ERR_DELAY asks again, and GUARDED4 would find its own file.
  auto reserved = reserve_open(compound, creation.owner.bytes());
  if (!reserved) co_return Failure{v4::NFS4ERR_DELAY};
  const auto made =
      co_await directory.store().create(directory.caller(), directory.handle, name, creation.how);
  if (!made) co_return Failure{to_nfsstat4(made.error())};
  OpenTarget target{object_in(directory, made->node.handle), true, to_change_info4(made->directory),
                    creation.set};
  target.reserved = *std::move(reserved);
  if (creation.acl && co_await set_acl(target.file, *creation.acl) != v4::NFS4_OK)
    target.set = target.set - AttributeSet{v4::FATTR4_ACL};
  co_return target;
}

// UNCHECKED4: the file that is there, which is emptied where that is asked for and keeps all else,
// or a new one. Another client may make or remove it in between.
Task<OpenTargetFound> find_or_make(Compound& compound, const ExportObject& directory,
                                   const std::string& name, const Creation& creation) {
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    const auto found = co_await lookup_in(directory, name);
    if (found) {
      OpenTargetFound target = existing_target(directory, *found);
      if (target && creation.how.attributes.size == 0u) {
        target->truncate = 0;
        target->set = {v4::FATTR4_SIZE};
      }
      co_return target;
    }
    if (found.error() != vfs::Status::NoEntry) co_return Failure{to_nfsstat4(found.error())};
    if (directory.read_only()) co_return Failure{v4::NFS4ERR_ROFS};
    OpenTargetFound made = co_await make(compound, directory, name, creation);
    if (made || made.error() != v4::NFS4ERR_EXIST) co_return made;
  }
  co_return Failure{v4::NFS4ERR_DELAY};
}

}  // namespace

Task<OpenTargetFound> find_or_create(Compound& compound, const ExportObject& directory,
                                     const std::string& name, const v4::OPEN4args& args) {
  auto creation = co_await to_creation(compound, args.openhow.how());
  if (!creation) co_return Failure{creation.error()};
  creation->owner = args.owner.owner.flatten();
  if (creation->unchecked) co_return co_await find_or_make(compound, directory, name, *creation);
  if (directory.read_only()) co_return Failure{v4::NFS4ERR_ROFS};
  co_return co_await make(compound, directory, name, *creation);
}

}  // namespace stag::nfs::nfs4
