// Callbacks: the client's half of the back channel, as cases need it. It answers what a server asks
// (RFC 8881 20, RFC 7530 15.2, RFC 7862 16.1), gives nothing back by itself, and remembers recalls
// and the ends of copies. To acknowledge those can be put off, for a copy's stateid is valid until
// then (RFC 7862 4.8).
//
// Thread: the Channel's loop. It outlives the Channel that it serves.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/cancel.h"
#include "base/loop.h"
#include "nfs/proto/nfs4.h"
#include "rpc/server.h"

namespace stag::conform::nfs4 {

namespace v4 = stag::nfs::v4;

// The callback program's version: RFC 5662 (the XDR) says 1, RFC 8881 18.36.3 says 4. A server may
// take either.
constexpr bool is_callback_version(std::uint32_t version) {
  return version == v4::NFS_CB || version == v4::NFS_V4;
}

// Where a client of version 4.0 is called back (RFC 7530 16.33): it listens there for connections
// of the server.
class CallbackPlace {
 public:
  virtual ~CallbackPlace() = default;
  // False: it cannot. `service` outlives the place. Called once.
  virtual bool listen(rpc::Service& service) = 0;
  // After listen().
  virtual v4::clientaddr4 where() const = 0;
  // No server can connect any more, and connections that exist are cut off. Awaited before the end;
  // the second time it does nothing.
  virtual Task<void> close() = 0;
};
using MakeCallbackPlace = std::function<std::unique_ptr<CallbackPlace>()>;

class Callbacks {
 public:
  // Once `cancel` is pulled nothing is put off any longer.
  Callbacks(Loop& loop, CancelToken cancel);
  Callbacks(const Callbacks&) = delete;

  rpc::Service& service() { return server_; }

  // From now on the server waits for the answer to CB_OFFLOAD.
  void hold() { held_ = true; }
  // Ends when what was put off is answered.
  Task<void> release();
  // Ends when the server has told the end of this copy, or `longest` has passed.
  Task<void> wait_for_end(v4::stateid4 copy, Duration longest);
  // The CB_RECALL of this delegation; nullopt: it has not come, and `longest` has passed.
  Task<std::optional<v4::CB_RECALL4args>> wait_for_recall(v4::stateid4 delegation,
                                                          Duration longest);

 private:
  Task<v4::CB_COMPOUND4res> answered(v4::CB_COMPOUND4args args);
  Task<void> acknowledge(v4::CB_OFFLOAD4args args);

  Loop& loop_;
  const CancelToken cancel_;
  rpc::Server server_;
  std::vector<v4::stateid4> ended_;
  std::vector<v4::CB_RECALL4args> recalls_;
  bool held_ = false;
  int waiting_ = 0;  // answers that are put off
};

}  // namespace stag::conform::nfs4
