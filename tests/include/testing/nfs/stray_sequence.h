// SEQUENCE by somebody who has no part in a session: what the server says of it, and how it comes
// to be out of step with the session's client.
#pragma once

#include "base/check.h"
#include "nfs/proto/nfs4.h"
#include "rpc/client.h"
#include "testing/manual_loop.h"

namespace stag::testing {

namespace v4 = nfs::v4;

inline Task<rpc::CallResult<v4::COMPOUND4res>> compounded(rpc::Client client,
                                                          v4::COMPOUND4args args) {
  co_return co_await client.call<v4::NFSPROC4_COMPOUND>(args);
}

// Alone, in slot 0.
inline v4::nfsstat4 stray_sequence(ManualLoop& loop, rpc::Channel& channel,
                                   const v4::sessionid4& session, v4::sequenceid4 number) {
  v4::COMPOUND4args args;
  args.minorversion = 1;
  args.argarray.emplace_back().argop = v4::OP_SEQUENCE;
  args.argarray[0].opsequence() = {session, number, 0, 0, false};
  const rpc::Client client(channel, {}, rpc::Credentials::sys("stray", 0, 0));
  const auto results = loop.run(compounded(client, std::move(args)));
  STAG_CHECK(results && results->ok());
  return (*results)->status;
}

// From now on the server counts two or more in slot 0 that the session's client does not: it says
// NFS4ERR_SEQ_MISORDERED to what comes there next, and the client leaves the session. The first
// that it takes may be a retry of the client's last one.
inline void put_out_of_step(ManualLoop& loop, rpc::Channel& channel,
                            const v4::sessionid4& session) {
  v4::sequenceid4 number = 1;
  for (int taken = 0; taken < 3; ++number) {
    STAG_CHECK(number < 1000);
    if (stray_sequence(loop, channel, session, number) == v4::NFS4_OK) ++taken;
  }
}

}  // namespace stag::testing
