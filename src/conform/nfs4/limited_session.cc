#include "conform/nfs4/limited_session.h"

namespace stag::conform::nfs4 {

v4::SEQUENCE4args LimitedSession::sequence(bool cachethis) const {
  v4::SEQUENCE4args args;
  args.sa_sessionid = session.csr_sessionid;
  args.sa_sequenceid = 1;
  args.sa_cachethis = cachethis;
  return args;
}

Verdict LimitedSession::verdict() const {
  if (trouble.empty()) return Verdict::pass();
  return trouble.ends_with("NFS4ERR_TOOSMALL")
             ? Verdict::skip("the server makes no session of such limits")
             : Verdict::fail(trouble);
}

v4::channel_attrs4 limits_of(std::uint32_t request, std::uint32_t response, std::uint32_t cached) {
  v4::channel_attrs4 fore;
  fore.ca_maxrequestsize = request;
  fore.ca_maxresponsesize = response;
  fore.ca_maxresponsesize_cached = cached;
  fore.ca_maxoperations = 32;
  fore.ca_maxrequests = 1;
  return fore;
}

Task<LimitedSession> limited_session(Client& client, v4::channel_attrs4 fore) {
  LimitedSession made;
  v4::CREATE_SESSION4args args = client.session_args();
  args.csa_fore_chan_attrs = fore;
  Operations creating;
  creating.push_back(op(v4::OP_CREATE_SESSION, &Op::opcreate_session, args));
  const Reply reply = co_await client.bare(std::move(creating));
  if (reply.ok())
    made.session = reply.results.resarray.front().opcreate_session().csr_resok4();
  else
    made.trouble = "CREATE_SESSION: " + reply.text();
  co_return made;
}

Task<void> destroy(Client& client, v4::sessionid4 session) {
  Operations operations;
  operations.push_back(op(v4::OP_DESTROY_SESSION, &Op::opdestroy_session, {session}));
  co_await client.bare(std::move(operations));
}

}  // namespace stag::conform::nfs4
