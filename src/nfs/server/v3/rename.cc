// RENAME and LINK (RFC 1813 3.3.14, 3.3.15): the procedures with two objects.
#include "nfs/server/v3/procedures.h"

namespace stag::nfs::nfs3 {

Task<v3::RENAME3res> rename(Request request, v3::RENAME3args args) {
  const auto from = co_await request.resolve(args.from.dir);
  if (!from) co_return failed<v3::RENAME3res>(request.failure(from.error()));
  const auto to = co_await request.resolve(args.to.dir);
  if (!to) co_return failed<v3::RENAME3res>(request.failure(to.error()));
  v3::RENAME3res res;
  auto refused = refused_together(*from, *to);
  if (!refused && request.guarded())
    refused = co_await request.refused_rename(*from, args.from.name, *to, args.to.name);
  if (refused) {
    res.status = request.failure(*refused);
  } else {
    const auto renamed = co_await from->store().rename(from->caller(), from->handle, args.from.name,
                                                       to->handle, args.to.name);
    if (renamed) {
      res.resok().fromdir_wcc = to_wcc_data(renamed->from);
      res.resok().todir_wcc = to_wcc_data(renamed->to);
      co_return res;
    }
    res.status = request.failure(renamed.error());
  }
  v3::RENAME3resfail& fail = res.resfail();
  fail.fromdir_wcc = co_await wcc_now(*from);
  fail.todir_wcc = co_await wcc_now(*to);
  co_return res;
}

namespace {

Task<vfs::Outcome<vfs::Linked>> make_link(const Request& request, const ExportObject& file,
                                          const ExportObject& directory, const std::string& name) {
  if (const auto refused = refused_together(file, directory)) co_return Failure{*refused};
  const Intent intent{.touch = state::Touch::Attributes, .directory = &directory};
  const auto permitted = co_await request.permit(file, intent);
  if (!permitted) co_return Failure{permitted.error()};
  co_return co_await file.store().link(file.caller(), file.handle, directory.handle, name);
}

}  // namespace

Task<v3::LINK3res> link(Request request, v3::LINK3args args) {
  const auto file = co_await request.resolve(args.file);
  if (!file) co_return failed<v3::LINK3res>(request.failure(file.error()));
  const auto directory = co_await request.resolve(args.link.dir);
  if (!directory) co_return failed<v3::LINK3res>(request.failure(directory.error()));
  v3::LINK3res res;
  const auto linked = co_await make_link(request, *file, *directory, args.link.name);
  if (linked) {
    res.resok().file_attributes = to_post_op_attr(linked->attributes);
    res.resok().linkdir_wcc = to_wcc_data(linked->directory);
    co_return res;
  }
  res.status = request.failure(linked.error());
  v3::LINK3resfail& fail = res.resfail();
  fail.file_attributes = co_await post_op_attributes(*file);
  fail.linkdir_wcc = co_await wcc_now(*directory);
  co_return res;
}

}  // namespace stag::nfs::nfs3
