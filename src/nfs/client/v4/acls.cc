// Access control lists (RFC 8881 section 6), whose length no protocol limits: that of version 4,
// and those of POSIX, which are said by it.
#include "nfs/client/acl.h"
#include "nfs/client/v4/attributes.h"
#include "nfs/client/v4/nfs4.h"

namespace stag::nfs::client::nfs4 {
namespace {

// Bytes of results that are provided for in version 4.0 at last; a session says its own.
constexpr std::uint32_t kAclReplyMost = 1u << 20;

constexpr std::uint32_t kInherited = v4::ACE4_FILE_INHERIT_ACE | v4::ACE4_DIRECTORY_INHERIT_ACE;

// What new objects in a directory with the list `acl` begin with, and nothing about it.
Nfs4Acl defaults_of(Nfs4Acl acl) {
  std::erase_if(acl, [](const Nfs4Ace& ace) { return (ace.flags & kInherited) == 0; });
  for (Nfs4Ace& ace : acl) ace.flags |= v4::ACE4_INHERIT_ONLY_ACE;
  return acl;
}

}  // namespace

// RFC 8267 6.2.1: asked for alone, so that asking again, with more memory, does no harm.
Task<Outcome<Ok>> Nfs4::read_list(OperationContext context, Handle object, std::uint32_t reply_max,
                                  Values& got) {
  const std::uint32_t session_max = client_->session().limits().ca_maxresponsesize;
  if (minor() > 0) reply_max = session_max;
  for (;;) {
    Request request;
    request.put_handle(object);
    request.add_getattr(acl_attributes(), got);
    request.results_max = reply_max;
    const Outcome<Reply> reply = co_await run(context, request);
    const bool too_long = !reply && reply.error().kind == Error::Kind::Call &&
                          reply.error().call.reason == Reason::RdmaPeerRefusedChunks;
    if (too_long && reply_max < kAclReplyMost && minor() == 0) {
      reply_max = kAclReplyMost;
      continue;
    }
    if (!reply) co_return Failure{reply.error()};
    if (!got.describe_node())
      co_return Failure{Error::of_protocol(context, "sent a list that cannot be read")};
    // RFC 8881 5.1: what a server does not have, it leaves out.
    if (!got.has_acl) co_return Failure{Error::of_status(context, Status::NotSupported)};
    co_return Ok{};
  }
}

Task<Outcome<Nfs4Acl>> Nfs4::nfs4_acl(OperationContext context, Handle object,
                                      std::uint32_t reply_max) {
  Values got;
  const Outcome<Ok> read = co_await read_list(context, object, reply_max, got);
  if (!read) co_return Failure{read.error()};
  co_return std::move(got.acl);
}

Task<Outcome<Ok>> Nfs4::set_nfs4_acl(OperationContext context, Handle object, Nfs4Acl acl) {
  Request request;
  request.put_handle(object);
  request.add(v4::OP_SETATTR, &Op::opsetattr, {v4::stateid4{}, to_fattr4(acl)});
  return done(context, std::move(request));
}

Task<Outcome<Acls>> Nfs4::acls(OperationContext context, Handle object, std::uint32_t reply_max) {
  Values got;
  const Outcome<Ok> read = co_await read_list(context, object, reply_max, got);
  if (!read) co_return Failure{read.error()};
  std::optional<Acls> lists = to_posix_acls(got.acl, got.attributes.type == FileType::Directory);
  if (!lists) co_return Failure{Error::of_status(context, Status::NotSupported)};
  co_return *std::move(lists);
}

Task<Outcome<Ok>> Nfs4::set_acls(OperationContext context, Handle object, Acls acls,
                                 bool with_defaults) {
  if (!with_defaults) acls.defaults.clear();
  const std::optional<Nfs4Acl> of_file = to_nfs4_acl(acls, false);
  if (!of_file) co_return Failure{Error::of_status(context, Status::Invalid)};
  if (!acls.access.empty() && !with_defaults) {
    const Outcome<Ok> set = co_await set_unless_directory(context, object, *of_file);
    if (set || !set.error().is(Status::NotSync)) co_return set;
  }
  // One list has both: what is not to change is said again.
  Values now;
  now.attributes.type = FileType::Directory;
  if (acls.access.empty() || !with_defaults) {
    const Outcome<Ok> read = co_await read_list(context, object, kAclReplyMax, now);
    if (!read) co_return Failure{read.error()};
  }
  const bool directory = now.attributes.type == FileType::Directory;
  Nfs4Acl list = *to_nfs4_acl(acls, directory, now.attributes.mode);
  if (!with_defaults)
    for (Nfs4Ace& ace : defaults_of(std::move(now.acl))) list.push_back(std::move(ace));
  co_return co_await set_nfs4_acl(context, object, std::move(list));
}

// NotSync where it is one.
Task<Outcome<Ok>> Nfs4::set_unless_directory(OperationContext context, Handle object, Nfs4Acl acl) {
  Request request;
  request.put_handle(object);
  request.add(v4::OP_NVERIFY, &Op::opnverify, {type_is(FileType::Directory)});
  request.add(v4::OP_SETATTR, &Op::opsetattr, {v4::stateid4{}, to_fattr4(acl)});
  return done(context, std::move(request));
}

}  // namespace stag::nfs::client::nfs4
