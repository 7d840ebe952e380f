// GETATTR, SETATTR and ACCESS (RFC 1813 3.3.1, 3.3.2, 3.3.4).
#include "nfs/server/v3/procedures.h"

namespace stag::nfs::nfs3 {

namespace {

using Found = vfs::Outcome<vfs::Attributes>;

Eventual<v3::GETATTR3res> answered(const Request& request, const Found& found) {
  Eventual<v3::GETATTR3res> made(std::in_place);
  v3::GETATTR3res& res = made.value();
  res.status = found ? v3::NFS3_OK : request.failure(found.error());
  if (found) res.resok().obj_attributes = to_fattr3(*found);
  return made;
}

Task<v3::GETATTR3res> answered_later(const Request& request,
                                     vfs::Operation<vfs::Attributes> asked) {
  const Found found = co_await std::move(asked);
  co_return std::move(answered(request, found).value());
}

}  // namespace

Eventual<v3::GETATTR3res> getattr(Running<v3::NFSPROC3_GETATTR>& call) {
  if (!call.object) {
    if (call.undecided())
      return when_decided<getattr, &v3::GETATTR3args::object>(call, Request::Security::Mounting);
    return v3::GETATTR3res{call.request.failure(call.object.error()), {}};
  }
  const ExportObject& object = *call.object;
  vfs::Operation<vfs::Attributes> asked = object.store().attributes(object.caller(), object.handle);
  if (asked.ready()) return answered(call.request, asked.value());
  return answered_later(call.request, std::move(asked));
}

namespace {

struct Wanted {
  v3::nfsstat3 status = v3::NFS3_OK;
  vfs::SetAttributes attributes;
  std::optional<vfs::Time> guard;
};

Wanted wanted_of(const v3::SETATTR3args& args, const ExportObject& object) {
  Wanted wanted;
  const auto attributes = from_sattr3(args.new_attributes);
  if (attributes) wanted.attributes = *attributes;
  if (args.guard.check) wanted.guard = from_nfstime3(args.guard.obj_ctime());
  if (object.read_only())
    wanted.status = v3::NFS3ERR_ROFS;
  else if (!attributes || (args.guard.check && !wanted.guard))
    wanted.status = v3::NFS3ERR_INVAL;
  return wanted;
}

Task<vfs::Outcome<vfs::Change>> change(const Request& request, const ExportObject& object,
                                       const Wanted& wanted) {
  const auto touch = wanted.attributes.size ? state::Touch::Size : state::Touch::Attributes;
  const Intent intent{.touch = touch, .changes = &wanted.attributes};
  const auto permitted = co_await request.permit(object, intent);
  if (!permitted) co_return Failure{permitted.error()};
  co_return co_await object.store().set_attributes(object.caller(), object.handle,
                                                   wanted.attributes, wanted.guard);
}

}  // namespace

Task<v3::SETATTR3res> setattr(Request request, v3::SETATTR3args args) {
  const auto object = co_await request.resolve(args.object);
  if (!object) co_return failed<v3::SETATTR3res>(request.failure(object.error()));
  v3::SETATTR3res res;
  const Wanted wanted = wanted_of(args, *object);
  res.status = wanted.status;
  if (res.status == v3::NFS3_OK) {
    const auto changed = co_await change(request, *object, wanted);
    if (changed) {
      res.resok().obj_wcc = to_wcc_data(*changed);
      co_return res;
    }
    res.status = request.failure(changed.error());
  }
  res.resfail().obj_wcc = co_await wcc_now(*object);
  co_return res;
}

Task<v3::ACCESS3res> access(Request request, v3::ACCESS3args args) {
  const auto object = co_await request.resolve(args.object);
  if (!object) co_return failed<v3::ACCESS3res>(request.failure(object.error()));
  v3::ACCESS3res res;
  constexpr std::uint32_t kChanging = v3::ACCESS3_MODIFY | v3::ACCESS3_EXTEND | v3::ACCESS3_DELETE;
  const std::uint32_t asked =
      args.access & vfs::access::kAll & (object->read_only() ? ~kChanging : ~0u);
  const auto found = co_await object->store().access(object->caller(), object->handle, asked);
  if (found) {
    res.status = v3::NFS3_OK;
    res.resok().obj_attributes = to_post_op_attr(found->attributes);
    res.resok().access = found->granted & asked;
    co_return res;
  }
  res.status = request.failure(found.error());
  res.resfail().obj_attributes = co_await post_op_attributes(*object);
  co_return res;
}

}  // namespace stag::nfs::nfs3
