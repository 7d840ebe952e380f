// Access control lists (RFC 8881 section 6), whose length no protocol limits.
#include "nfs/client/v4/attributes.h"
#include "nfs/client/v4/nfs4.h"

namespace stag::nfs::client::nfs4 {
namespace {

// Bytes of results that are provided for in version 4.0 at last; a session says its own.
constexpr std::uint32_t kAclReplyMost = 1u << 20;

}  // namespace

// RFC 8267 6.2.1: asked for alone, so that asking again, with more memory, does no harm.
Task<Outcome<Nfs4Acl>> Nfs4::nfs4_acl(OperationContext context, Handle object,
                                      std::uint32_t reply_max) {
  const std::uint32_t session_max = client_->session().limits().ca_maxresponsesize;
  if (minor() > 0) reply_max = session_max;
  for (;;) {
    Request request;
    request.put_handle(object);
    Values got;
    request.add_getattr(acl_attribute(), got);
    request.results_max = reply_max;
    const Outcome<Reply> reply = co_await run(context, request);
    const bool too_long = !reply && reply.error().kind == Error::Kind::Call &&
                          reply.error().call.reason == Reason::RdmaPeerRefusedChunks;
    if (too_long && reply_max < kAclReplyMost && minor() == 0) {
      reply_max = kAclReplyMost;
      continue;
    }
    if (!reply) co_return Failure{reply.error()};
    if (!got.whole())
      co_return Failure{Error::of_protocol(context, "sent a list that cannot be read")};
    // RFC 8881 5.1: what a server does not have, it leaves out.
    if (!got.has_acl) co_return Failure{Error::of_status(context, Status::NotSupported)};
    co_return std::move(got.acl);
  }
}

Task<Outcome<Ok>> Nfs4::set_nfs4_acl(OperationContext context, Handle object, Nfs4Acl acl) {
  Request request;
  request.put_handle(object);
  request.add(v4::OP_SETATTR, &Op::opsetattr, {v4::stateid4{}, to_fattr4(acl)});
  return done(context, std::move(request));
}

Task<Outcome<Acls>> Nfs4::acls(OperationContext context, Handle, std::uint32_t) {
  co_return Failure{Error::of_status(context, Status::NotSupported)};
}

Task<Outcome<Ok>> Nfs4::set_acls(OperationContext context, Handle, Acls, bool) {
  co_return Failure{Error::of_status(context, Status::NotSupported)};
}

}  // namespace stag::nfs::client::nfs4
