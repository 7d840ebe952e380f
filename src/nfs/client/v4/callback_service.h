// CallbackService: what a server of NFSv4.1 or 4.2 asks of this client (RFC
// 8881 section 20): to give a delegation back, to use fewer slots. It stands on
// the connection before CREATE_SESSION names that as the back channel.
//
//   CB_RECALL        the delegation is given back in the background; DELAY: it is not known, and a
//                    call that the server names as one that may have given it has no answer yet;
//                    BAD_STATEID: there is none
//   CB_RECALL_ANY    as many as the server wants
//   CB_RECALL_SLOT   this client uses no slots above
//   CB_GETATTR       `change` and size of a file that is delegated for writing; BADHANDLE where
//                    they are not known: the server asks for the delegation
//   CB_NOTIFY_LOCK   a call that waits for a lock asks again by itself
//   CB_OFFLOAD       the call that waits for the copy goes on; DELAY where the answer to COPY,
//                    which names it, may be on its way
//   CB_NOTIFY, layouts: nothing that this client holds can be meant
//
// Thread: the loop of the connection. It outlives the Channel that it serves.
#pragma once

#include <cstdint>

#include "nfs/client/v4/delegations.h"
#include "nfs/proto/nfs4.h"
#include "nfs/session/back_channel.h"
#include "rpc/program.h"
#include "rpc/server.h"

namespace stag::nfs::client::nfs4 {

// Holds what a server may ask for.
class Recalled {
 public:
  virtual v4::nfsstat4 recall(const v4::stateid4& stateid) = 0;
  virtual void recall_any(std::uint32_t keep) = 0;
  // Of a file that is delegated for writing; nullopt: it is not, or that is not known.
  virtual std::optional<Delegations::Now> written(const v4::nfs_fh4& file) = 0;
  virtual void recall_slots(v4::slotid4 highest) = 0;
  // Whether a call that this callback names as one that it is about has no answer yet.
  virtual bool awaits(const v4::CB_SEQUENCE4args& callback) const = 0;
  // A copy that the server went on with after its answer has ended (RFC 7862 section 16.1).
  virtual v4::nfsstat4 copy_ended(const v4::CB_OFFLOAD4args& args) = 0;

 protected:
  ~Recalled() = default;
};

class CallbackService {
 public:
  // RFC 8881 18.36: the callback program is the client's choice, from the
  // transient range.
  static constexpr std::uint32_t kProgram = v4::NFS4_CALLBACK;

  CallbackService();
  rpc::Service& service() { return server_; }

  // A session was made, whose callbacks are for `holder`; null: for nobody any
  // more.
  void begin(const v4::sessionid4& session, std::uint32_t slots, Recalled* holder);
  // Of its last session; another holder's may have begun since.
  void end(const Recalled* holder) {
    if (holder_ == holder) holder_ = nullptr;
  }

 private:
  v4::CB_COMPOUND4res answered(const v4::CB_COMPOUND4args& args);
  v4::nfsstat4 answered(const v4::CB_SEQUENCE4args& sequence, const v4::nfs_cb_argop4& operation,
                        v4::nfs_cb_resop4& result);
  v4::nfsstat4 recalled(const v4::CB_SEQUENCE4args& sequence, const v4::stateid4& stateid);

  rpc::Server server_;
  session::BackChannel back_;
  Recalled* holder_ = nullptr;
};

}  // namespace stag::nfs::client::nfs4
