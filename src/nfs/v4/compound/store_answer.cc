#include "nfs/v4/compound/store_answer.h"

#include "nfs/v4/compound/status.h"

namespace stag::nfs::nfs4 {

Task<StoreAnswered> ask_store(const ExportObject& object, AttributeSet asked,
                              vfs::Operation<vfs::Attributes> attributes) {
  const auto found = co_await std::move(attributes);
  if (!found) co_return Failure{to_nfsstat4(found.error())};
  StoreAnswer answer{*found};
  if (wants_usage(asked)) {
    const auto usage = co_await object.store().usage(object.caller());
    if (!usage) co_return Failure{to_nfsstat4(usage.error())};
    answer.usage = *usage;
  }
  if (wants_acls(asked)) {
    auto acls = co_await object.store().acls(object.caller(), object.handle);
    if (!acls && acls.error() != vfs::Status::NotSupported)
      co_return Failure{to_nfsstat4(acls.error())};
    if (acls) answer.acls = std::move(acls->acls);
  }
  co_return answer;
}

}  // namespace stag::nfs::nfs4
