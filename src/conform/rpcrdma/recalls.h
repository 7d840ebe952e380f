// Recalls: two clients of version 4.1, of which one holds delegations and is called in the reverse
// direction when the other one opens what is delegated (RFC 8881 10.4, 20.2).
//
// Thread: the fabric's loop. The Context outlives it; end() is awaited before it is destroyed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conform/rpcrdma/session_party.h"

namespace stag::conform::rpcrdma {

// What the holder has, and has not open.
struct DelegatedFile {
  std::string name{};
  v4::nfs_fh4 handle{};
  v4::stateid4 delegation{};
};

class Recalls {
 public:
  explicit Recalls(Context& of);

  // Makes the clients; the holder's back channel has `slots`. Passes, or says why there is nothing
  // to ask.
  Task<Verdict> begin(std::uint32_t slots = 1);
  // The same, for a new file that is delegated to the holder.
  Task<Verdict> delegate(DelegatedFile& file, std::string_view name);

  // The OPEN in conflict, of `other` or a further client.
  SessionParty::Sent open_to_write(const DelegatedFile& file, SessionParty& writer);
  // The same again while it draws NFS4ERR_DELAY, as `first` has. The file is closed again.
  Task<v4::nfsstat4> opens_at_last(const DelegatedFile& file, SessionParty& writer,
                                   v4::COMPOUND4res first);
  // The CB_RECALL of the delegation; a sentence about what came instead, or nothing.
  Task<std::string> await_recall(const DelegatedFile& file, ServerCall& recall);
  // DELEGRETURN.
  Task<v4::nfsstat4> give_back(const DelegatedFile& file);
  // Removes the files, and the clients leave.
  Task<void> end();

  Context& context;
  const std::string label;
  SessionParty holder, other;

 private:
  SessionParty::Operations opening(const DelegatedFile& file, const SessionParty& party,
                                   std::uint32_t access, bool create = false) const;
  Task<std::string> obtain(DelegatedFile& file, bool& given);

  std::vector<std::string> made_;  // names of files
};

// As a server asks before it gives a delegation: whether it can call at all.
void answer_all(SessionParty& party, std::vector<ServerCall> calls);

}  // namespace stag::conform::rpcrdma
