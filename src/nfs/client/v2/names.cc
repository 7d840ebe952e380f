// Names in version 2: finding, making and unmaking them.
#include "nfs/client/v2/values.h"

namespace stag::nfs::client::nfs2 {

namespace {

// A new object has the server's time anyhow.
Outcome<v2::createargs> createargs_of(Doing doing, const v3::diropargs3& where,
                                      const v3::sattr3& attributes) {
  const Outcome<v2::diropargs> entry = to_diropargs(doing, where);
  if (!entry) return Failure{entry.error()};
  const Outcome<v2::sattr> initial = to_sattr(doing, attributes);
  if (!initial) return Failure{initial.error()};
  return v2::createargs{*entry, *initial};
}

template <class Resok>
Resok made(const v2::dirok& object) {
  Resok ok;
  ok.obj = to_post_op_fh3(object.file);
  ok.obj_attributes = to_post_op_attr(object.attributes);
  return ok;
}

// NFS3ERR_EXIST when the name is taken.
Task<Outcome<Ok>> must_be_free(Context to, const v2::diropargs& entry) {
  const auto found = co_await run<v2::NFSPROC_LOOKUP>(to, entry);
  if (found) co_return Failure{Error::of_status(to.doing, v3::NFS3ERR_EXIST)};
  if (found.error().is(v3::NFS3ERR_NOENT)) co_return Ok{};
  co_return Failure{found.error()};
}

// RFC 1094 has no MKNOD: the type stands in the mode bits, the device number where the size would.
Outcome<v2::sattr> special_sattr(Doing doing, const v3::mknoddata3& what) {
  const bool device = what.type == v3::NF3BLK || what.type == v3::NF3CHR;
  const v3::sattr3& attributes = device ? what.device().dev_attributes : what.pipe_attributes();
  Outcome<v2::sattr> to = to_sattr(doing, attributes);
  if (!to) return to;
  if (to->mode == kKeep) to->mode = 0;
  to->size = device ? to_rdev(what.device().spec) : 0;
  if (what.type == v3::NF3BLK) to->mode |= 0060000;
  if (what.type == v3::NF3CHR) to->mode |= 0020000;
  if (what.type == v3::NF3FIFO) to->mode |= 0010000;
  if (what.type == v3::NF3SOCK) to->mode |= 0140000;
  return to;
}

template <class Resok, class P>
Task<Outcome<Resok>> unmake(Context to, const v3::diropargs3& object) {
  const Outcome<v2::diropargs> entry = to_diropargs(to.doing, object);
  if (!entry) co_return Failure{entry.error()};
  const auto res = co_await run<P>(to, *entry);
  if (!res) co_return Failure{res.error()};
  co_return Resok{};
}

}  // namespace

Task<Outcome<v3::LOOKUP3resok>> perform(Context to, const v3::LOOKUP3args& args) {
  const Outcome<v2::diropargs> entry = to_diropargs(to.doing, args.what);
  if (!entry) co_return Failure{entry.error()};
  const auto res = co_await run<v2::NFSPROC_LOOKUP>(to, *entry);
  if (!res) co_return Failure{res.error()};
  v3::LOOKUP3resok ok;
  ok.object = to_nfs_fh3(res->diropok().file);
  ok.obj_attributes = to_post_op_attr(res->diropok().attributes);
  co_return ok;
}

Task<Outcome<v3::CREATE3resok>> perform(Context to, const v3::CREATE3args& args) {
  const bool exclusive = args.how.mode == v3::EXCLUSIVE;
  const v3::sattr3 attributes = exclusive ? v3::sattr3{} : args.how.obj_attributes();
  Outcome<v2::createargs> wanted = createargs_of(to.doing, args.where, attributes);
  if (!wanted) co_return Failure{wanted.error()};
  // Who makes a file exclusively sets its attributes next.
  if (exclusive) wanted->attributes.mode = 0600;
  if (args.how.mode != v3::UNCHECKED) {
    const Outcome<Ok> free = co_await must_be_free(to, wanted->where);
    if (!free) co_return Failure{free.error()};
  }
  const auto res = co_await run<v2::NFSPROC_CREATE>(to, *wanted);
  if (!res) co_return Failure{res.error()};
  co_return made<v3::CREATE3resok>(res->diropok());
}

Task<Outcome<v3::MKDIR3resok>> perform(Context to, const v3::MKDIR3args& args) {
  const Outcome<v2::createargs> wanted = createargs_of(to.doing, args.where, args.attributes);
  if (!wanted) co_return Failure{wanted.error()};
  const auto res = co_await run<v2::NFSPROC_MKDIR>(to, *wanted);
  if (!res) co_return Failure{res.error()};
  co_return made<v3::MKDIR3resok>(res->diropok());
}

Task<Outcome<v3::SYMLINK3resok>> perform(Context to, const v3::SYMLINK3args& args) {
  const Outcome<v2::createargs> wanted =
      createargs_of(to.doing, args.where, args.symlink.symlink_attributes);
  if (!wanted) co_return Failure{wanted.error()};
  if (args.symlink.symlink_data.size() > v2::MAXPATHLEN)
    co_return Failure{Error::of_status(to.doing, v3::NFS3ERR_NAMETOOLONG)};
  const v2::symlinkargs link{wanted->where, args.symlink.symlink_data, wanted->attributes};
  const auto res = co_await run<v2::NFSPROC_SYMLINK>(to, link);
  if (!res) co_return Failure{res.error()};
  co_return v3::SYMLINK3resok{};
}

Task<Outcome<v3::MKNOD3resok>> perform(Context to, const v3::MKNOD3args& args) {
  const Outcome<v2::diropargs> entry = to_diropargs(to.doing, args.where);
  if (!entry) co_return Failure{entry.error()};
  const Outcome<v2::sattr> attributes = special_sattr(to.doing, args.what);
  if (!attributes) co_return Failure{attributes.error()};
  const v2::createargs wanted{*entry, *attributes};
  const auto res = co_await run<v2::NFSPROC_CREATE>(to, wanted);
  if (!res) co_return Failure{res.error()};
  co_return made<v3::MKNOD3resok>(res->diropok());
}

Task<Outcome<v3::REMOVE3resok>> perform(Context to, const v3::REMOVE3args& args) {
  return unmake<v3::REMOVE3resok, v2::NFSPROC_REMOVE>(to, args.object);
}

Task<Outcome<v3::RMDIR3resok>> perform(Context to, const v3::RMDIR3args& args) {
  return unmake<v3::RMDIR3resok, v2::NFSPROC_RMDIR>(to, args.object);
}

Task<Outcome<v3::RENAME3resok>> perform(Context to, const v3::RENAME3args& args) {
  const Outcome<v2::diropargs> from = to_diropargs(to.doing, args.from);
  if (!from) co_return Failure{from.error()};
  const Outcome<v2::diropargs> target = to_diropargs(to.doing, args.to);
  if (!target) co_return Failure{target.error()};
  const v2::renameargs wanted{*from, *target};
  const auto res = co_await run<v2::NFSPROC_RENAME>(to, wanted);
  if (!res) co_return Failure{res.error()};
  co_return v3::RENAME3resok{};
}

Task<Outcome<v3::LINK3resok>> perform(Context to, const v3::LINK3args& args) {
  const Outcome<v2::fhandle> file = to_fhandle(to.doing, args.file);
  if (!file) co_return Failure{file.error()};
  const Outcome<v2::diropargs> entry = to_diropargs(to.doing, args.link);
  if (!entry) co_return Failure{entry.error()};
  const v2::linkargs wanted{*file, *entry};
  const auto res = co_await run<v2::NFSPROC_LINK>(to, wanted);
  if (!res) co_return Failure{res.error()};
  co_return v3::LINK3resok{};
}

}  // namespace stag::nfs::client::nfs2
