#include "nfs/export/permission.h"

#include "nfs/export/admission.h"
#include "vfs/change_rules.h"

namespace stag::nfs {

namespace {

using Refused = std::optional<vfs::Status>;

bool is_owner(const vfs::Credentials& who, const vfs::Attributes& object) {
  return who.uid == 0 || who.uid == object.uid;
}

bool sets_a_time_to_now(const vfs::SetAttributes& changes) {
  return changes.accessed.how == vfs::SetTime::How::Now ||
         changes.modified.how == vfs::SetTime::How::Now;
}

// The bits of vfs::access of which a caller who is not the owner needs one; 0: that caller needs
// none. Executing is reading (RFC 1813 4.4).
std::uint32_t bits_needed(const Intent& intent) {
  if (intent.touch == state::Touch::Look) return 0;
  if (intent.touch == state::Touch::Read) return vfs::access::kRead | vfs::access::kExecute;
  const bool writes =
      intent.changes == nullptr || intent.changes->size || sets_a_time_to_now(*intent.changes);
  return writes ? vfs::access::kModify : 0;
}

// A caller who may write to a directory may change its names; those in a sticky directory belong to
// its owner, and to that of the file.
Task<Refused> refusal_in(const ExportObject& directory, const ExportObject& object, bool removes) {
  constexpr std::uint32_t kSticky = 01000;
  vfs::FileSystem& store = directory.store();
  const std::uint32_t needed = removes ? vfs::access::kDelete : vfs::access::kModify;
  const auto access = co_await store.access(directory.caller(), directory.handle, needed);
  if (!access) co_return access.error();
  if (access->granted == 0) co_return vfs::Status::Access;
  const vfs::Credentials& who = store.acting_as(directory.credentials);
  const bool sticky = (access->attributes.mode & kSticky) != 0;
  if (!removes || !sticky || is_owner(who, access->attributes)) co_return std::nullopt;
  const auto attributes = co_await store.attributes(object.caller(), object.handle);
  if (!attributes) co_return attributes.error();
  if (is_owner(who, *attributes)) co_return std::nullopt;
  co_return vfs::Status::Perm;
}

}  // namespace

bool Intent::does_nothing() const {
  return changes != nullptr && !as_owner && !vfs::changes_anything(*changes);
}

Task<Refused> refusal_of(const ExportObject& object, const Intent& intent) {
  if (intent.directory != nullptr)
    co_return co_await refusal_in(*intent.directory, object, intent.touch == state::Touch::Unlink);
  const std::uint32_t needed = bits_needed(intent);
  const auto access = co_await object.store().access(object.caller(), object.handle, needed);
  if (!access) co_return access.error();
  const vfs::Credentials& who = object.store().acting_as(object.credentials);
  if (intent.changes != nullptr)
    if (const Refused fault = vfs::fault_of_change(access->attributes, who, *intent.changes))
      co_return fault;
  if (is_owner(who, access->attributes)) co_return std::nullopt;
  if (intent.as_owner) co_return vfs::Status::Perm;
  if (needed == 0 || access->granted != 0) co_return std::nullopt;
  co_return vfs::Status::Access;
}

}  // namespace stag::nfs
