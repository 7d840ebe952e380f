// Parts of files, and extended attributes: of version 4.2 (RFC 7862, RFC 8276).
// Without an open stateids are anonymous, and those of what is read always are. COPY is in
// copies.cc.
#include "nfs/client/v4/nfs4.h"

namespace stag::nfs::client::nfs4 {
namespace {

constexpr OperationContext kListingXattrs{"list the extended attributes", {}};
// Bytes of one page of names, pages, and bytes of all names, each with an end: Linux tells programs
// of no more (XATTR_LIST_MAX).
constexpr std::uint32_t kNamesMax = 16u << 10;
constexpr int kPagesMax = 256;
constexpr std::size_t kAllNamesMax = 64u << 10;

Error lies(OperationContext context) {
  return Error::of_protocol(context, "sent results that contradict each other");
}

v4::setxattr_option4 option_of(XattrMode mode) {
  if (mode == XattrMode::Create) return v4::SETXATTR4_CREATE;
  return mode == XattrMode::Replace ? v4::SETXATTR4_REPLACE : v4::SETXATTR4_EITHER;
}

}  // namespace

Task<Outcome<Ok>> Nfs4::done(OperationContext context, Request request, File by) {
  if (by.open != 0) request.set_by({request.size(), by.open, {}, {}});
  const Outcome<Reply> reply = co_await run(context, request.once_only());
  if (!reply) co_return Failure{reply.error()};
  co_return Ok{};
}

Task<Outcome<std::optional<std::uint64_t>>> Nfs4::seek(OperationContext context, Handle file,
                                                       std::uint64_t offset, Content what) {
  if (minor() < 2) co_return co_await Protocol::seek(context, file, offset, what);
  Request request;
  request.put_handle(file);
  const v4::data_content4 wanted =
      what == Content::Data ? v4::NFS4_CONTENT_DATA : v4::NFS4_CONTENT_HOLE;
  const std::size_t at = request.add(v4::OP_SEEK, &Op::opseek, {v4::stateid4{}, offset, wanted});
  Outcome<Reply> reply = co_await run(context, request);
  // RFC 7862 15.11.3: there is nothing behind the end of the file.
  if (!reply && reply.error().is(Status::NoDeviceOrAddress))
    co_return std::optional<std::uint64_t>();
  if (!reply) co_return Failure{reply.error()};
  auto* got = reply->get(at, &OpResult::opseek);
  if (got == nullptr) co_return Failure{lies(context)};
  const v4::seek_res4& found = got->resok4();
  // Data that ends with the file: what is behind it is a hole, and no more data.
  if (found.sr_eof && what == Content::Data) co_return std::optional<std::uint64_t>();
  if (found.sr_offset < offset) co_return Failure{lies(context)};
  co_return std::optional<std::uint64_t>(found.sr_offset);
}

Task<Outcome<Ok>> Nfs4::allocate(OperationContext context, File file, FileRange range) {
  if (minor() < 2) return Protocol::allocate(context, file, range);
  Request request;
  request.put_handle(file.handle);
  request.add(v4::OP_ALLOCATE, &Op::opallocate, {v4::stateid4{}, range.offset, range.length});
  return done(context, std::move(request), file);
}

Task<Outcome<Ok>> Nfs4::deallocate(OperationContext context, File file, FileRange range) {
  if (minor() < 2) return Protocol::deallocate(context, file, range);
  Request request;
  request.put_handle(file.handle);
  request.add(v4::OP_DEALLOCATE, &Op::opdeallocate, {v4::stateid4{}, range.offset, range.length});
  return done(context, std::move(request), file);
}

Task<Outcome<Ok>> Nfs4::clone(OperationContext context, Handle from, FileRange range, File to,
                              std::uint64_t to_offset) {
  if (minor() < 2) return Protocol::clone(context, from, range, to, to_offset);
  Request request;
  request.put_handle(from);
  request.add(v4::OP_SAVEFH);
  request.put_handle(to.handle);
  request.add(v4::OP_CLONE, &Op::opclone,
              {v4::stateid4{}, v4::stateid4{}, range.offset, to_offset, range.length});
  return done(context, std::move(request), to);
}

Task<Outcome<std::string>> Nfs4::xattr(OperationContext context, Handle object,
                                       std::string_view name) {
  if (minor() < 2) co_return co_await Protocol::xattr(context, object, name);
  Request request;
  request.put_handle(object);
  const std::size_t at = request.add(v4::OP_GETXATTR, &Op::opgetxattr, {std::string(name)});
  // RFC 8276 has no bound; Linux does.
  request.results_max = 66u << 10;
  Outcome<Reply> reply = co_await run(context, request);
  if (!reply) co_return Failure{reply.error()};
  auto* got = reply->get(at, &OpResult::opgetxattr);
  if (got == nullptr) co_return Failure{lies(context)};
  const Buffer value = got->gxr_value().flatten();
  co_return std::string(text_of(value.bytes()));
}

Task<Outcome<Ok>> Nfs4::set_xattr(OperationContext context, Handle object, std::string_view name,
                                  Bytes value, XattrMode mode) {
  if (minor() < 2) return Protocol::set_xattr(context, object, name, value, mode);
  Request request;
  request.put_handle(object);
  request.add(v4::OP_SETXATTR, &Op::opsetxattr,
              {option_of(mode), std::string(name), Rope::borrow(value)});
  return done(context, std::move(request));
}

Task<Outcome<std::vector<std::string>>> Nfs4::list_xattrs(OperationContext context, Handle object) {
  if (minor() < 2) co_return co_await Protocol::list_xattrs(context, object);
  std::vector<std::string> names;
  std::size_t bytes = 0;
  v4::nfs_cookie4 cookie = 0;
  for (int page = 0; page < kPagesMax; ++page) {
    Request request;
    request.put_handle(object);
    const std::size_t at = request.add(v4::OP_LISTXATTRS, &Op::oplistxattrs, {cookie, kNamesMax});
    Outcome<Reply> reply = co_await run(context, request);
    if (!reply) co_return Failure{reply.error()};
    auto* got = reply->get(at, &OpResult::oplistxattrs);
    if (got == nullptr) co_return Failure{lies(context)};
    v4::LISTXATTRS4resok& part = got->lxr_value();
    for (std::string& name : part.lxr_names) {
      bytes += name.size() + 1;
      names.push_back(std::move(name));
    }
    if (bytes > kAllNamesMax) break;
    if (part.lxr_eof) co_return std::move(names);
    if (part.lxr_cookie == cookie) break;
    cookie = part.lxr_cookie;
  }
  co_return Failure{Error::of_protocol(kListingXattrs, "sent a list without an end")};
}

Task<Outcome<Ok>> Nfs4::remove_xattr(OperationContext context, Handle object,
                                     std::string_view name) {
  if (minor() < 2) return Protocol::remove_xattr(context, object, name);
  Request request;
  request.put_handle(object);
  request.add(v4::OP_REMOVEXATTR, &Op::opremovexattr, {std::string(name)});
  return done(context, std::move(request));
}

}  // namespace stag::nfs::client::nfs4
