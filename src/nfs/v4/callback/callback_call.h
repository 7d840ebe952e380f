// One Call to a client on one connection: CB_NULL, or one operation, behind CB_SEQUENCE where there
// is a session (RFC 8881 20, RFC 7530 15, RFC 8267 6.5).
#pragma once

#include <memory>
#include <optional>

#include "base/unique_function.h"
#include "nfs/proto/nfs4.h"
#include "nfs/state/types.h"
#include "rpc/channel.h"
#include "rpc/credentials.h"

namespace stag::nfs::nfs4 {

struct CallbackRequest {
  std::uint32_t program = v4::NFS4_CALLBACK;
  rpc::Credentials credentials;
  // ca_maxrequestsize and ca_maxresponsesize: bytes of the RPC messages.
  std::uint32_t request_max = 0;
  std::uint32_t response_max = rpc::ChannelLimits::kUnlimited;
  // Without operations: CB_NULL.
  v4::CB_COMPOUND4args compound;
  // For the log, where it cannot be sent: whose it is, and the export of its file; 0: of none.
  state::ClientId clientid = 0;
  std::uint32_t export_id = 0;
};

// What CB_GETATTR asks for.
struct HeldAttributes {
  std::uint64_t change = 0;
  std::uint64_t size = 0;  // bytes
};

struct CallbackOutcome {
  enum class Kind : std::uint8_t {
    Answered,  // by the client, in the statuses
    Unsent,    // longer than the client takes: it never left
    Lost,      // no results came; the client may have executed it
  };
  Kind kind = Kind::Lost;
  v4::nfsstat4 sequence = v4::NFS4_OK;         // of CB_SEQUENCE, where it was asked
  v4::nfsstat4 operation = v4::NFS4_OK;        // of the operation, or why there is no result
  std::optional<HeldAttributes> attributes{};  // of CB_GETATTR that succeeded
};
using CallbackDone = UniqueFunction<void(CallbackOutcome)>;

// Makes the Call, on the loop of `channel`.
Task<CallbackOutcome> call_back(rpc::Channel& channel, const CallbackRequest& request);
// Makes the Call on the loop of `channel`; `done` runs on `home`. Any thread; both loops outlive
// the Call.
void call_back(std::shared_ptr<rpc::Channel> channel, CallbackRequest request, Loop& home,
               CallbackDone done);

}  // namespace stag::nfs::nfs4
